// GEMMs of experts that gather rows as they load them, see cuda/products.h.
#include "kernels/gathered/gathered_cuda.h"

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

void hkc_gathered_nn_f32(hkc_lane *lane, float *c, const float *a, const int32_t *pair,
                         int64_t picks, const float *const *chunk, int64_t offset,
                         const int32_t *first, hk_grouped_dims dims, hk_write write) {
    product::launch_nn(lane, c, a, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

void hkc_gathered_nt_f32(hkc_lane *lane, float *a, const float *c, const int32_t *pair,
                         int64_t picks, const float *const *chunk, int64_t offset,
                         const int32_t *first, hk_grouped_dims dims, hk_write write) {
    product::launch_nt(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

void hkc_gathered_tn_a_f32(hkc_lane *lane, float *const *chunk, int64_t offset, const float *a,
                           const float *c, const int32_t *pair, int64_t picks, const int32_t *first,
                           hk_grouped_dims dims, hk_write write) {
    product::launch_tn(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

void hkc_gathered_tn_c_f32(hkc_lane *lane, float *const *chunk, int64_t offset, const float *a,
                           const float *c, const int32_t *pair, int64_t picks, const int32_t *first,
                           hk_grouped_dims dims, hk_write write) {
    products p = of_tokens(chunk, offset, pair, picks, first, dims, write);
    p.of_c = true;
    product::launch_tn(lane, a, c, p);
}

void hkc_gathered_nn_bf16(hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const int32_t *pair,
                          int64_t picks, const hk_bf16 *const *chunk, int64_t offset,
                          const int32_t *first, hk_grouped_dims dims, hk_write write) {
    product::launch_nn(lane, c, a, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

void hkc_gathered_nt_bf16(hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const int32_t *pair,
                          int64_t picks, const hk_bf16 *const *chunk, int64_t offset,
                          const int32_t *first, hk_grouped_dims dims, hk_write write) {
    product::launch_nt(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

void hkc_gathered_tn_a_bf16(hkc_lane *lane, float *const *chunk, int64_t offset, const hk_bf16 *a,
                            const hk_bf16 *c, const int32_t *pair, int64_t picks,
                            const int32_t *first, hk_grouped_dims dims, hk_write write) {
    product::launch_tn(lane, a, c, of_tokens(chunk, offset, pair, picks, first, dims, write));
}

void hkc_gathered_tn_c_bf16(hkc_lane *lane, float *const *chunk, int64_t offset, const hk_bf16 *a,
                            const hk_bf16 *c, const int32_t *pair, int64_t picks,
                            const int32_t *first, hk_grouped_dims dims, hk_write write) {
    products p = of_tokens(chunk, offset, pair, picks, first, dims, write);
    p.of_c = true;
    product::launch_tn(lane, a, c, p);
}
