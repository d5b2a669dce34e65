// muon against its formulas.
//
// Bounds: each result is a sum of two products, so a few roundings of what is added.
#include "kernels/muon/muon.h"

#include "tests/kernels/kernel_case.h"

static const int64_t counts[] = {0, 1, 63, 1000, 20012};

static const struct hk_muon_rule plain_rule = {
    .lr = 0.01, .momentum = 0.9, .decay = 0.3, .grad_scale = 0.5};

static void look_ahead(const void *context, real *out) {
    const int64_t n = *(const int64_t *)context;
    HK(muon_look_ahead, out, out + n, n, &plain_rule);
}

static void it_looks_ahead(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(counts); s++) {
        const int64_t n = counts[s];
        real *arrays = test_reals(2 * n, 1); // gradient, momentum
        const real *old = test_copy(arrays, 2 * n);
        run_with_threads(look_ahead, &n, arrays, 2 * n);
        for (int64_t i = 0; i < n; i++) {
            const wide g = (wide)plain_rule.grad_scale * old[i];
            const wide m = (wide)plain_rule.momentum * old[n + i] + g;
            const double bound = 4 * EPSILON * (fabs((double)g) + fabs((double)old[n + i]));
            assert_near("momentum", i, arrays[n + i], m, bound);
            assert_near("look ahead", i, arrays[i], g + (wide)plain_rule.momentum * m, 2 * bound);
        }
        test_free_all();
    }
}

// Two arrays.
static void normalize(const void *context, real *out) {
    double *squares = test_doubles(2);
    squares[0] = 7;
    squares[1] = 9;
    HK(muon_normalize, out, squares, 0.5, *(const int64_t *)context, 2);
}

static void it_divides_by_the_norm(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(counts); s++) {
        const int64_t n = counts[s];
        real *x = test_reals(2 * n, 2);
        const real *old = test_copy(x, 2 * n);
        run_with_threads(normalize, &n, x, 2 * n);
        for (int64_t i = 0; i < 2 * n; i++)
            assert_near("x", i, x[i], old[i] / ((i < n ? sqrtl(7) : 3) + 0.5L),
                        2 * EPSILON * fabs((double)old[i]));
        test_free_all();
    }
    real *zeros = test_nans(3);
    zeros[0] = zeros[1] = zeros[2] = 0;
    double *squares = test_doubles(1);
    *squares = 0;
    HK(muon_normalize, zeros, squares, 1e-7, 3, 1);
    for (int i = 0; i < 3; i++) assert_true(zeros[i] == 0);
    test_free_all();
}

struct pair {
    int64_t n;
    const real *y;
};

static void blend(const void *context, real *out) {
    const struct pair *x = context;
    HK(muon_blend, out, 3.4445, x->y, -0.5, x->n);
}

// Two arrays, the second one behind the first, with the same numbers.
static void move(const void *context, real *out) {
    const struct pair *x = context;
    real *const value[] = {out, out + x->n};
    HK(muon_move, value, x->y, 2.5, x->n, x->n, 2, &plain_rule);
}

static void matrices_are_blended(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(counts); s++) {
        const int64_t n = counts[s];
        const struct pair pair = {n, test_reals(2 * n, 3)};
        real *x = test_reals(2 * n, 4), *value = test_copy(x, 2 * n);
        const real *old = test_copy(x, 2 * n);
        run_with_threads(blend, &pair, x, n);
        run_with_threads(move, &pair, value, 2 * n);
        for (int64_t i = 0; i < 2 * n; i++) {
            const double size = fabs((double)old[i]) + fabs((double)pair.y[i]);
            if (i < n)
                assert_near("x", i, x[i], 3.4445L * old[i] - 0.5L * pair.y[i], 8 * EPSILON * size);
            assert_near("value", i, value[i], (1 - 0.003L) * old[i] - 0.025L * pair.y[i],
                        4 * EPSILON * size);
        }
        test_free_all();
    }
}

// Facts known only later: a factor for the gradients, and that nothing is to be done.
static void a_step_is_scaled_or_stopped(void **state) {
    (void)state;
    enum { N = 68 };
    struct hk_clipped *clipped = (struct hk_clipped *)test_doubles(4);
    struct hk_muon_rule rule = plain_rule;
    real *start = test_reals(3 * N, 5), *a = test_copy(start, 3 * N), *b = test_copy(a, 3 * N);
    rule.grad_scale = 0.125; // gradient, momentum, value
    HK(muon_look_ahead, a, a + N, N, &rule);
    rule.grad_scale = 0.5;
    rule.clipped = clipped;
    *clipped = (struct hk_clipped){.scale = 0.25};
    HK(muon_look_ahead, b, b + N, N, &rule);
    assert_same_bits("scaled", a, b, 3 * N);
    for (int64_t stopped = HK_STEP_SKIPPED; stopped <= HK_STEP_STOPPED; stopped++) {
        *clipped = (struct hk_clipped){.scale = 0.25, .stopped = stopped};
        real *c = test_copy(start, 3 * N);
        HK(muon_look_ahead, c, c + N, N, &rule);
        for (int i = 0; i < N; i++)
            assert_true(c[i] == (stopped == HK_STEP_SKIPPED ? 0 : start[i]));
        real *const value[] = {c + 2 * N};
        HK(muon_move, value, start, 1, N, 0, 1, &rule);
        assert_same_bits("momentum and value", start + N, c + N, 2 * N);
    }
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_ahead),
        cmocka_unit_test(it_divides_by_the_norm),
        cmocka_unit_test(matrices_are_blended),
        cmocka_unit_test(a_step_is_scaled_or_stopped),
    };
    return RUN_KERNEL_TESTS(tests);
}
