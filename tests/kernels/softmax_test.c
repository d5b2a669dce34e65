// softmax against its definition, its gradient against the definition of that and, on target cpu, against central
// differences.
//
// Bound: of arguments up to 16 the difference to the maximum is off by 8 EPSILON, so its exponential by as much,
// relatively, and by 2 of its own; a sum of n such terms of one sign by n + 2 more; a reciprocal and a product follow.
#include "kernels/softmax/softmax.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {{1, 1},    {0, 8},    {5, 64},   {3, 513},
                                    {40, 100}, {2, 1100}, {1, 4500}, {2, 0}};

struct softmax_case {
    int64_t m, n;
    const real *a, *dr, *r;
    enum hk_write write;
};

static void run(const void *context, real *out) {
    const struct softmax_case *x = context;
    HK(softmax, out, x->a, x->m, x->n);
}

static void check_row(const real *r, const real *a, int64_t row, int64_t n) {
    wide most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) most = a[j] > most ? a[j] : most;
    for (int64_t j = 0; j < n; j++) sum += expl(a[j] - most);
    for (int64_t j = 0; j < n; j++) {
        const wide want = expl(a[j] - most) / sum;
        assert_value_near("r", row * n + j, r[j], want, ((double)n + 32) * EPSILON * (double)want);
    }
}

static void check(int64_t m, int64_t n) {
    real *a = test_reals(m * n, 1);
    for (int64_t i = 0; i < m * n; i++) a[i] *= 8;
    if (m * n > 2) a[1] = -INFINITY;
    const struct softmax_case x = {.m = m, .n = n, .a = a};
    real *r = test_nans(m * n);
    run_with_threads(run, &x, r, m * n);
    for (int64_t i = 0; i < m; i++) {
        check_row(r + i * n, a + i * n, i, n);
        real *one = test_nans(n);
        HK(softmax, one, a + i * n, 1, n);
        assert_same_bits("row", r + i * n, one, n);
    }
    real *in_place = test_copy(a, m * n);
    HK(softmax, in_place, in_place, m, n);
    assert_same_bits("in place", r, in_place, m * n);
    test_free_all();
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) check(shapes[s][0], shapes[s][1]);
}

static void large_numbers_and_nan(void **state) {
    (void)state;
    real *a = test_reals(6, 1), *r = test_nans(6);
    const double rows[] = {1e4, 1e4 - 64, -1e4, 1, NAN, 2};
    for (int i = 0; i < 6; i++) a[i] = test_value((real)rows[i]);
    HK(softmax, r, a, 2, 3);
    assert_value_near("large", 0, r[0], 1, 4 * EPSILON);
    assert_near("far below", 1, r[1], expl((wide)a[1] - a[0]), 1e-30);
    assert_near("beyond the range", 2, r[2], 0, 0);
    for (int i = 3; i < 6; i++) assert_true(isnan(r[i]));
    test_free_all();
}

static void run_gradient(const void *context, real *out) {
    const struct softmax_case *x = context;
    HK(softmax_grad, out, x->dr, x->r, x->m, x->n, x->write);
}

// Any r will do: it need not be a softmax.
static void check_gradient_of(int64_t m, int64_t n, enum hk_write write) {
    const bool add = write == HK_ADD;
    const struct softmax_case x = {
        .m = m, .n = n, .dr = test_reals(m * n, 2), .r = test_reals(m * n, 3), .write = write};
    real *da = add ? test_reals(m * n, 4) : test_nans(m * n);
    const real *old = test_copy(da, m * n);
    run_with_threads(run_gradient, &x, da, m * n);
    for (int64_t i = 0; i < m; i++) {
        wide along = 0, magnitude = 0;
        for (int64_t j = i * n; j < (i + 1) * n; j++) {
            along += (wide)x.dr[j] * x.r[j];
            magnitude += fabsl((wide)x.dr[j] * x.r[j]);
        }
        for (int64_t j = i * n; j < (i + 1) * n; j++) {
            const wide before = add ? old[j] : 0, d = x.r[j] * (x.dr[j] - along);
            const wide terms = fabsl(before) + fabsl(x.r[j]) * (1 + ((wide)n + 2) * magnitude);
            assert_value_near("da", j, da[j], before + d, 4 * EPSILON * (double)(terms + fabsl(d)));
        }
    }
    test_free_all();
}

static void gradient_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        check_gradient_of(shapes[s][0], shapes[s][1], HK_STORE);
        check_gradient_of(shapes[s][0], shapes[s][1], HK_ADD);
    }
}

#ifndef HK_VALUES_BF16 // r would be rounded in between.
struct loss_of {
    int64_t m, n;
    double *a, *r;
    const real *dr;
};

static double loss(const void *context) {
    const struct loss_of *x = context;
    double sum = 0;
    hk_softmax_f64(x->r, x->a, x->m, x->n);
    for (int64_t i = 0; i < x->m * x->n; i++) sum += (double)x->dr[i] * x->r[i];
    return sum;
}

static void gradient_matches_central_differences(void **state) {
    (void)state;
    enum { m = 3, n = 37 };
    const real *a = test_reals(m * n, 1), *dr = test_reals(m * n, 2);
    real *r = test_nans(m * n), *da = test_nans(m * n);
    HK(softmax, r, a, m, n);
    HK(softmax_grad, da, dr, r, m, n, HK_STORE);
    struct loss_of l = {m, n, test_widened(a, m * n), test_doubles(m * n), dr};
    check_gradient("da", da, l.a, m * n, loss, &l, (n + 40) * 4 * EPSILON);
    test_free_all();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(large_numbers_and_nan),
        cmocka_unit_test(gradient_is_within_the_bound),
#ifndef HK_VALUES_BF16
        cmocka_unit_test(gradient_matches_central_differences),
#endif
    };
    return RUN_KERNEL_TESTS(tests);
}
