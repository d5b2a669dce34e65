// Norms and softmax over the last dimensions of x: rows of `width` elements. Those of one statistic (HEC_NORM) are their kernels for
// doubles, which tests/kernels compares with their definitions.
#include <math.h>

#include "kernels/types.h"
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

// ---- norms of one statistic

typedef void norm_fn(double *y, double *rstd, const double *x, const double *gain, int64_t m,
                     int64_t n, double eps);
typedef void grad_fn(double *dx, double *dgain, const double *dy, const double *x,
                     const double *rstd, const double *gain, int64_t m, int64_t n,
                     enum hk_write dx_write, enum hk_write dgain_write);

#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_NORM(id)                                                                               \
    norm_fn hk_##id##_f64;                                                                         \
    grad_fn hk_##id##_grad_f64;
#include "ir/ops.def"

static norm_fn *const norms[HEC_OP_OTHER] = {
#define HEC_NORM(id) [HEC_OP_##id] = hk_##id##_f64,
#include "ir/ops.def"
};
static grad_fn *const grads[HEC_OP_OTHER] = {
#define HEC_NORM(id) [HEC_OP_##id##_grad] = hk_##id##_grad_f64,
#include "ir/ops.def"
};
#undef HEC_OP

void run_norm(struct machine *m, MlirOperation op) {
    const struct tensor *x = in(m, op, 0), *gain = has_in(op, 1) ? in(m, op, 1) : NULL;
    const int64_t width = width_of(op, x);
    norms[hec_op_of(op)](out(m, op, 0)->at, out(m, op, 1)->at, x->at, gain ? gain->at : NULL,
                         x->count / width, width, hec_get_float(op, "eps"));
}

void run_norm_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dy = in(m, op, 0), *x = in(m, op, 1), *rstd = in(m, op, 2);
    const struct tensor *gain = has_in(op, 3) ? in(m, op, 3) : NULL;
    const int64_t width = width_of(op, x);
    struct tensor *dx = out(m, op, 0);
    struct tensor *dgain = mlirOperationGetNumResults(op) > 1 ? out(m, op, 1) : NULL;
    grads[hec_op_of(op)](dx->at, dgain ? dgain->at : NULL, dy->at, x->at, rstd->at,
                         gain ? gain->at : NULL, x->count / width, width, HK_STORE, HK_STORE);
}

// ---- layernorm

// y = (x - mean) rstd gain + bias.
void run_layernorm(struct machine *m, MlirOperation op) {
    struct tensor *mean = out(m, op, 1), *rstd = out(m, op, 2);
    const struct tensor *x = in(m, op, 0), *gain = has_in(op, 1) ? in(m, op, 1) : NULL;
    const struct tensor *bias = has_in(op, 2) ? in(m, op, 2) : NULL;
    struct tensor *y = out(m, op, 0);
    const int64_t width = width_of(op, x);
    for (int64_t row = 0; row < x->count / width; row++) {
        const double *from = x->at + row * width, middle = mean_of(from, width);
        double squares = 0;
        for (int64_t i = 0; i < width; i++) squares += (from[i] - middle) * (from[i] - middle);
        rstd->at[row] = 1 / sqrt(squares / (double)width + hec_get_float(op, "eps"));
        mean->at[row] = middle;
        for (int64_t i = 0; i < width; i++) {
            const double hat = (from[i] - middle) * rstd->at[row];
            y->at[row * width + i] = hat * affine(gain, i, 1) + affine(bias, i, 0);
        }
    }
}

// dx = rstd (g dy - mean(g dy) - hat mean(g dy hat)).
void run_layernorm_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dy = in(m, op, 0), *x = in(m, op, 1), *mean = in(m, op, 2);
    const struct tensor *rstd = in(m, op, 3), *gain = has_in(op, 4) ? in(m, op, 4) : NULL;
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
            const double at = (x->at[begin + i] - mean->at[row]) * rstd->at[row];
            const double g = dy->at[begin + i] * affine(gain, i, 1);
            sum += g, with_hat += g * at;
            if (begin + i == e) hat = at;
        }
        const double g = dy->at[e] * affine(gain, e - begin, 1);
        dx->at[e] = rstd->at[row] * (g - sum / (double)width - hat * with_hat / (double)width);
        if (dgain) dgain->at[e - begin] += dy->at[e] * hat;
        if (dbias) dbias->at[e - begin] += dy->at[e];
    }
    spend(m, op, x->count * width);
}

// ---- softmax

void run_softmax(struct machine *m, MlirOperation op) {
    const struct tensor *a = in(m, op, 0);
    struct tensor *r = out(m, op, 0);
    const int64_t width = width_of(op, a);
    for (int64_t row = 0; row < a->count; row += width) {
        double most = a->at[row], sum = 0;
        for (int64_t j = row; j < row + width; j++) most = fmax(most, a->at[j]);
        for (int64_t j = row; j < row + width; j++) sum += exp(a->at[j] - most);
        for (int64_t j = row; j < row + width; j++) r->at[j] = exp(a->at[j] - most) / sum;
    }
}

void run_softmax_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dr = in(m, op, 0), *r = in(m, op, 1);
    struct tensor *da = out(m, op, 0);
    const int64_t width = width_of(op, r);
    for (int64_t row = 0; row < r->count; row += width) {
        double along = 0;
        for (int64_t j = row; j < row + width; j++) along += dr->at[j] * r->at[j];
        for (int64_t j = row; j < row + width; j++) da->at[j] = r->at[j] * (dr->at[j] - along);
    }
}
