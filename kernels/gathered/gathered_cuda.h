// gathered: the GEMMs of grouped.h, one operand of which has the rows of tokens and is read by a route (route.h):
// row r of the experts' rows is row pair[r] / picks there. Nothing else differs, in no bit: so a GEMM does what
// permute and that GEMM of grouped.h do. On devices only.
//   gathered_nn    C (+)= A B      of A [tokens, k]
//   gathered_nt    A (+)= C B^T    of C [tokens, n]
//   gathered_tn_a  B (+)= A^T C    of A [tokens, k]
//   gathered_tn_c  B (+)= A^T C    of C [tokens, n]
// `pair` [first[experts]] is read on the device, `picks` are the experts of a token.
#ifndef HECATE_KERNELS_GATHERED_CUDA_H
#define HECATE_KERNELS_GATHERED_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/grouped/grouped.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_gathered_nn_f32(struct hkc_lane *lane, float *c, const float *a, const int32_t *pair,
                         int64_t picks, const float *const *chunk, int64_t offset,
                         const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);
void hkc_gathered_nt_f32(struct hkc_lane *lane, float *a, const float *c, const int32_t *pair,
                         int64_t picks, const float *const *chunk, int64_t offset,
                         const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);
void hkc_gathered_tn_a_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                           const float *a, const float *c, const int32_t *pair, int64_t picks,
                           const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);
void hkc_gathered_tn_c_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                           const float *a, const float *c, const int32_t *pair, int64_t picks,
                           const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);

// Values of bf16, as in matmul_cuda.h.
void hkc_gathered_nn_bf16(struct hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const int32_t *pair,
                          int64_t picks, const hk_bf16 *const *chunk, int64_t offset,
                          const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);
void hkc_gathered_nt_bf16(struct hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const int32_t *pair,
                          int64_t picks, const hk_bf16 *const *chunk, int64_t offset,
                          const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);
void hkc_gathered_tn_a_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                            const hk_bf16 *a, const hk_bf16 *c, const int32_t *pair, int64_t picks,
                            const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);
void hkc_gathered_tn_c_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                            const hk_bf16 *a, const hk_bf16 *c, const int32_t *pair, int64_t picks,
                            const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
