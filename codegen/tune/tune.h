// --tune and --calibrate: measure this machine.
#ifndef HECATE_CODEGEN_TUNE_TUNE_H
#define HECATE_CODEGEN_TUNE_TUNE_H

#include "codegen/base/options.h"

// Becomes hecate-tune, found beside this executable. Returns only after a complaint, or when the
// command is only to be shown: the exit status for hecatec.
int hec_tune_run(struct hec_arena *arena, const struct hec_options *options);

// The same with hecate-calibrate, which measures how long kernels take.
int hec_calibrate_run(struct hec_arena *arena, const struct hec_options *options);

#endif
