// The copies in bf16 that GEMMs read: every parameter with `rounded`, at its offset in elements, as
// panels of row pairs where the parameter lies in panels (kernels/types.h). Files, the optimizer and
// everything else know the parameters themselves only.
#ifndef HECATE_RUNTIME_PARAMS_ROUNDED_H
#define HECATE_RUNTIME_PARAMS_ROUNDED_H

#include <stddef.h>

#include "kernels/bf16.h"
#include "runtime/params/placement.h"
#include "runtime/program.h"

// Makes the copies of the tensors that are on this rank, rounding to nearest even. Nothing in programs
// without any. `rounded` may be NULL then. Not of tensors that this rank has a part of.
void hrt_params_round(const struct hrt_placement *placement, const void *params, void *rounded);

// The same of one tensor of a parameter with `rounded`.
void hrt_params_round_tensor(const struct hrt_param *param, const float *tensor, hk_bf16 *rounded);

// Bytes of the buffer: of all parameters, with a copy or without. 0: no parameter has one.
size_t hrt_params_rounded_bytes(const struct hrt_program *program);

#endif
