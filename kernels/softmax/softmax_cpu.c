// CPU twin of softmax. Sums are in double across blocks.
#include "kernels/softmax/softmax.h"

#include "kernels/cpu/row.h"

enum { block = 256 };

HK_KERNEL(void, softmax, (real * r, const real *a, int64_t m, int64_t n), (r, a, m, n),
          HK_PASS(2 * m * n, 0, "m n", m, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        const real *from = a + i * n;
        real *to = r + i * n;
        const real peak = row_max(from, n);
        double total = 0;
        for (int64_t begin = 0; begin < n; begin += block) {
            const int64_t end = n - begin < block ? n : begin + block;
#pragma omp simd
            for (int64_t j = begin; j < end; j++) to[j] = HK_REAL(exp)(from[j] - peak);
            total += row_sum(to + begin, end - begin);
        }
        const real share = (real)(1 / total);
#pragma omp simd
        for (int64_t j = 0; j < n; j++) to[j] *= share;
    }
}

HK_KERNEL(void, softmax_grad,
          (real * da, const real *dr, const real *r, int64_t m, int64_t n, enum hk_write write),
          (da, dr, r, m, n, write), HK_PASS(2 * m * n + HK_WRITTEN(m * n, write), 0, "m n", m, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        const real *back = dr + i * n, *share = r + i * n;
        real *to = da + i * n;
        double along = 0;
        for (int64_t begin = 0; begin < n; begin += block) {
            const int64_t count = n - begin < block ? n - begin : block;
            along += row_dot(back + begin, share + begin, count);
        }
        const real mean = (real)along;
#pragma omp simd
        for (int64_t j = 0; j < n; j++)
            to[j] = (write == HK_ADD ? to[j] : 0) + share[j] * (back[j] - mean);
    }
}
