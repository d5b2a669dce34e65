// mean_scores against its definition; gradient against central differences.
#include "kernels/mean_scores/mean_scores.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][3] = {{1, 1, 1},    {0, 3, 4},  {2, 0, 4}, {3, 5, 8},
                                    {2, 130, 20}, {1, 3, 300}}; // sequences, tokens, experts

struct means_case {
    int64_t sequences, tokens, experts;
    enum hk_score score;
    const real *scores, *dmeans;
};

static void run(const void *context, real *out) {
    const struct means_case *x = context;
    HK(mean_scores, out, x->scores, x->sequences, x->tokens, x->experts, x->score);
}

static void run_gradient(const void *context, real *out) {
    const struct means_case *x = context;
    HK(mean_scores_grad, out, x->dmeans, x->scores, x->sequences, x->tokens, x->experts, x->score);
}

// Positive scores, as a router gives them; softmax or not, the formula is the same.
static struct means_case means_case(const int64_t *shape, enum hk_score score) {
    const int64_t count = shape[0] * shape[1] * shape[2];
    real *scores = test_reals(count, 1);
    for (int64_t i = 0; i < count; i++) scores[i] = (scores[i] + 2) / 4;
    return (struct means_case){.sequences = shape[0],
                               .tokens = shape[1],
                               .experts = shape[2],
                               .score = score,
                               .scores = scores,
                               .dmeans = test_reals(shape[0] * shape[2], 2)};
}

static wide mean_of(const struct means_case *x, int64_t s, int64_t expert) {
    wide sum = 0;
    for (int64_t t = s * x->tokens; t < (s + 1) * x->tokens; t++) {
        wide whole = 0;
        for (int64_t e = 0; e < x->experts; e++) whole += x->scores[t * x->experts + e];
        const wide floor = x->score == HK_SOFTMAX ? 0 : HK_SCORES_FLOOR;
        const wide share = x->scores[t * x->experts + expert] + floor / x->experts;
        sum += share / (x->score == HK_SOFTMAX ? 1 : whole + floor);
    }
    return x->tokens > 0 ? sum / x->tokens : 0;
}

struct sum_of_scores {
    const struct means_case *x;
    double *scores;
};

// Means, weighted with dmeans.
static double weighted(const void *context) {
    const struct sum_of_scores *l = context;
    const struct means_case *x = l->x;
    double out[512], sum = 0;
    hk_mean_scores_f64(out, l->scores, x->sequences, x->tokens, x->experts, x->score);
    for (int64_t i = 0; i < x->sequences * x->experts; i++) sum += out[i] * (double)x->dmeans[i];
    return sum;
}

static void means_and_gradient_are_right(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 2; s++) {
        const struct means_case x = means_case(shapes[s / 2], s % 2 ? HK_SIGMOID : HK_SOFTMAX);
        const int64_t means = x.sequences * x.experts, count = means * x.tokens;
        real *out = test_nans(means), *grad = test_nans(count);
        run_with_threads(run, &x, out, means);
        for (int64_t i = 0; i < means; i++) {
            const wide want = mean_of(&x, i / x.experts, i % x.experts);
            assert_near("means", i, out[i], want, (double)(x.experts + 4) * EPSILON);
        }
        run_with_threads(run_gradient, &x, grad, count);
        const struct sum_of_scores l = {&x, test_widened(x.scores, count)};
        check_gradient("dscores", grad, l.scores, count, weighted, &l,
                       EPSILON * 9 * (double)(x.experts + 8));
        test_free_all();
    }
}

// Logits far below 0 leave scores that are tiny, or 0: shares are those of the scores as long as these say something, then
// even; gradients are finite, and 0 together.
static void scores_that_vanish_have_shares(void **state) {
    (void)state;
    static const double size[] = {1, 1e-15, 1e-30, 0};
    for (int64_t s = 0; s < COUNT(size); s++) {
        struct means_case x = means_case((const int64_t[]){2, 3, 5}, HK_SIGMOID);
        const int64_t means = x.sequences * x.experts, count = means * x.tokens;
        real *scores = test_copy(x.scores, count), *out = test_nans(means);
        for (int64_t i = 0; i < count; i++) scores[i] *= (real)size[s];
        x.scores = scores;
        run_with_threads(run, &x, out, means);
        for (int64_t i = 0; i < means; i++)
            assert_near("means", i, out[i], mean_of(&x, i / x.experts, i % x.experts), 9 * EPSILON);
        if (size[s] < 1e-25) assert_near("even", 0, out[0], 0.2L, 1e-6);
        real *grad = test_nans(count);
        run_with_threads(run_gradient, &x, grad, count);
        for (int64_t t = 0; t < x.sequences * x.tokens; t++) {
            wide sum = 0, most = 0, whole = HK_SCORES_FLOOR;
            for (int64_t e = 0; e < x.experts; e++) {
                const int64_t i = t * x.experts + e;
                assert_true(isfinite((double)grad[i]));
                whole += scores[i];
                most += fabsl(grad[i]);
                sum += grad[i] * (scores[i] + (wide)HK_SCORES_FLOOR / x.experts);
            }
            assert_near("sum", t, (real)(sum / whole), 0, 16 * EPSILON * (double)most);
        }
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(means_and_gradient_are_right),
                                       cmocka_unit_test(scores_that_vanish_have_shares)};
    return RUN_KERNEL_TESTS(tests);
}
