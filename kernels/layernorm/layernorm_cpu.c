// CPU twin of layernorm. Forward and dx go by rows, dgain and dbias by strips of columns.
#include "kernels/layernorm/layernorm.h"

#include "kernels/cpu/row.h"

enum { block = 256 };

// Sum of (x - mean)^2: in a second pass, since the one-pass formula cancels.
static real squares_about(const real *x, real mean, int64_t n) {
    real centered[block];
    real sum = 0;
    for (int64_t begin = 0; begin < n; begin += block) {
        const int64_t count = n - begin < block ? n - begin : block;
#pragma omp simd
        for (int64_t j = 0; j < count; j++) centered[j] = x[begin + j] - mean;
        sum += row_dot(centered, centered, count);
    }
    return sum;
}

HK_KERNEL(void, layernorm,
          (real * y, real *mean, real *rstd, const real *x, const real *gain, const real *bias,
           int64_t m, int64_t n, double eps),
          (y, mean, rstd, x, gain, bias, m, n, eps), HK_PASS(2 * m * n, 0, "m n", m, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        const real *from = x + i * n;
        real *to = y + i * n;
        const real center = row_sum(from, n) / (real)n;
        const double variance = (double)squares_about(from, center, n) / (double)n;
        const real r = (real)(1.0 / sqrt(variance + eps));
        mean[i] = center;
        rstd[i] = r;
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            to[j] = (from[j] - center) * r * (gain ? gain[j] : 1) + (bias ? bias[j] : 0);
        }
    }
}

static void grad_of_row(real *dx, const real *dy, const real *x, const real *gain, real mean,
                        real rstd, int64_t n, enum hk_write write) {
    real gained[block], normed[block];
    real flat = 0, along = 0; // Sums of g dy and of g dy xhat.
    for (int64_t begin = 0; begin < n; begin += block) {
        const int64_t count = n - begin < block ? n - begin : block;
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            gained[j] = dy[begin + j] * (gain ? gain[begin + j] : 1);
            normed[j] = (x[begin + j] - mean) * rstd;
        }
        flat += row_sum(gained, count);
        along += row_dot(gained, normed, count);
    }
    flat /= (real)n;
    along /= (real)n;
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        const real xhat = (x[j] - mean) * rstd;
        const real d = rstd * (dy[j] * (gain ? gain[j] : 1) - flat - xhat * along);
        dx[j] = (write == HK_ADD ? dx[j] : 0) + d;
    }
}

static void grad_of_gain(real *dgain, const real *dy, const real *x, const real *mean,
                         const real *rstd, int64_t m, int64_t n, int64_t count,
                         enum hk_write write) {
    real sum[strip_max] = {0};
    for (int64_t i = 0; i < m; i++) {
        const real center = mean[i], r = rstd[i];
#pragma omp simd
        for (int64_t j = 0; j < count; j++) {
            sum[j] += dy[i * n + j] * ((x[i * n + j] - center) * r);
        }
    }
    strip_write(dgain, sum, count, write);
}

HK_KERNEL(void, layernorm_grad,
          (real * dx, real *dgain, real *dbias, const real *dy, const real *x, const real *mean,
           const real *rstd, const real *gain, int64_t m, int64_t n, enum hk_write dx_write,
           enum hk_write dparam_write),
          (dx, dgain, dbias, dy, x, mean, rstd, gain, m, n, dx_write, dparam_write),
          HK_PASS(2 * m * n + HK_WRITTEN(m * n, dx_write), 0, "m n", m, n)) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; i++) {
        grad_of_row(dx + i * n, dy + i * n, x + i * n, gain, mean[i], rstd[i], n, dx_write);
    }
    const int64_t strip = strip_width(n);
#pragma omp parallel for schedule(static)
    for (int64_t j = 0; j < n; j += strip) {
        const int64_t count = n - j < strip ? n - j : strip;
        if (dgain) grad_of_gain(dgain + j, dy + j, x + j, mean, rstd, m, n, count, dparam_write);
        if (dbias) {
            real sum[strip_max] = {0};
            strip_add_rows(sum, dy + j, n, m, count);
            strip_write(dbias + j, sum, count, dparam_write);
        }
    }
}
