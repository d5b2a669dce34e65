// CPU twin of rmsnorm. Forward and dx go by rows, dgain by strips of columns.
#include "kernels/rmsnorm/rmsnorm.h"

#include "kernels/cpu/row.h"

HK_KERNEL(void, rmsnorm,
          (real * y, real *rstd, const real *x, const real *gain, int64_t m, int64_t n, double eps),
          (y, rstd, x, gain, m, n, eps), HK_PASS(2 * m * n, 0, "m n", m, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        const real *from = x + i * n;
        real *to = y + i * n;
        const real r = (real)(1.0 / sqrt((double)row_dot(from, from, n) / (double)n + eps));
        rstd[i] = r;
#pragma omp simd
        for (int64_t j = 0; j < n; j++) to[j] = from[j] * r * (gain ? gain[j] : 1);
    }
}

static void grad_of_row(real *dx, const real *dy, const real *x, const real *gain, real rstd,
                        int64_t n, enum hk_write write) {
    real along = 0; // sum of g dy x
    if (gain) {
        enum { block = 256 };
        real gained[block];
        for (int64_t begin = 0; begin < n; begin += block) {
            const int64_t count = n - begin < block ? n - begin : block;
#pragma omp simd
            for (int64_t j = 0; j < count; j++) gained[j] = dy[begin + j] * gain[begin + j];
            along += row_dot(gained, x + begin, count);
        }
    } else {
        along = row_dot(dy, x, n);
    }
    const real back = along * rstd * rstd / (real)n;
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const real d = rstd * (dy[j] * (gain ? gain[j] : 1) - x[j] * back);
        dx[j] = (write == HK_ADD ? dx[j] : 0) + d;
    }
}

static void grad_of_gain(real *dgain, const real *dy, const real *x, const real *rstd, int64_t m,
                         int64_t n, int64_t count, enum hk_write write) {
    real sum[strip_max] = {0};
    for (int64_t i = 0; i < m; i++) {
        const real r = rstd[i];
#pragma omp simd
        for (int64_t j = 0; j < count; j++) sum[j] += dy[i * n + j] * (x[i * n + j] * r);
    }
    strip_write(dgain, sum, count, write);
}

HK_KERNEL(void, rmsnorm_grad,
          (real * dx, real *dgain, const real *dy, const real *x, const real *rstd,
           const real *gain, int64_t m, int64_t n, enum hk_write dx_write,
           enum hk_write dgain_write),
          (dx, dgain, dy, x, rstd, gain, m, n, dx_write, dgain_write),
          HK_PASS(2 * m * n + HK_WRITTEN(m * n, dx_write), 0, "m n", m, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        grad_of_row(dx + i * n, dy + i * n, x + i * n, gain, rstd[i], n, dx_write);
    }
    if (!dgain) return;
    const int64_t strip = strip_width(n);
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < n; j += strip) {
        const int64_t count = n - j < strip ? n - j : strip;
        grad_of_gain(dgain + j, dy + j, x + j, rstd, m, n, count, dgain_write);
    }
}
