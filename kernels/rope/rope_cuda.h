// rope_cuda: launchers of rope on CUDA devices, see rope.h and cuda/lane.h.
#ifndef HECATE_KERNELS_ROPE_CUDA_H
#define HECATE_KERNELS_ROPE_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/rope/rope.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_rope_f32(struct hkc_lane *lane, float *y, const float *x, const float *table,
                  struct hk_rope_dims dims);
void hkc_rope_bf16(struct hkc_lane *lane, hk_bf16 *y, const hk_bf16 *x, const float *table,
                   struct hk_rope_dims dims);
void hkc_rope_grad_f32(struct hkc_lane *lane, float *dx, const float *dy, const float *table,
                       struct hk_rope_dims dims, enum hk_write write);
void hkc_rope_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, const hk_bf16 *dy, const float *table,
                        struct hk_rope_dims dims, enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
