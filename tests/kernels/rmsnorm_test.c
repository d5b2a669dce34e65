// rmsnorm against its definition; gradient against central differences.
//
// Bound: the mean of squares is a sum of n terms of one sign, so its relative error is at most
// (n + 2) EPSILON; the root halves it; two products and one rounding follow.
#include "kernels/rmsnorm/rmsnorm.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {{1, 1}, {0, 8}, {5, 64}, {3, 513}, {40, 100}, {2, 1100}};
static const double eps = 1e-5;

struct norm_case {
    int64_t m, n;
    const real *x, *gain, *dy, *rstd;
    enum hk_write write;
};

static void run(const void *context, real *out) {
    const struct norm_case *x = context;
    HK(rmsnorm, out, out + x->m * x->n, x->x, x->gain, x->m, x->n, eps);
}

static void check(int64_t m, int64_t n, bool with_gain) {
    const struct norm_case x = {
        .m = m,
        .n = n,
        .x = test_reals(m * n, 1),
        .gain = with_gain ? test_reals(n, 2) : NULL,
    };
    real *out = test_nans(m * n + m);
    run_with_threads(run, &x, out, m * n + m);
    const double relative = ((double)n + 8) * EPSILON;
    for (int64_t i = 0; i < m; i++) {
        wide sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (wide)x.x[i * n + j] * x.x[i * n + j];
        const wide rstd = 1 / sqrtl(sum / n + eps);
        assert_near("rstd", i, out[m * n + i], rstd, relative * (double)rstd);
        for (int64_t j = 0; j < n; j++) {
            const wide want = x.x[i * n + j] * rstd * (with_gain ? x.gain[j] : 1);
            assert_value_near("y", i * n + j, out[i * n + j], want, relative * fabs((double)want));
        }
        real *row = test_nans(n), *one = test_nans(1);
        HK(rmsnorm, row, one, x.x + i * n, x.gain, 1, n, eps);
        assert_same_bits("row", out + i * n, row, n);
    }
    real *in_place = test_copy(x.x, m * n);
    HK(rmsnorm, in_place, test_nans(m), in_place, x.gain, m, n, eps);
    assert_same_bits("in place", out, in_place, m * n);
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
    double *x, *gain, *y, *rstd;
    const double *dy;
};

static double loss(const void *context) {
    const struct norm_loss *x = context;
    double sum = 0;
    hk_rmsnorm_f64(x->y, x->rstd, x->x, x->gain, x->m, x->n, eps);
    for (int64_t i = 0; i < x->m * x->n; i++) sum += x->dy[i] * x->y[i];
    return sum;
}

static void run_gradient(const void *context, real *out) {
    const struct norm_case *x = context;
    HK(rmsnorm_grad, out, out + x->m * x->n, x->dy, x->x, x->rstd, x->gain, x->m, x->n, x->write,
       x->write);
}

static void check_gradients(int64_t m, int64_t n, enum hk_write write) {
    struct norm_case x = {.m = m, .n = n, .write = write};
    x.x = test_reals(m * n, 1);
    x.gain = test_reals(n, 2);
    x.dy = test_reals(m * n, 3);
    real *y = test_nans(m * n), *rstd = test_nans(m);
    HK(rmsnorm, y, rstd, x.x, x.gain, m, n, eps);
    x.rstd = rstd;
    const int64_t count = m * n + n;
    real *grad = write == HK_ADD ? test_reals(count, 4) : test_nans(count);
    real *old = test_copy(grad, count);
    run_with_threads(run_gradient, &x, grad, count);
    const real *written = test_copy(grad, count);
    for (int64_t i = 0; i < count && write == HK_ADD; i++) grad[i] -= old[i];

    struct norm_loss l = {.m = m, .n = n};
    l.x = test_widened(x.x, m * n);
    l.gain = test_widened(x.gain, n);
    l.dy = test_widened(x.dy, m * n);
    l.y = test_doubles(m * n);
    l.rstd = test_doubles(m);
    double steepest = 1; // Terms of dx are at most rstd (1 + n xhat^2 / n), of dgain xhat.
    for (int64_t i = 0; i < m; i++) steepest = fmax(steepest, (double)rstd[i]);
    const double rounding = EPSILON * ((double)(m + n) + 8) * steepest * steepest * 4;
    check_value_gradient("dx", grad, written, l.x, m * n, loss, &l, rounding);
    check_gradient("dgain", grad + m * n, l.gain, n, loss, &l, rounding);

    // Without a gain, and without its gradient.
    real *plain = test_nans(m * n);
    HK(rmsnorm_grad, plain, NULL, x.dy, x.x, rstd, NULL, m, n, HK_STORE, HK_STORE);
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
