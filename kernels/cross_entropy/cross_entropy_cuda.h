// cross_entropy_cuda: launchers of cross_entropy on CUDA devices, see cross_entropy.h and cuda/lane.h. Differences:
// tokens are summed in double in an order that depends on their number.
#ifndef HECATE_KERNELS_CROSS_ENTROPY_CUDA_H
#define HECATE_KERNELS_CROSS_ENTROPY_CUDA_H

#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_cross_entropy_f32(struct hkc_lane *lane, float *loss, float *lse, const float *logits,
                           const int32_t *targets, const float *scale, int64_t tokens,
                           int64_t vocabulary);
void hkc_cross_entropy_bf16(struct hkc_lane *lane, float *loss, float *lse, const hk_bf16 *logits,
                            const int32_t *targets, const float *scale, int64_t tokens,
                            int64_t vocabulary);
void hkc_cross_entropy_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dloss,
                                const float *logits, const float *lse, const int32_t *targets,
                                const float *scale, int64_t tokens, int64_t vocabulary);
void hkc_cross_entropy_grad_bf16(struct hkc_lane *lane, hk_bf16 *dlogits, const float *dloss,
                                 const hk_bf16 *logits, const float *lse, const int32_t *targets,
                                 const float *scale, int64_t tokens, int64_t vocabulary);

// The two parts of cross_entropy: lse and the loss of each token, 0 where it is ignored; scale times their sum.
void hkc_token_losses_f32(struct hkc_lane *lane, double *losses, float *lse, const float *logits,
                          const int32_t *targets, int64_t tokens, int64_t vocabulary);
void hkc_token_losses_bf16(struct hkc_lane *lane, double *losses, float *lse, const hk_bf16 *logits,
                           const int32_t *targets, int64_t tokens, int64_t vocabulary);
void hkc_sum_losses(struct hkc_lane *lane, float *loss, const double *losses, const float *scale,
                    int64_t tokens);

#ifdef __cplusplus
}
#endif

#endif
