// sum_squares_cuda: launchers of sum_squares on CUDA devices, see sum_squares.h and cuda/lane.h. What differs: the
// sum is stored at `sum`, on the device.
#ifndef HECATE_KERNELS_SUM_SQUARES_CUDA_H
#define HECATE_KERNELS_SUM_SQUARES_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/sum_squares/sum_squares.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_sum_squares_f32(struct hkc_lane *lane, double *sum, const float *x, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
