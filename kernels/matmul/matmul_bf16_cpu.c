// CPU twin of matmul with bf16 operands; and the rounding of weights.
#include "kernels/matmul/product.h"

// Floats that take as many bytes as a k x n matrix of bf16.
#define WEIGHTS(k, n) (0.5 * (double)((k) * (n)))

HK_KERNEL_BF16(void, matmul_nn,
               (float *c, const float *a, const hk_bf16 *b, enum hk_layout layout,
                struct hk_matmul_dims dims, enum hk_write write),
               (c, a, b, layout, dims, write),
               HK_PRODUCT(2 * dims.m * dims.n * dims.k,
                          (double)(dims.m *dims.k + HK_WRITTEN(dims.m * dims.n, write)) +
                              WEIGHTS(dims.k, dims.n),
                          0, "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    const struct product p = product_of_rows(first, layout, dims, write);
    HK_VARIANT_BF16(product_nn)(c, a, &b, &p);
}

HK_KERNEL_BF16(void, matmul_nt,
               (float *a, const float *c, const hk_bf16 *b, enum hk_layout layout,
                struct hk_matmul_dims dims, enum hk_write write),
               (a, c, b, layout, dims, write),
               HK_PRODUCT(2 * dims.m * dims.n * dims.k,
                          (double)(dims.m *dims.n + HK_WRITTEN(dims.m * dims.k, write)) +
                              WEIGHTS(dims.k, dims.n),
                          0, "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    const struct product p = product_of_rows(first, layout, dims, write);
    HK_VARIANT_BF16(product_nt)(a, c, &b, &p);
}

HK_KERNEL_BF16(void, matmul_tn,
               (float *b, const float *a, const float *c, enum hk_layout layout,
                struct hk_matmul_dims dims, enum hk_write write),
               (b, a, c, layout, dims, write),
               HK_PRODUCT(2 * dims.m * dims.n * dims.k,
                          dims.m *dims.n + dims.m * dims.k + HK_WRITTEN(dims.k * dims.n, write), 0,
                          "m n k", dims.m, dims.n, dims.k)) {
    int32_t first[2];
    const struct product p = product_of_rows(first, layout, dims, write);
    HK_VARIANT_BF16(product_tn)(&b, a, c, &p);
}

enum { parallel_min = 1 << 15 }; // Elements below which a team costs more than it brings.

HK_KERNEL_BF16(void, round, (hk_bf16 * to, const float *from, int64_t count), (to, from, count),
               HK_PASS(1.5 * (double)count, 0, "count", count)) {
#pragma omp parallel for simd schedule(static) if (count >= parallel_min)
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_round(from[i]);
}

// Rows 2 i and 2 i + 1 of a panel, side by side.
static void round_pair(hk_bf16 *to, const float *from, int64_t rows) {
    for (int64_t j = 0; j < HK_PANEL; j++) {
        to[2 * j] = hk_bf16_round(from[j]);
        to[2 * j + 1] = rows > 1 ? hk_bf16_round(from[HK_PANEL + j]) : (hk_bf16){0};
    }
}

HK_KERNEL_BF16(void, round_panels, (hk_bf16 * to, const float *from, int64_t k, int64_t n),
               (to, from, k, n), HK_PASS(1.5 * (double)(k * n), 0, "k n", k, n)) {
    const int64_t panels = (n + HK_PANEL - 1) / HK_PANEL, pairs = (k + 1) / 2;
#pragma omp parallel for schedule(static) if (k * n >= parallel_min)
    for (int64_t i = 0; i < panels * pairs; i++) {
        const int64_t panel = i / pairs, row = i % pairs * 2;
        round_pair(to + i * 2 * HK_PANEL, from + (panel * k + row) * HK_PANEL, k - row);
    }
}
