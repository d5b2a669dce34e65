// CPU twin of grouped: GEMMs over (expert, row block, panel), see matmul/product_cpu.c.
#include "kernels/grouped/grouped.h"

#include "kernels/matmul/product.h"

static inline struct product product_of_groups(const int32_t *first, int64_t offset,
                                               struct hk_grouped_dims dims, enum hk_write write) {
    assert(dims.experts >= 0 && dims.n >= 0 && dims.k >= 0);
    return (struct product){
        .groups = dims.experts,
        .first = first,
        .n = dims.n,
        .k = dims.k,
        .offset = offset,
        .layout = HK_PANELS,
        .packing = dims.packing,
        .write = write,
        .epilogue_time = hk_epilogue_time(),
    };
}

#define ROWS first[dims.experts]
#define FLOPS (2 * ROWS * dims.n * dims.k)
#define WEIGHTS                                                                                    \
    HK_WEIGHTS(used_elements(first, dims.experts, matrix_weights(dims.packing, dims.k, dims.n)))
#define SIZES "~rows experts n k", ROWS, dims.experts, dims.n, dims.k

HK_KERNEL(void, grouped_nn,
          (real * c, const real *a, const weight *const *chunk, int64_t offset,
           const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
           const struct hk_epilogue *epilogue),
          (c, a, chunk, offset, first, dims, write, epilogue),
          HK_PRODUCT(FLOPS, WEIGHTS + (double)(ROWS * dims.k + HK_WRITTEN(ROWS * dims.n, write)),
                     dims.experts, SIZES)) {
    struct product p = product_of_groups(first, offset, dims, write);
    p.epilogue = epilogue;
    HK_VARIANT(product_nn)(c, a, chunk, &p);
}

HK_KERNEL(void, grouped_nt,
          (real * a, const real *c, const weight *const *chunk, int64_t offset,
           const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
           const struct hk_epilogue *epilogue),
          (a, c, chunk, offset, first, dims, write, epilogue),
          HK_PRODUCT(FLOPS, WEIGHTS + (double)(ROWS * dims.n + HK_WRITTEN(ROWS * dims.k, write)),
                     dims.experts, SIZES)) {
    struct product p = product_of_groups(first, offset, dims, write);
    p.epilogue = epilogue;
    HK_VARIANT(product_nt)(a, c, chunk, &p);
}

HK_KERNEL(void, grouped_tn,
          (real *const *chunk, int64_t offset, const real *a, const real *c, const int32_t *first,
           struct hk_grouped_dims dims, enum hk_write write),
          (chunk, offset, a, c, first, dims, write),
          HK_PRODUCT(FLOPS,
                     ROWS *(dims.n + dims.k) + HK_WRITTEN(dims.experts * dims.n * dims.k, write),
                     dims.experts, SIZES)) {
    const struct product p = product_of_groups(first, offset, dims, write);
    HK_VARIANT(product_tn)(chunk, a, c, &p);
}
