// weights: matrices of weights as tests make and read them, in each layout that kernels take.
#ifndef HECATE_TESTS_KERNELS_WEIGHTS_H
#define HECATE_TESTS_KERNELS_WEIGHTS_H

#include "tests/kernels/kernel_case.h"

// Element [i, j] of a k x n matrix.
static inline int64_t weights_at(enum hk_layout layout, int64_t k, int64_t n, int64_t i,
                                 int64_t j) {
    return layout == HK_ROWS ? i * n + j : (j / HK_PANEL * k + i) * HK_PANEL + j % HK_PANEL;
}

static inline int64_t weights_size(enum hk_layout layout, int64_t k, int64_t n) {
    return layout == HK_ROWS ? k * n : hk_panels_size(k, n);
}

// Writes seeded values; the padding of panels becomes 0.
static inline void weights_fill(real *to, enum hk_layout layout, int64_t k, int64_t n,
                                uint64_t seed) {
    const real *rows = test_reals(k * n, seed);
    for (int64_t i = 0; i < weights_size(layout, k, n); i++) to[i] = 0;
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < n; j++) to[weights_at(layout, k, n, i, j)] = rows[i * n + j];
    }
}

static inline real *weights_of(enum hk_layout layout, int64_t k, int64_t n, uint64_t seed) {
    real *weights = test_nans(weights_size(layout, k, n));
    weights_fill(weights, layout, k, n, seed);
    return weights;
}

#endif
