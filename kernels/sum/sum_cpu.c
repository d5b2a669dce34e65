// CPU twin of sum. Both forms read the matrix once, in memory order.
#include "kernels/sum/sum.h"

#include "kernels/cpu/row.h"

HK_KERNEL(void, sum_rows, (real * y, const real *x, int64_t m, int64_t n, enum hk_write write),
          (y, x, m, n, write), HK_PASS(m *n + HK_WRITTEN(n, write), 0, "m n", m, n)) {
    const int64_t strip = strip_width(n);
#pragma omp parallel for schedule(static)
    for (int64_t begin = 0; begin < n; begin += strip) {
        const int64_t count = n - begin < strip ? n - begin : strip;
        real sum[strip_max] = {0};
        strip_add_rows(sum, x + begin, n, m, count);
        strip_write(y + begin, sum, count, write);
    }
}

HK_KERNEL(void, sum_columns, (real * y, const real *x, int64_t m, int64_t n, enum hk_write write),
          (y, x, m, n, write), HK_PASS(m *n + HK_WRITTEN(m, write), 0, "m n", m, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        y[i] = (write == HK_ADD ? y[i] : 0) + row_sum(x + i * n, n);
    }
}
