// layernorm against its definition; gradient against central differences.
//
// Bound: the mean is off by n EPSILON max|x|, so x - mean is, absolutely; the variance is a sum of
// n terms of one sign. rstd multiplies the absolute error.
#include "kernels/layernorm/layernorm.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {{1, 2}, {0, 8}, {5, 64}, {3, 513}, {40, 100}, {2, 1100}};
static const double eps = 1e-5;

struct norm_case {
    int64_t m, n;
    const real *x, *gain, *bias, *dy, *mean, *rstd;
    enum hk_write write;
};

static void run(const void *context, real *out) {
    const struct norm_case *x = context;
    real *mean = out + x->m * x->n;
    HK(layernorm, out, mean, mean + x->m, x->x, x->gain, x->bias, x->m, x->n, eps);
}

static void check_row(const struct norm_case *x, const real *out, int64_t i) {
    const int64_t m = x->m, n = x->n;
    wide sum = 0, squares = 0;
    for (int64_t j = 0; j < n; j++) sum += x->x[i * n + j];
    const wide mean = sum / n;
    for (int64_t j = 0; j < n; j++) {
        squares += (x->x[i * n + j] - mean) * (x->x[i * n + j] - mean);
    }
    const wide rstd = 1 / sqrtl(squares / n + eps);
    const double unit = ((double)n + 8) * EPSILON;
    assert_near("mean", i, out[m * n + i], mean, unit);
    assert_near("rstd", i, out[m * n + m + i], rstd, 3 * unit * (double)(rstd + rstd * rstd));
    for (int64_t j = 0; j < n; j++) {
        const wide xhat = (x->x[i * n + j] - mean) * rstd;
        const wide want = xhat * (x->gain ? x->gain[j] : 1) + (x->bias ? x->bias[j] : 0);
        const double bound = 3 * unit * (double)((rstd + rstd * rstd) * (fabsl(xhat) + 1) + 1);
        assert_value_near("y", i * n + j, out[i * n + j], want, bound);
    }
}

static void check(int64_t m, int64_t n, bool affine) {
    const struct norm_case x = {
        .m = m,
        .n = n,
        .x = test_reals(m * n, 1),
        .gain = affine ? test_reals(n, 2) : NULL,
        .bias = affine ? test_reals(n, 3) : NULL,
    };
    const int64_t count = m * n + 2 * m;
    real *out = test_nans(count);
    run_with_threads(run, &x, out, count);
    for (int64_t i = 0; i < m; i++) {
        check_row(&x, out, i);
        real *row = test_nans(n);
        HK(layernorm, row, test_nans(1), test_nans(1), x.x + i * n, x.gain, x.bias, 1, n, eps);
        assert_same_bits("row", out + i * n, row, n);
    }
    test_free_all();
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        check(shapes[s][0], shapes[s][1], false);
        check(shapes[s][0], shapes[s][1], true);
    }
}

struct norm_loss {
    int64_t m, n;
    double *x, *gain, *bias, *y, *mean, *rstd;
    const double *dy;
};

static double loss(const void *context) {
    const struct norm_loss *x = context;
    double sum = 0;
    hk_layernorm_f64(x->y, x->mean, x->rstd, x->x, x->gain, x->bias, x->m, x->n, eps);
    for (int64_t i = 0; i < x->m * x->n; i++) sum += x->dy[i] * x->y[i];
    return sum;
}

static void run_gradient(const void *context, real *out) {
    const struct norm_case *x = context;
    real *dgain = out + x->m * x->n;
    HK(layernorm_grad, out, dgain, dgain + x->n, x->dy, x->x, x->mean, x->rstd, x->gain, x->m, x->n,
       x->write, x->write);
}

static void check_gradients(int64_t m, int64_t n, enum hk_write write) {
    struct norm_case x = {.m = m, .n = n, .write = write};
    x.x = test_reals(m * n, 1);
    x.gain = test_reals(n, 2);
    x.bias = test_reals(n, 5);
    x.dy = test_reals(m * n, 3);
    real *forward = test_nans(m * n + 2 * m);
    run(&x, forward);
    x.mean = forward + m * n;
    x.rstd = x.mean + m;
    const int64_t count = m * n + 2 * n;
    real *grad = write == HK_ADD ? test_reals(count, 4) : test_nans(count);
    real *old = test_copy(grad, count);
    run_with_threads(run_gradient, &x, grad, count);
    const real *written = test_copy(grad, count);
    for (int64_t i = 0; i < count && write == HK_ADD; i++) grad[i] -= old[i];

    struct norm_loss l = {.m = m, .n = n};
    l.x = test_widened(x.x, m * n);
    l.gain = test_widened(x.gain, n);
    l.bias = test_widened(x.bias, n);
    l.dy = test_widened(x.dy, m * n);
    l.y = test_doubles(m * n);
    l.mean = test_doubles(m);
    l.rstd = test_doubles(m);
    double steepest = 1;
    for (int64_t i = 0; i < m; i++) steepest = fmax(steepest, (double)x.rstd[i]);
    const double rounding = EPSILON * ((double)(m + n) + 8) * steepest * steepest * 8;
    check_value_gradient("dx", grad, written, l.x, m * n, loss, &l, rounding);
    check_gradient("dgain", grad + m * n, l.gain, n, loss, &l, rounding);
    check_gradient("dbias", grad + m * n + n, l.bias, n, loss, &l, rounding);

    real *plain = test_nans(m * n);
    HK(layernorm_grad, plain, NULL, NULL, x.dy, x.x, x.mean, x.rstd, NULL, m, n, HK_STORE,
       HK_STORE);
    for (int64_t j = 0; j < n; j++) l.gain[j] = 1;
    check_value_gradient("dx, no gain", plain, plain, l.x, m * n, loss, &l, rounding);
    test_free_all();
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    check_gradients(3, 7, HK_STORE);
    check_gradients(3, 7, HK_ADD);
    check_gradients(2, 300, HK_STORE);
    check_gradients(70, 5, HK_STORE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(gradients_match_central_differences),
    };
    return RUN_KERNEL_TESTS(tests);
}
