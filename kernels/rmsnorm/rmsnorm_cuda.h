// rmsnorm_cuda: launchers of rmsnorm on CUDA devices, see rmsnorm.h and cuda/lane.h. Differences: sums of a row are
// float; dgain sums rows in an order that depends on m and n.
#ifndef HECATE_KERNELS_RMSNORM_CUDA_H
#define HECATE_KERNELS_RMSNORM_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/types.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_rmsnorm_f32(struct hkc_lane *lane, float *y, float *rstd, const float *x,
                     const float *gain, int64_t m, int64_t n, double eps);
void hkc_rmsnorm_bf16(struct hkc_lane *lane, hk_bf16 *y, float *rstd, const hk_bf16 *x,
                      const float *gain, int64_t m, int64_t n, double eps);
void hkc_rmsnorm_grad_f32(struct hkc_lane *lane, float *dx, float *dgain, const float *dy,
                          const float *x, const float *rstd, const float *gain, int64_t m,
                          int64_t n, enum hk_write dx_write, enum hk_write dgain_write);
void hkc_rmsnorm_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, float *dgain, const hk_bf16 *dy,
                           const hk_bf16 *x, const float *rstd, const float *gain, int64_t m,
                           int64_t n, enum hk_write dx_write, enum hk_write dgain_write);

#ifdef __cplusplus
}
#endif

#endif
