// swiglu: an expert's first two GEMMs and what gates one by the other, of rows grouped as in grouped.h:
//   ab = A B, ac = A C, r = silu(ab) * ac * scale
// Matrices B and C [k, n] of expert e lie as rows at b_chunk[e] + b_offset and c_chunk[e] + c_offset; ab, ac and r are
// [rows, n], scale [rows]. ab and ac have the bits of grouped_nn, r is computed from them as they are stored. In
// gathered_swiglu A has the rows of tokens, see gathered_cuda.h. On devices only.
#ifndef HECATE_KERNELS_SWIGLU_CUDA_H
#define HECATE_KERNELS_SWIGLU_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/grouped/grouped.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_swiglu_f32(struct hkc_lane *lane, float *ab, float *ac, float *r, const float *a,
                    const float *const *b_chunk, int64_t b_offset, const float *const *c_chunk,
                    int64_t c_offset, const int32_t *first, const float *scale,
                    struct hk_grouped_dims dims);
void hkc_gathered_swiglu_f32(struct hkc_lane *lane, float *ab, float *ac, float *r, const float *a,
                             const int32_t *pair, int64_t picks, const float *const *b_chunk,
                             int64_t b_offset, const float *const *c_chunk, int64_t c_offset,
                             const int32_t *first, const float *scale, struct hk_grouped_dims dims);

// Values of bf16, as in matmul_cuda.h; scale is float.
void hkc_swiglu_bf16(struct hkc_lane *lane, hk_bf16 *ab, hk_bf16 *ac, hk_bf16 *r, const hk_bf16 *a,
                     const hk_bf16 *const *b_chunk, int64_t b_offset, const hk_bf16 *const *c_chunk,
                     int64_t c_offset, const int32_t *first, const float *scale,
                     struct hk_grouped_dims dims);
void hkc_gathered_swiglu_bf16(struct hkc_lane *lane, hk_bf16 *ab, hk_bf16 *ac, hk_bf16 *r,
                              const hk_bf16 *a, const int32_t *pair, int64_t picks,
                              const hk_bf16 *const *b_chunk, int64_t b_offset,
                              const hk_bf16 *const *c_chunk, int64_t c_offset, const int32_t *first,
                              const float *scale, struct hk_grouped_dims dims);

#ifdef __cplusplus
}
#endif

#endif
