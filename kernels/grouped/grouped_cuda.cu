// CUDA twin of grouped: GEMMs of every expert, see cuda/products.h.
// Matrices lie as rows, there is no epilogue; `chunk` and `first` are read on the device. _bf16: as in matmul_cuda.cu.
#include "kernels/grouped/grouped.h"

#include <assert.h>

#include "kernels/cuda/products.h"

using product::products;

static products of_experts(const void *chunk, int64_t offset, const int32_t *first,
                           hk_grouped_dims dims, hk_write write, const hk_epilogue *epilogue) {
    assert(!epilogue);
    assert(dims.experts >= 0 && dims.experts <= INT32_MAX);
    assert(dims.n >= 0 && dims.n <= INT32_MAX && dims.k >= 0 && dims.k <= INT32_MAX);
    products p = {};
    p.first = first;
    p.groups = dims.experts;
    p.n = dims.n;
    p.k = dims.k;
    p.chunk = (void *const *)chunk;
    p.offset = offset;
    p.add = write == HK_ADD;
    return p;
}

extern "C" void hkc_grouped_nn_f32(struct hkc_lane *lane, float *c, const float *a,
                                   const float *const *chunk, int64_t offset, const int32_t *first,
                                   struct hk_grouped_dims dims, enum hk_write write,
                                   const struct hk_epilogue *epilogue) {
    product::launch_nn(lane, c, a, of_experts(chunk, offset, first, dims, write, epilogue));
}

extern "C" void hkc_grouped_nt_f32(struct hkc_lane *lane, float *a, const float *c,
                                   const float *const *chunk, int64_t offset, const int32_t *first,
                                   struct hk_grouped_dims dims, enum hk_write write,
                                   const struct hk_epilogue *epilogue) {
    product::launch_nt(lane, a, c, of_experts(chunk, offset, first, dims, write, epilogue));
}

extern "C" void hkc_grouped_tn_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                   const float *a, const float *c, const int32_t *first,
                                   struct hk_grouped_dims dims, enum hk_write write) {
    product::launch_tn(lane, a, c, of_experts(chunk, offset, first, dims, write, NULL));
}

extern "C" void hkc_grouped_nn_bf16(struct hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a,
                                    const hk_bf16 *const *chunk, int64_t offset,
                                    const int32_t *first, struct hk_grouped_dims dims,
                                    enum hk_write write, const struct hk_epilogue *epilogue) {
    product::launch_nn(lane, c, a, of_experts(chunk, offset, first, dims, write, epilogue));
}

extern "C" void hkc_grouped_nt_bf16(struct hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c,
                                    const hk_bf16 *const *chunk, int64_t offset,
                                    const int32_t *first, struct hk_grouped_dims dims,
                                    enum hk_write write, const struct hk_epilogue *epilogue) {
    product::launch_nt(lane, a, c, of_experts(chunk, offset, first, dims, write, epilogue));
}

extern "C" void hkc_grouped_tn_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                                    const hk_bf16 *a, const hk_bf16 *c, const int32_t *first,
                                    struct hk_grouped_dims dims, enum hk_write write) {
    product::launch_tn(lane, a, c, of_experts(chunk, offset, first, dims, write, NULL));
}
