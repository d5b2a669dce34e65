// layernorm_cuda: launchers of layernorm on CUDA devices, see layernorm.h and cuda/lane.h. Differences: dgain and
// dbias sum rows in an order that depends on m and n.
#ifndef HECATE_KERNELS_LAYERNORM_CUDA_H
#define HECATE_KERNELS_LAYERNORM_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/layernorm/layernorm.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_layernorm_f32(struct hkc_lane *lane, float *y, float *mean, float *rstd, const float *x,
                       const float *gain, const float *bias, int64_t m, int64_t n, double eps);
void hkc_layernorm_bf16(struct hkc_lane *lane, hk_bf16 *y, float *mean, float *rstd,
                        const hk_bf16 *x, const float *gain, const float *bias, int64_t m,
                        int64_t n, double eps);
void hkc_layernorm_grad_f32(struct hkc_lane *lane, float *dx, float *dgain, float *dbias,
                            const float *dy, const float *x, const float *mean, const float *rstd,
                            const float *gain, int64_t m, int64_t n, enum hk_write dx_write,
                            enum hk_write dparam_write);
void hkc_layernorm_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, float *dgain, float *dbias,
                             const hk_bf16 *dy, const hk_bf16 *x, const float *mean,
                             const float *rstd, const float *gain, int64_t m, int64_t n,
                             enum hk_write dx_write, enum hk_write dparam_write);

#ifdef __cplusplus
}
#endif

#endif
