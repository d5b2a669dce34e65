// CPU twin of spread.
#include "kernels/spread/spread.h"

#include "kernels/cpu/row.h"

HK_KERNEL(void, spread,
          (real * y, const real *const *chunk, int64_t offset, const int32_t *first,
           int64_t experts, int64_t n, enum hk_write write),
          (y, chunk, offset, first, experts, n, write),
          HK_PASS(experts *n + HK_WRITTEN(first[experts] * n, write), experts, "~rows experts n",
                  first[experts], experts, n)) {
    const int64_t rows = first[experts];
#pragma omp parallel
    {
        const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        int64_t e = 0;
        for (int64_t r = rows * thread / threads; r < rows * (thread + 1) / threads; r++) {
            while (first[e + 1] <= r) e++; // Ends: r < first[experts].
            const real *vector = chunk[e] + offset;
            real *to = y + r * n;
#pragma omp simd
            for (int64_t j = 0; j < n; j++) to[j] = (write == HK_ADD ? to[j] : 0) + vector[j];
        }
    }
}

HK_KERNEL(void, spread_grad,
          (real *const *chunk, int64_t offset, const real *dy, const int32_t *first,
           int64_t experts, int64_t n, enum hk_write write),
          (chunk, offset, dy, first, experts, n, write),
          HK_PASS(first[experts] * n + HK_WRITTEN(experts * n, write), experts, "~rows experts n",
                  first[experts], experts, n)) {
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t e = 0; e < experts; e++) {
        for (int64_t begin = 0; begin < n; begin += strip_max) {
            const int64_t count = n - begin < strip_max ? n - begin : strip_max;
            real sum[strip_max] = {0};
            if (first[e] == first[e + 1] && write == HK_ADD) continue; // May not even be here.
            strip_add_rows(sum, dy + first[e] * n + begin, n, first[e + 1] - first[e], count);
            strip_write(chunk[e] + offset + begin, sum, count, write);
        }
    }
}
