// nvcc, which turns the kernels in the source of a program for a GPU into an object.
#ifndef HECATE_CODEGEN_DRIVER_NVCC_H
#define HECATE_CODEGEN_DRIVER_NVCC_H

#include "codegen/base/options.h"

// Compiles the kernels of `source` to `object` for the architecture that `target` names ("cuda:sm_90a"), for all
// ("cuda:all"), or ("cuda") for the GPUs of this machine, and for all where it has none. Shows the command when the
// options say so. Returns the exit status for hecatec: 0, or 3 after a complaint.
int hec_nvcc_run(struct hec_arena *arena, const struct hec_options *options, const char *target,
                 const char *source, const char *object);

// Libraries that such a program is linked with, ended by NULL: `object`, and those for its device and, with one of
// several `ranks`, for its transport. NULL after a complaint that hecatec was built without them; a dry run has none.
const char *const *hec_nvcc_link(struct hec_arena *arena, const struct hec_options *options,
                                 const char *object, bool ranks);

#endif
