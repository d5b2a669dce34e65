// add_cuda: launcher of add on CUDA devices, see add.h and cuda/lane.h.
#ifndef HECATE_KERNELS_ADD_CUDA_H
#define HECATE_KERNELS_ADD_CUDA_H

#include "kernels/add/add.h"
#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_add_f32(struct hkc_lane *lane, float *sum, const float *term, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
