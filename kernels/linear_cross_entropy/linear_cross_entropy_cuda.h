// linear_cross_entropy_cuda: launchers of linear_cross_entropy on CUDA devices, see linear_cross_entropy.h and
// cuda/lane.h. They launch the kernels of matmul and cross_entropy, block by block; weights lie as rows. Differences:
// dw has the same bits for every size of block only where one block takes all tokens, and the losses of at most
// HKC_SCRATCH / 8 tokens are summed. _bf16: x, w, block and dx are bf16, as what GEMMs read and leave.
#ifndef HECATE_KERNELS_LINEAR_CROSS_ENTROPY_CUDA_H
#define HECATE_KERNELS_LINEAR_CROSS_ENTROPY_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_linear_cross_entropy_f32(struct hkc_lane *lane, float *loss, float *lse, float *block,
                                  const float *x, const float *w, enum hk_layout layout,
                                  const int32_t *targets, const float *scale,
                                  struct hk_head_dims dims, const struct hk_tokens *only);
void hkc_linear_cross_entropy_bf16(struct hkc_lane *lane, float *loss, float *lse, hk_bf16 *block,
                                   const hk_bf16 *x, const hk_bf16 *w, enum hk_layout layout,
                                   const int32_t *targets, const float *scale,
                                   struct hk_head_dims dims, const struct hk_tokens *only);
void hkc_linear_cross_entropy_grad_f32(struct hkc_lane *lane, float *dx, float *dw, float *block,
                                       const float *dloss, const float *x, const float *w,
                                       enum hk_layout layout, const float *lse,
                                       const int32_t *targets, const float *scale,
                                       struct hk_head_dims dims, enum hk_write write_dx,
                                       enum hk_write write_dw);
void hkc_linear_cross_entropy_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, float *dw,
                                        hk_bf16 *block, const float *dloss, const hk_bf16 *x,
                                        const hk_bf16 *w, enum hk_layout layout, const float *lse,
                                        const int32_t *targets, const float *scale,
                                        struct hk_head_dims dims, enum hk_write write_dx,
                                        enum hk_write write_dw);

#ifdef __cplusplus
}
#endif

#endif
