// aux_loss against its definition; gradient against central differences.
#include "kernels/aux_loss/aux_loss.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {{1, 1}, {0, 4}, {5, 8}, {130, 20}}; // tokens, experts
enum { topk = 2 };
static const double coef = 0.02;

struct aux_case {
    int64_t tokens, experts;
    enum hk_score score;
    const real *scores, *dloss;
    const int32_t *loads;
};

static void run(const void *context, real *out) {
    const struct aux_case *x = context;
    HK(aux_loss)(out, x->scores, x->loads, x->tokens, x->experts, topk, x->score, coef);
}

static void run_gradient(const void *context, real *out) {
    const struct aux_case *x = context;
    HK(aux_loss_grad)
    (out, x->dloss, x->scores, x->loads, x->tokens, x->experts, topk, x->score, coef);
}

// Positive scores, as a router gives them; softmax or not, the formula is the same.
static struct aux_case aux_case(int64_t shape, enum hk_score score) {
    struct aux_case x = {.tokens = shapes[shape][0], .experts = shapes[shape][1], .score = score};
    real *scores = test_reals(x.tokens * x.experts, 1);
    for (int64_t i = 0; i < x.tokens * x.experts; i++) scores[i] = (scores[i] + 2) / 4;
    x.scores = scores;
    x.dloss = test_reals(1, 2);
    x.loads = test_ints(x.experts, 9, 3);
    return x;
}

static wide reference(const struct aux_case *x) {
    wide sum = 0;
    for (int64_t t = 0; t < x->tokens; t++) {
        const real *s = x->scores + t * x->experts;
        wide whole = 0;
        for (int64_t e = 0; e < x->experts; e++) whole += s[e];
        if (x->score == HK_SOFTMAX) whole = 1;
        for (int64_t e = 0; e < x->experts; e++) sum += x->loads[e] * s[e] / whole;
    }
    return sum * coef * x->experts / (topk * (wide)x->tokens * x->tokens);
}

struct loss_of_scores {
    const struct aux_case *x;
    double *scores;
};

static double loss(const void *context) {
    const struct loss_of_scores *l = context;
    double out;
    hk_aux_loss_f64(&out, l->scores, l->x->loads, l->x->tokens, l->x->experts, topk, l->x->score,
                    coef);
    return out * (double)l->x->dloss[0];
}

static void loss_and_gradient_are_right(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 2; s++) {
        const struct aux_case x = aux_case(s / 2, s % 2 ? HK_SQRTSOFTPLUS : HK_SOFTMAX);
        const int64_t count = x.tokens * x.experts;
        real *out = test_nans(1), *grad = test_nans(count);
        run_with_threads(run, &x, out, 1);
        // Summed in double: one rounding to real, and those of the sum.
        const wide want = x.tokens > 0 ? reference(&x) : 0;
        const double sum_error = (double)(x.tokens + x.experts + 8) * DBL_EPSILON;
        assert_near("loss", 0, out[0], want, (EPSILON + sum_error) * fabs((double)want));

        run_with_threads(run_gradient, &x, grad, count);
        const struct loss_of_scores l = {&x, test_widened(x.scores, count)};
        check_gradient("dscores", grad, l.scores, count, loss, &l,
                       EPSILON * 9 * (double)(x.experts + 8));
        test_free_all();
    }
}

// The loss of each sequence is that of its tokens under their own counts.
struct sequences {
    struct aux_case part[3];
    const real *scores, *dloss;
    const int32_t *ids;
    enum hk_score score;
};
enum { sequences = 3, length = 37, wide_experts = 11 };

static void run_sequences(const void *context, real *out) {
    const struct sequences *x = context;
    HK(aux_loss_sequence)
    (out, x->scores, x->ids, sequences, length, wide_experts, topk, x->score, coef);
}

static void run_sequences_gradient(const void *context, real *out) {
    const struct sequences *x = context;
    HK(aux_loss_sequence_grad)
    (out, x->dloss, x->scores, x->ids, sequences, length, wide_experts, topk, x->score, coef);
}

static struct sequences sequences_case(enum hk_score score) {
    const int64_t row = length * wide_experts;
    real *scores = test_reals(sequences * row, 1);
    for (int64_t i = 0; i < sequences * row; i++) scores[i] = (scores[i] + 2) / 4;
    int32_t *ids = test_ints(sequences * length * topk, wide_experts, 4);
    struct sequences x = {.scores = scores, .dloss = test_reals(1, 2), .ids = ids, .score = score};
    for (int s = 0; s < sequences; s++) {
        int32_t *loads = test_ints(wide_experts, 1, 0);
        for (int64_t p = 0; p < length * topk; p++) loads[ids[s * length * topk + p]]++;
        x.part[s] =
            (struct aux_case){length, wide_experts, score, scores + s * row, x.dloss, loads};
    }
    return x;
}

static void each_sequence_is_weighed_alone(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        const struct sequences x = sequences_case(k ? HK_SIGMOID : HK_SOFTMAX);
        const int64_t row = length * wide_experts;
        real *out = test_nans(1), *grad = test_nans(sequences * row), *part = test_nans(row);
        run_with_threads(run_sequences, &x, out, 1);
        run_with_threads(run_sequences_gradient, &x, grad, sequences * row);
        wide want = 0;
        for (int s = 0; s < sequences; s++) {
            want += reference(&x.part[s]) / sequences;
            run_gradient(&x.part[s], part);
            for (int64_t i = 0; i < row; i++) {
                const wide one = (wide)part[i] / sequences;
                assert_near("dscores", s * row + i, grad[s * row + i], one,
                            8 * EPSILON * fabs((double)one));
            }
        }
        assert_near("loss", 0, out[0], want, 8 * EPSILON * fabs((double)want));
        test_free_all();
    }
}

static void no_sequences_cost_nothing(void **state) {
    (void)state;
    real loss = NAN;
    HK(aux_loss_sequence)(&loss, NULL, NULL, 0, length, wide_experts, topk, HK_SOFTMAX, coef);
    assert_true(loss == 0);
}

static void a_balanced_router_costs_coef(void **state) {
    (void)state;
    enum { tokens = 12, experts = 6 };
    real scores[tokens * experts], loss;
    int32_t loads[experts];
    for (int i = 0; i < tokens * experts; i++) scores[i] = (real)1 / experts;
    for (int e = 0; e < experts; e++) loads[e] = tokens * topk / experts;
    HK(aux_loss)(&loss, scores, loads, tokens, experts, topk, HK_SOFTMAX, coef);
    assert_near("loss", 0, loss, coef, 4 * EPSILON * coef);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_and_gradient_are_right),
        cmocka_unit_test(each_sequence_is_weighed_alone),
        cmocka_unit_test(no_sequences_cost_nothing),
        cmocka_unit_test(a_balanced_router_costs_coef),
    };
    return RUN_KERNEL_TESTS(tests);
}
