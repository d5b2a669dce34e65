// row: reductions along a row and strips of columns, each in one fixed order.
#ifndef HECATE_KERNELS_CPU_ROW_H
#define HECATE_KERNELS_CPU_ROW_H

#include <omp.h>

#include "kernels/cpu/real.h"

// Four sums run side by side to hide the latency of the addition; the tail comes last.
HK_INLINE real row_dot(const real *a, const real *b, int64_t n) {
    vec sum[4] = {0};
    int64_t j = 0;
    for (; j + 4 * lanes <= n; j += 4 * lanes) {
        for (int u = 0; u < 4; u++) {
            sum[u] += vec_load(a + j + u * lanes) * vec_load(b + j + u * lanes);
        }
    }
    real total = vec_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; j < n; j++) total += a[j] * b[j];
    return total;
}

HK_INLINE real row_sum(const real *a, int64_t n) {
    vec sum[4] = {0};
    int64_t j = 0;
    for (; j + 4 * lanes <= n; j += 4 * lanes) {
        for (int u = 0; u < 4; u++) sum[u] += vec_load(a + j + u * lanes);
    }
    real total = vec_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    for (; j < n; j++) total += a[j];
    return total;
}

// -infinity for an empty row. NaN loses against anything.
HK_INLINE real row_max(const real *a, int64_t n) {
    real peak = -(real)INFINITY;
#ifndef __clang__ // It would start the vectorized maximum at the lowest finite number.
#pragma omp simd reduction(max : peak)
#endif
    for (int64_t j = 0; j < n; j++) peak = a[j] > peak ? a[j] : peak;
    return peak;
}

// Sum of exp((a[j] - shift) * factor), in double across blocks.
HK_INLINE double row_exp_sum(const real *a, int64_t n, real shift, real factor) {
    enum { block = 256 };
    real e[block];
    double total = 0;
    for (int64_t begin = 0; begin < n; begin += block) {
        const int64_t count = n - begin < block ? n - begin : block;
#pragma omp simd
        for (int64_t j = 0; j < count; j++) e[j] = HK_REAL(exp)((a[begin + j] - shift) * factor);
        total += row_sum(e, count);
    }
    return total;
}

// log(sum of exp(a[j] * factor)), of a positive factor.
HK_INLINE real row_log_sum_exp(const real *a, int64_t n, real factor) {
    const real peak = row_max(a, n);
    return peak * factor + (real)log(row_exp_sum(a, n, peak, factor));
}

enum { strip_max = 1024 };

// Columns that one thread reduces over all rows at a time: wide enough to read memory in long
// pieces, narrow enough to occupy all threads. Results do not depend on it.
HK_INLINE int64_t strip_width(int64_t columns) {
    const int64_t share = columns / omp_get_max_threads() / 64 * 64;
    return share < 64 ? 64 : share > strip_max ? strip_max : share;
}

// to[j] (+)= sum[j]
HK_INLINE void strip_write(real *to, const real *sum, int64_t count, enum hk_write write) {
    for (int64_t j = 0; j < count; j++) to[j] = (write == HK_ADD ? to[j] : 0) + sum[j];
}

// sum[j] += rows of x, ascending.
HK_INLINE void strip_add_rows(real *sum, const real *x, int64_t row, int64_t rows, int64_t count) {
    for (int64_t i = 0; i < rows; i++) {
#pragma omp simd
        for (int64_t j = 0; j < count; j++) sum[j] += x[i * row + j];
    }
}

#endif
