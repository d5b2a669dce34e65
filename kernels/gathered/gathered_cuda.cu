// gathered: the GEMMs of grouped.h, one operand of which has the rows of tokens and is read by a route (route.h):
// row r of the experts' rows is row pair[r] / picks there. Nothing else differs, in no bit: so a GEMM does what
// permute and that GEMM of grouped.h do. On devices only; see cuda/products.h.
//   gathered_nn    C (+)= A B      of A [tokens, k]
//   gathered_nt    A (+)= C B^T    of C [tokens, n]
//   gathered_tn_a  B (+)= A^T C    of A [tokens, k]
//   gathered_tn_c  B (+)= A^T C    of C [tokens, n]
// `pair` [first[experts]] is read on the device, `picks` are the experts of a token. _bf16: as in matmul_cuda.cu.
#include "kernels/grouped/grouped.h"

#include <assert.h>

#include "kernels/cuda/products.h"

using product::products;

static products of_tokens(const void *chunk, int64_t offset, const int32_t *pair, int64_t picks,
                          const int32_t *first, hk_grouped_dims dims, hk_write write) {
    assert(dims.experts >= 0 && dims.experts <= INT32_MAX);
    assert(dims.n >= 0 && dims.n <= INT32_MAX && dims.k >= 0 && dims.k <= INT32_MAX);
    assert(picks > 0 && picks <= INT32_MAX);
    products p = {};
    p.first = first;
    p.groups = dims.experts;
    p.n = dims.n;
    p.k = dims.k;
    p.chunk = (void *const *)chunk;
    p.offset = offset;
    p.add = write == HK_ADD;
    p.pair = pair;
    p.picks = picks;
    return p;
}

extern "C" void hkc_gathered_nn_f32(struct hkc_lane *lane, float *c, const float *a,
                                    const int32_t *pair, int64_t picks, const float *const *chunk,
                                    int64_t offset, const int32_t *first,
                                    struct hk_grouped_dims dims, enum hk_write write) {
    product::launch_nn(lane, c, a, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

extern "C" void hkc_gathered_nt_f32(struct hkc_lane *lane, float *a, const float *c,
                                    const int32_t *pair, int64_t picks, const float *const *chunk,
                                    int64_t offset, const int32_t *first,
                                    struct hk_grouped_dims dims, enum hk_write write) {
    product::launch_nt(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

extern "C" void hkc_gathered_tn_a_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                      const float *a, const float *c, const int32_t *pair,
                                      int64_t picks, const int32_t *first,
                                      struct hk_grouped_dims dims, enum hk_write write) {
    product::launch_tn(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

extern "C" void hkc_gathered_tn_c_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                      const float *a, const float *c, const int32_t *pair,
                                      int64_t picks, const int32_t *first,
                                      struct hk_grouped_dims dims, enum hk_write write) {
    products p = of_tokens(chunk, offset, pair, picks, first, dims, write);
    p.of_c = true;
    product::launch_tn(lane, a, c, p);
}

extern "C" void hkc_gathered_nn_bf16(struct hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a,
                                     const int32_t *pair, int64_t picks,
                                     const hk_bf16 *const *chunk, int64_t offset,
                                     const int32_t *first, struct hk_grouped_dims dims,
                                     enum hk_write write) {
    product::launch_nn(lane, c, a, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

extern "C" void hkc_gathered_nt_bf16(struct hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c,
                                     const int32_t *pair, int64_t picks,
                                     const hk_bf16 *const *chunk, int64_t offset,
                                     const int32_t *first, struct hk_grouped_dims dims,
                                     enum hk_write write) {
    product::launch_nt(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

extern "C" void hkc_gathered_tn_a_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                       const hk_bf16 *a, const hk_bf16 *c, const int32_t *pair,
                                       int64_t picks, const int32_t *first,
                                       struct hk_grouped_dims dims, enum hk_write write) {
    product::launch_tn(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

extern "C" void hkc_gathered_tn_c_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                       const hk_bf16 *a, const hk_bf16 *c, const int32_t *pair,
                                       int64_t picks, const int32_t *first,
                                       struct hk_grouped_dims dims, enum hk_write write) {
    products p = of_tokens(chunk, offset, pair, picks, first, dims, write);
    p.of_c = true;
    product::launch_tn(lane, a, c, p);
}
