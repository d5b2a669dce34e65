// adamw against the textbook formula, over several steps.
//
// Bound: each state is a sum of two products; the update is a quotient of them, a few roundings
// times its size lr (|mean| / corrected root + decay |param|).
#include "kernels/adamw/adamw.h"

#include "tests/kernels/kernel_case.h"

static const int64_t counts[] = {0, 1, 63, 1000, 20011};

struct adamw_case {
    int64_t count;
    struct hk_adamw_rule rule;
};

static void run(const void *context, real *out) {
    const struct adamw_case *x = context;
    const int64_t n = x->count;
    HK(adamw, out, out + n, out + 2 * n, out + 3 * n, n, &x->rule);
}

static void check_step(struct adamw_case *x, real *state, int step) {
    const int64_t n = x->count;
    struct hk_adamw_rule *r = &x->rule;
    const real *grad = test_reals(n, (uint64_t)(20 + step));
    memcpy(state + n, grad, (size_t)n * sizeof *grad);
    r->correction1 = 1 - pow(r->beta1, step);
    r->correction2 = 1 - pow(r->beta2, step);
    const real *old = test_copy(state, 4 * n);
    run_with_threads(run, x, state, 4 * n);
    for (int64_t i = 0; i < n; i++) {
        const wide g = (wide)r->grad_scale * grad[i];
        const wide m = r->beta1 * (wide)old[2 * n + i] + (1 - r->beta1) * g;
        const wide v = r->beta2 * (wide)old[3 * n + i] + (1 - r->beta2) * g * g;
        // Betas rounded to real: (1 - beta) keeps its digits, since it is computed in double.
        const double m_bound = 4 * EPSILON * (fabs((double)old[2 * n + i]) + fabs((double)g));
        assert_near("mean", i, state[2 * n + i], m, m_bound);
        assert_near("variance", i, state[3 * n + i], v, 8 * EPSILON * (double)v);
        const wide root = sqrtl(v / r->correction2) + r->eps;
        const wide update = m / r->correction1 / root;
        const wide want = old[i] - r->lr * (update + r->decay * old[i]);
        const double bound =
            EPSILON * fabs((double)old[i]) * 2 +
            r->lr * (m_bound / r->correction1 / (double)root + 16 * EPSILON * fabs((double)update));
        assert_near("param", i, state[i], want, bound);
        assert_true(state[n + i] == 0);
    }
}

static void steps_follow_the_formula(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(counts); s++) {
        struct adamw_case x = {.count = counts[s]};
        x.rule = (struct hk_adamw_rule){
            .lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .decay = 0.1, .grad_scale = 0.5};
        real *arrays = test_reals(4 * x.count, 1); // param, grad, mean, variance
        for (int64_t i = 2 * x.count; i < 4 * x.count; i++) arrays[i] = 0;
        for (int step = 1; step <= 4; step++) check_step(&x, arrays, step);
        test_free_all();
    }
}

// Padding of panels: parameter, gradient and states 0 stay 0.
static void zeros_stay_zero(void **state) {
    (void)state;
    real *zeros = test_nans(4 * 64);
    for (int i = 0; i < 256; i++) zeros[i] = 0;
    const struct hk_adamw_rule rule = {0.1, 0.9, 0.95, 1e-8, 0.1, 1, 0.1, 0.05, NULL};
    HK(adamw, zeros, zeros + 64, zeros + 128, zeros + 192, 64, &rule);
    for (int i = 0; i < 256; i++) assert_true(zeros[i] == 0);
    test_free_all();
}

// Facts known only later: a factor for the gradients, and that nothing is to be done.
static void a_step_is_scaled_or_stopped(void **state) {
    (void)state;
    enum { N = 67 };
    struct hk_clipped *clipped = (struct hk_clipped *)test_doubles(4);
    struct hk_adamw_rule rule = {0.1, 0.9, 0.95, 1e-8, 0.1, 0.125, 0.1, 0.05, NULL};
    real *start = test_reals(4 * N, 1), *a = test_copy(start, 4 * N), *b = test_copy(a, 4 * N);
    for (int i = 3 * N; i < 4 * N; i++) start[i] = a[i] = b[i] = 0.5; // Variances.
    HK(adamw, a, a + N, a + 2 * N, a + 3 * N, N, &rule);
    rule.grad_scale = 0.5;
    rule.clipped = clipped;
    *clipped = (struct hk_clipped){.scale = 0.25};
    HK(adamw, b, b + N, b + 2 * N, b + 3 * N, N, &rule);
    assert_same_bits("scaled", a, b, 4 * N);
    *clipped = (struct hk_clipped){.scale = 0.25, .stopped = HK_STEP_STOPPED};
    real *c = test_copy(start, 4 * N);
    HK(adamw, c, c + N, c + 2 * N, c + 3 * N, N, &rule);
    assert_same_bits("stopped", start, c, 4 * N);
    *clipped = (struct hk_clipped){.scale = 0.25, .stopped = HK_STEP_SKIPPED};
    HK(adamw, c, c + N, c + 2 * N, c + 3 * N, N, &rule);
    for (int i = N; i < 2 * N; i++) start[i] = 0; // Gradients.
    assert_same_bits("skipped", start, c, 4 * N);
    test_free_all();
}

#if HK_BITS == 32

// With a copy in bf16: the same step, and the copy that rounding afterwards makes.
static void the_copy_is_the_parameter_rounded(void **state) {
    (void)state;
    const struct hk_adamw_rule rule = {0.1, 0.9, 0.95, 1e-8, 0.1, 0.5, 0.1, 0.05, NULL};
    static const struct {
        int64_t k, n;
        enum hk_layout layout;
    } shapes[] = {{3, 21, HK_ROWS},
                  {300, 70, HK_ROWS},
                  {300, 71, HK_ROWS},
                  {2, 1, HK_PANELS},
                  {130, 200, HK_PANELS}};
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        const int64_t k = shapes[s].k, n = shapes[s].n;
        if ((int)shapes[s].layout >= LAYOUTS) continue;
        const bool panels = shapes[s].layout == HK_PANELS;
        const int64_t count = panels ? hk_panels_size(k, n) : k * n;
        real *a = test_reals(4 * count, 1);
        for (int64_t i = 3 * count; i < 4 * count; i++) a[i] *= a[i]; // Variances.
        real *b = test_copy(a, 4 * count);
        hk_bf16 *want = (hk_bf16 *)test_nans(count), *got = (hk_bf16 *)test_nans(count);
        HK(adamw, a, a + count, a + 2 * count, a + 3 * count, count, &rule);
        HK(adamw_rounded, b, got, b + count, b + 2 * count, b + 3 * count, count, shapes[s].layout,
           &rule);
        assert_same_bits("state", a, b, 4 * count);
        if (panels) {
            hk_round_panels_bf16(want, a, k, n);
        } else {
            hk_round_bf16(want, a, count);
        }
        assert_memory_equal(want, got, (size_t)count * sizeof *want);
        test_free_all();
    }
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_the_formula),
        cmocka_unit_test(zeros_stay_zero),
        cmocka_unit_test(a_step_is_scaled_or_stopped),
#if HK_BITS == 32
        cmocka_unit_test(the_copy_is_the_parameter_rounded),
#endif
    };
    return RUN_KERNEL_TESTS(tests);
}
