// sum_squares_cuda: launchers of sum_squares on CUDA devices, see sum_squares.h and cuda/lane.h. Differences: it
// takes `arrays` of `count` values each, one behind the other, whose sums are stored at sum[0], sum[1], ..., on the
// device: each is what it would be alone.
#ifndef HECATE_KERNELS_SUM_SQUARES_CUDA_H
#define HECATE_KERNELS_SUM_SQUARES_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/sum_squares/sum_squares.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_sum_squares_f32(struct hkc_lane *lane, double *sum, const float *x, int64_t count,
                         int64_t arrays);

#ifdef __cplusplus
}
#endif

#endif
