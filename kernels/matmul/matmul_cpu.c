// CPU twin of matmul: a product of one group; and the change of layout.
#include "kernels/cpu/pack.h"
#include "kernels/matmul/product.h"

HK_KERNEL(void, matmul_nn,
          (real * c, const real *a, const real *b, enum hk_layout layout,
           struct hk_matmul_dims dims, enum hk_write write),
          (c, a, b, layout, dims, write),
          HK_PRODUCT(2 * dims.m * dims.n * dims.k,
                     dims.m *dims.k + dims.k * dims.n + HK_WRITTEN(dims.m * dims.n, write), 0,
                     "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    const struct product p = product_of_rows(first, layout, dims, write);
    HK_VARIANT(product_nn)(c, a, &b, &p);
}

HK_KERNEL(void, matmul_nt,
          (real * a, const real *c, const real *b, enum hk_layout layout,
           struct hk_matmul_dims dims, enum hk_write write),
          (a, c, b, layout, dims, write),
          HK_PRODUCT(2 * dims.m * dims.n * dims.k,
                     dims.m *dims.n + dims.k * dims.n + HK_WRITTEN(dims.m * dims.k, write), 0,
                     "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    const struct product p = product_of_rows(first, layout, dims, write);
    HK_VARIANT(product_nt)(a, c, &b, &p);
}

HK_KERNEL(void, matmul_tn,
          (real * b, const real *a, const real *c, enum hk_layout layout,
           struct hk_matmul_dims dims, enum hk_write write),
          (b, a, c, layout, dims, write),
          HK_PRODUCT(2 * dims.m * dims.n * dims.k,
                     dims.m *dims.n + dims.m * dims.k + HK_WRITTEN(dims.k * dims.n, write), 0,
                     "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    const struct product p = product_of_rows(first, layout, dims, write);
    HK_VARIANT(product_tn)(&b, a, c, &p);
}

HK_KERNEL(void, panels_pack, (real * panels, const real *rows, int64_t k, int64_t n),
          (panels, rows, k, n), HK_PASS(2 * k * n, 0, "k n", k, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < n; j += HK_PANEL) {
        pack_panel(panels + j * k, rows + j, n, k, n - j);
    }
}

HK_KERNEL(void, panels_unpack, (real * rows, const real *panels, int64_t k, int64_t n),
          (rows, panels, k, n), HK_PASS(2 * k * n, 0, "k n", k, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < n; j++) {
            rows[i * n + j] = panels[(j / HK_PANEL * k + i) * HK_PANEL + j % HK_PANEL];
        }
    }
}
