// All files of a run, in one place: no output is one of its inputs, or another output.
#ifndef HECATE_RUNTIME_CLI_RUN_FILES_H
#define HECATE_RUNTIME_CLI_RUN_FILES_H

#include "runtime/cli/command.h"

// Whether the files that the command line and the environment name can be used together. A usage error names
// the two that are the same file. Opens nothing; call before anything is opened, and before ranks meet.
bool hrt_cli_run_check_files(const struct hrt_run *run, struct hrt_error *error);

#endif
