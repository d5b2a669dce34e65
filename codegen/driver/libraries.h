// The libraries that programs are linked with: whether they are this hecatec's.
#ifndef HECATE_CODEGEN_DRIVER_LIBRARIES_H
#define HECATE_CODEGEN_DRIVER_LIBRARIES_H

#include "codegen/base/command.h"

// Looks at each library of ours ("-lhecate_...") that the command links, in `prefix`/lib: built with other headers than
// hecatec it would make a program that crashes. False after a complaint that names it.
bool hec_check_libraries(const struct hec_command *command, const char *prefix);

#endif
