// sum_cuda: launchers of sum on CUDA devices, see sum.h and cuda/lane.h. Differences: sums of columns run in an
// order that depends on m and n.
#ifndef HECATE_KERNELS_SUM_CUDA_H
#define HECATE_KERNELS_SUM_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/sum/sum.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_sum_rows_f32(struct hkc_lane *lane, float *y, const float *x, int64_t m, int64_t n,
                      enum hk_write write);
void hkc_sum_rows_bf16(struct hkc_lane *lane, float *y, const hk_bf16 *x, int64_t m, int64_t n,
                       enum hk_write write);
void hkc_sum_columns_f32(struct hkc_lane *lane, float *y, const float *x, int64_t m, int64_t n,
                         enum hk_write write);
void hkc_sum_columns_bf16(struct hkc_lane *lane, float *y, const hk_bf16 *x, int64_t m, int64_t n,
                          enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
