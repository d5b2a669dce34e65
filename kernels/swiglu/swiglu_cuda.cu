// swiglu: an expert's first two GEMMs and what gates one by the other, of rows grouped as in grouped.h:
//   ab = A B, ac = A C, r = silu(ab) * ac * scale
// Matrices B and C [k, n] of expert e lie as rows at b_chunk[e] + b_offset and c_chunk[e] + c_offset; ab, ac and r are
// [rows, n], scale [rows]. ab and ac have the bits of grouped_nn, r is computed from them as they are stored. In
// gathered_swiglu A has the rows of tokens, see gathered_cuda.cu. On devices only; see cuda/products.h. _bf16: as in
// matmul_cuda.cu; scale is float.
#include "kernels/grouped/grouped.h"

#include <assert.h>

#include "kernels/cuda/products.h"

using product::products;

static products of_rows(const void *chunk, int64_t offset, const int32_t *first,
                        hk_grouped_dims dims) {
    assert(dims.experts >= 0 && dims.experts <= INT32_MAX);
    assert(dims.n >= 0 && dims.n <= INT32_MAX / 2 && dims.k >= 0 && dims.k <= INT32_MAX);
    products p = {};
    p.first = first;
    p.groups = dims.experts;
    p.n = dims.n;
    p.k = dims.k;
    p.chunk = (void *const *)chunk;
    p.offset = offset;
    return p;
}

extern "C" void hkc_swiglu_f32(struct hkc_lane *lane, float *ab, float *ac, float *r,
                               const float *a, const float *const *b_chunk, int64_t b_offset,
                               const float *const *c_chunk, int64_t c_offset, const int32_t *first,
                               const float *scale, struct hk_grouped_dims dims) {
    product::launch_swiglu(lane, {ab, ac, r, scale, c_chunk, c_offset}, a,
                           of_rows(b_chunk, b_offset, first, dims));
}

extern "C" void hkc_gathered_swiglu_f32(struct hkc_lane *lane, float *ab, float *ac, float *r,
                                        const float *a, const int32_t *pair, int64_t picks,
                                        const float *const *b_chunk, int64_t b_offset,
                                        const float *const *c_chunk, int64_t c_offset,
                                        const int32_t *first, const float *scale,
                                        struct hk_grouped_dims dims) {
    assert(picks > 0 && picks <= INT32_MAX);
    products p = of_rows(b_chunk, b_offset, first, dims);
    p.pair = pair;
    p.picks = picks;
    product::launch_swiglu(lane, {ab, ac, r, scale, c_chunk, c_offset}, a, p);
}

extern "C" void hkc_swiglu_bf16(struct hkc_lane *lane, hk_bf16 *ab, hk_bf16 *ac, hk_bf16 *r,
                                const hk_bf16 *a, const hk_bf16 *const *b_chunk, int64_t b_offset,
                                const hk_bf16 *const *c_chunk, int64_t c_offset,
                                const int32_t *first, const float *scale,
                                struct hk_grouped_dims dims) {
    product::launch_swiglu(lane, {ab, ac, r, scale, c_chunk, c_offset}, a,
                           of_rows(b_chunk, b_offset, first, dims));
}

extern "C" void hkc_gathered_swiglu_bf16(struct hkc_lane *lane, hk_bf16 *ab, hk_bf16 *ac,
                                         hk_bf16 *r, const hk_bf16 *a, const int32_t *pair,
                                         int64_t picks, const hk_bf16 *const *b_chunk,
                                         int64_t b_offset, const hk_bf16 *const *c_chunk,
                                         int64_t c_offset, const int32_t *first, const float *scale,
                                         struct hk_grouped_dims dims) {
    assert(picks > 0 && picks <= INT32_MAX);
    products p = of_rows(b_chunk, b_offset, first, dims);
    p.pair = pair;
    p.picks = picks;
    product::launch_swiglu(lane, {ab, ac, r, scale, c_chunk, c_offset}, a, p);
}
