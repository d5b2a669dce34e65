// Norms over the last dimensions of x: rows of `width` elements.
#include <math.h>

#include "tests/interpret/machine.h"

static int64_t width_of(MlirOperation op, const struct tensor *x) {
    int64_t width = 1;
    for (int64_t i = 1; i <= hec_get_int(op, "over"); i++)
        width *= x->shape.size[x->shape.rank - i];
    return width;
}

static double affine(const struct tensor *t, int64_t i, double absent) {
    return t ? t->at[i] : absent;
}

static double mean_of(const double *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum / (double)count;
}

// y = (x - mean) rstd gain + bias. Norms without a mean take 0.
static void normalize(struct machine *m, MlirOperation op, struct tensor *mean,
                      struct tensor *rstd) {
    const struct tensor *x = in(m, op, 0), *gain = has_in(op, 1) ? in(m, op, 1) : NULL;
    const struct tensor *bias = has_in(op, 2) ? in(m, op, 2) : NULL;
    struct tensor *y = out(m, op, 0);
    const int64_t width = width_of(op, x);
    for (int64_t row = 0; row < x->count / width; row++) {
        const double *from = x->at + row * width, middle = mean ? mean_of(from, width) : 0;
        double squares = 0;
        for (int64_t i = 0; i < width; i++) squares += (from[i] - middle) * (from[i] - middle);
        rstd->at[row] = 1 / sqrt(squares / (double)width + hec_get_float(op, "eps"));
        if (mean) mean->at[row] = middle;
        for (int64_t i = 0; i < width; i++) {
            const double hat = (from[i] - middle) * rstd->at[row];
            y->at[row * width + i] = hat * affine(gain, i, 1) + affine(bias, i, 0);
        }
    }
}

void run_rmsnorm(struct machine *m, MlirOperation op) {
    normalize(m, op, NULL, out(m, op, 1));
}

void run_layernorm(struct machine *m, MlirOperation op) {
    struct tensor *mean = out(m, op, 1);
    normalize(m, op, mean, out(m, op, 2));
}

// dx = rstd (g dy - mean(g dy) - hat mean(g dy hat)), the first mean where there is one in the norm.
static void differentiate(struct machine *m, MlirOperation op, const struct tensor *mean,
                          const struct tensor *rstd, const struct tensor *gain) {
    const struct tensor *dy = in(m, op, 0), *x = in(m, op, 1);
    const int results = (int)mlirOperationGetNumResults(op);
    struct tensor *dx = out(m, op, 0), *dgain = results > 1 ? out(m, op, 1) : NULL;
    struct tensor *dbias = results > 2 ? out(m, op, 2) : NULL;
    const int64_t width = width_of(op, x);
    if (dgain) fill(dgain, 0);
    if (dbias) fill(dbias, 0);
    for (int64_t e = 0; e < x->count; e++) {
        const int64_t row = e / width, begin = row * width;
        double sum = 0, with_hat = 0, hat = 0;
        for (int64_t i = 0; i < width; i++) {
            const double at = (x->at[begin + i] - (mean ? mean->at[row] : 0)) * rstd->at[row];
            const double g = dy->at[begin + i] * affine(gain, i, 1);
            sum += g, with_hat += g * at;
            if (begin + i == e) hat = at;
        }
        const double g = dy->at[e] * affine(gain, e - begin, 1);
        const double shift = mean ? sum / (double)width : 0;
        dx->at[e] = rstd->at[row] * (g - shift - hat * with_hat / (double)width);
        if (dgain) dgain->at[e - begin] += dy->at[e] * hat;
        if (dbias) dbias->at[e - begin] += dy->at[e];
    }
    spend(m, op, x->count * width);
}

void run_rmsnorm_grad(struct machine *m, MlirOperation op) {
    differentiate(m, op, NULL, in(m, op, 2), has_in(op, 3) ? in(m, op, 3) : NULL);
}

void run_layernorm_grad(struct machine *m, MlirOperation op) {
    differentiate(m, op, in(m, op, 2), in(m, op, 3), has_in(op, 4) ? in(m, op, 4) : NULL);
}
