// CPU twin of grouped with bf16 operands.
#include "kernels/grouped/grouped.h"

#include "kernels/matmul/product.h"

HK_KERNEL_BF16(void, grouped_nn,
               (float *c, const float *a, const hk_bf16 *const *chunk, int64_t offset,
                const int32_t *first, struct hk_grouped_dims dims, enum hk_write write),
               (c, a, chunk, offset, first, dims, write),
               HK_PRODUCT(2 * first[dims.experts] * dims.n * dims.k,
                          (double)(first[dims.experts] * dims.k +
                                   HK_WRITTEN(first[dims.experts] * dims.n, write)) +
                              0.5 * (double)used_elements(first, dims.experts, dims.n *dims.k),
                          dims.experts, "~rows experts n k", first[dims.experts], dims.experts,
                          dims.n, dims.k)) {
    const struct product p = product_of_groups(first, offset, dims, write);
    HK_VARIANT_BF16(product_nn)(c, a, chunk, &p);
}

HK_KERNEL_BF16(void, grouped_nt,
               (float *a, const float *c, const hk_bf16 *const *chunk, int64_t offset,
                const int32_t *first, struct hk_grouped_dims dims, enum hk_write write),
               (a, c, chunk, offset, first, dims, write),
               HK_PRODUCT(2 * first[dims.experts] * dims.n * dims.k,
                          (double)(first[dims.experts] * dims.n +
                                   HK_WRITTEN(first[dims.experts] * dims.k, write)) +
                              0.5 * (double)used_elements(first, dims.experts, dims.n *dims.k),
                          dims.experts, "~rows experts n k", first[dims.experts], dims.experts,
                          dims.n, dims.k)) {
    const struct product p = product_of_groups(first, offset, dims, write);
    HK_VARIANT_BF16(product_nt)(a, c, chunk, &p);
}

HK_KERNEL_BF16(void, grouped_tn,
               (float *const *chunk, int64_t offset, const float *a, const float *c,
                const int32_t *first, struct hk_grouped_dims dims, enum hk_write write),
               (chunk, offset, a, c, first, dims, write),
               HK_PRODUCT(2 * first[dims.experts] * dims.n * dims.k,
                          first[dims.experts] * (dims.n + dims.k) +
                              HK_WRITTEN(dims.experts * dims.n * dims.k, write),
                          dims.experts, "~rows experts n k", first[dims.experts], dims.experts,
                          dims.n, dims.k)) {
    const struct product p = product_of_groups(first, offset, dims, write);
    HK_VARIANT_BF16(product_tn)(chunk, a, c, &p);
}
