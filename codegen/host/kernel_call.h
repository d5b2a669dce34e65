// Calls of kernels, for every target whose kernels take the arguments that ir/kernels.def lists.
#ifndef HECATE_CODEGEN_HOST_KERNEL_CALL_H
#define HECATE_CODEGEN_HOST_KERNEL_CALL_H

#include "codegen/host/emitter.h"

// Writes the call of the kernel of `op`, an hk.call: its name with `prefix` in front; `first` is an argument in
// front of the others, or "".
void hec_kernel_call(struct hec_emitter *e, MlirOperation op, const char *prefix,
                     const char *first);

#endif
