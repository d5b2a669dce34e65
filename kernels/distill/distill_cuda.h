// distill_cuda: launchers of distill on CUDA devices, see distill.h and cuda/lane.h. Differences: sums over entries and
// tokens run in an order that depends on their number, and entries have probabilities in double, which gradients take
// as floats.
#ifndef HECATE_KERNELS_DISTILL_CUDA_H
#define HECATE_KERNELS_DISTILL_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/distill/distill.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_distill_f32(struct hkc_lane *lane, float *loss, float *losses, float *lse,
                     const float *logits, struct hk_teacher teacher, const float *scale,
                     int64_t tokens, int64_t vocabulary, double temperature);
void hkc_distill_bf16(struct hkc_lane *lane, float *loss, float *losses, float *lse,
                      const hk_bf16 *logits, struct hk_teacher teacher, const float *scale,
                      int64_t tokens, int64_t vocabulary, double temperature);
void hkc_distill_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dloss,
                          const float *logits, const float *lse, struct hk_teacher teacher,
                          const float *scale, int64_t tokens, int64_t vocabulary,
                          double temperature);
void hkc_distill_grad_bf16(struct hkc_lane *lane, hk_bf16 *dlogits, const float *dloss,
                           const hk_bf16 *logits, const float *lse, struct hk_teacher teacher,
                           const float *scale, int64_t tokens, int64_t vocabulary,
                           double temperature);

#ifdef __cplusplus
}
#endif

#endif
