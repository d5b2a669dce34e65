// CPU twin of matmul: a GEMM of one group.
#include "kernels/matmul/product.h"

#define FLOPS(dims) (2 * (dims).m * (dims).n * (dims).k)
#define WEIGHTS(dims) HK_WEIGHTS(matrix_weights((dims).packing, (dims).k, (dims).n))

HK_KERNEL(void, matmul_nn,
          (real * c, const real *a, const weight *b, enum hk_layout layout,
           struct hk_matmul_dims dims, enum hk_write write, const struct hk_epilogue *epilogue),
          (c, a, b, layout, dims, write, epilogue),
          HK_PRODUCT(FLOPS(dims),
                     WEIGHTS(dims) + (double)(dims.m * dims.k + HK_WRITTEN(dims.m * dims.n, write)),
                     0, "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    struct product p = product_of_rows(first, layout, dims, write);
    p.epilogue = epilogue;
    HK_VARIANT(product_nn)(c, a, &b, &p);
}

HK_KERNEL(void, matmul_nt,
          (real * a, const real *c, const weight *b, enum hk_layout layout,
           struct hk_matmul_dims dims, enum hk_write write, const struct hk_epilogue *epilogue),
          (a, c, b, layout, dims, write, epilogue),
          HK_PRODUCT(FLOPS(dims),
                     WEIGHTS(dims) + (double)(dims.m * dims.n + HK_WRITTEN(dims.m * dims.k, write)),
                     0, "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    struct product p = product_of_rows(first, layout, dims, write);
    p.epilogue = epilogue;
    HK_VARIANT(product_nt)(a, c, &b, &p);
}

HK_KERNEL(void, matmul_tn,
          (real * b, const real *a, const real *c, enum hk_layout layout,
           struct hk_matmul_dims dims, enum hk_write write),
          (b, a, c, layout, dims, write),
          HK_PRODUCT(FLOPS(dims),
                     dims.m *dims.n + dims.m * dims.k + HK_WRITTEN(dims.k * dims.n, write), 0,
                     "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    const struct product p = product_of_rows(first, layout, dims, write);
    HK_VARIANT(product_tn)(&b, a, c, &p);
}
