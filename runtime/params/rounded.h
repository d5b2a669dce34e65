// The copies in bf16 that GEMMs read: every parameter with `rounded`, at its offset in elements, as
// panels of row pairs where the parameter lies in panels (kernels/types.h). Files, the optimizer and
// everything else know the parameters themselves only.
#ifndef HECATE_RUNTIME_PARAMS_ROUNDED_H
#define HECATE_RUNTIME_PARAMS_ROUNDED_H

#include <stddef.h>

#include "runtime/params/placement.h"
#include "runtime/program.h"

// Makes the copies of the tensors that are on this rank, rounding to nearest even. Nothing in programs
// without any. `rounded` may be NULL then. `parted`: not of tensors that this rank has a part of alone.
void hrt_params_round(const struct hrt_placement *placement, const void *params, void *rounded,
                      bool parted);

// The same of one tensor, `offset` elements into the buffers, of a parameter with `rounded`.
void hrt_params_round_tensor(const struct hrt_param *param, int64_t offset, const void *params,
                             void *rounded);

// Bytes of the buffer: of all parameters, with a copy or without. 0: no parameter has one.
size_t hrt_params_rounded_bytes(const struct hrt_program *program);

#endif
