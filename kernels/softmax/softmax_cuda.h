// softmax_cuda: launchers of softmax on CUDA devices, see softmax.h and cuda/lane.h. Differences: sums of a row are
// float.
#ifndef HECATE_KERNELS_SOFTMAX_CUDA_H
#define HECATE_KERNELS_SOFTMAX_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/types.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_softmax_f32(struct hkc_lane *lane, float *r, const float *a, int64_t m, int64_t n);
void hkc_softmax_bf16(struct hkc_lane *lane, hk_bf16 *r, const hk_bf16 *a, int64_t m, int64_t n);
void hkc_softmax_grad_f32(struct hkc_lane *lane, float *da, const float *dr, const float *r,
                          int64_t m, int64_t n, enum hk_write write);
void hkc_softmax_grad_bf16(struct hkc_lane *lane, hk_bf16 *da, const hk_bf16 *dr, const hk_bf16 *r,
                           int64_t m, int64_t n, enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
