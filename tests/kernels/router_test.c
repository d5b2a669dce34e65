// router: scores and weights against their definitions, choices against a sort, gradient against
// central differences.
#include "kernels/router/router.h"

#include <float.h>
#include <stdlib.h>

#include "lang/program.h"
#include "tests/kernels/kernel_case.h"
#include "tests/router_scores.h"

_Static_assert((int)HEC_EXPERTS_MAX <= (int)HK_EXPERTS_MAX, "every model has its kernel");

static const struct hk_router_rule rules[] = {
    {4, 1, 0, 0, HK_SOFTMAX, HK_SCORES, 1, HK_GROUP_AS_USUAL},
    {8, 2, 0, 0, HK_SOFTMAX, HK_RENORMALIZED, 1, HK_GROUP_AS_USUAL},
    {8, 3, 1, 1, HK_SOFTMAX, HK_SOFTMAX_OF_TOPK, 2.5, HK_GROUP_AS_USUAL},
    {1, 1, 0, 0, HK_SIGMOID, HK_RENORMALIZED, 1, HK_GROUP_AS_USUAL},
    {20, 6, 0, 0, HK_SIGMOID, HK_SCORES, 0.5, HK_GROUP_AS_USUAL},
    {256, 8, 8, 4, HK_SIGMOID, HK_RENORMALIZED, 2.5, HK_GROUP_AS_USUAL},
    {64, 6, 8, 3, HK_SOFTMAX, HK_SCORES, 1, HK_GROUP_AS_USUAL},
    {12, 4, 12, 5, HK_SIGMOID, HK_SCORES, 1, HK_GROUP_AS_USUAL}, // Groups of one.
    {70, 70, 0, 0, HK_SOFTMAX, HK_SCORES, 1, HK_GROUP_AS_USUAL}, // All of them.
#define HK_SCORE(ID, ...)                                                                          \
    {24, 4, 4, 2, HK_##ID, HK_RENORMALIZED, 1.5, HK_GROUP_AS_USUAL},                               \
        {20, 6, 0, 0, HK_##ID, HK_SCORES, 1, HK_GROUP_AS_USUAL},
#define HK_SCORE_OF_ALL HK_SCORE
#include "kernels/router/scores.def"
#undef HK_SCORE
#undef HK_SCORE_OF_ALL
    {24, 4, 4, 2, HK_SIGMOID, HK_RENORMALIZED, 1, HK_GROUP_BEST},
    {24, 4, 4, 2, HK_SOFTMAX, HK_SCORES, 1, HK_GROUP_TWO_BEST},
    {1500, 40, 50, 30, HK_SIGMOID, HK_RENORMALIZED, 1, HK_GROUP_AS_USUAL},
};

enum { tokens = 23 };

struct router_case {
    struct hk_router_rule rule;
    const real *logits, *bias;
    const int32_t *forced; // Or NULL.
    int32_t *record;       // Or NULL.
};

// Results of one run.
struct routed {
    real *scores, *weights;
    int32_t *ids, *loads;
};

static int64_t score_count(const struct hk_router_rule *r) {
    return tokens * r->experts;
}

static int64_t choice_count(const struct hk_router_rule *r) {
    return tokens * r->topk;
}

// ids and loads are written behind the reals, as reals, so that one array holds every result.
static void run(const void *context, real *out) {
    const struct router_case *x = context;
    const int64_t choices = choice_count(&x->rule);
    real *weights = out + score_count(&x->rule);
    int32_t *ids = test_ints(choices, 1, 0), *loads = test_ints(x->rule.experts, 1, 0);
    HK(router, out, weights, ids, loads, x->logits, x->bias, x->forced, x->record, tokens, x->rule);
    real *rest = weights + choices;
    for (int64_t i = 0; i < choices; i++) *rest++ = (real)ids[i];
    for (int64_t e = 0; e < x->rule.experts; e++) *rest++ = (real)loads[e];
}

static struct routed route_all(const struct router_case *x) {
    const struct hk_router_rule *r = &x->rule;
    const int64_t reals = score_count(r) + choice_count(r);
    const int64_t count = reals + choice_count(r) + r->experts;
    real *out = test_nans(count);
    run_with_threads(run, x, out, count);
    struct routed routed = {out, out + score_count(r), test_ints(choice_count(r), 1, 0),
                            test_ints(r->experts, 1, 0)};
    for (int64_t i = 0; i < choice_count(r); i++) routed.ids[i] = (int32_t)out[reals + i];
    for (int64_t e = 0; e < r->experts; e++) {
        routed.loads[e] = (int32_t)out[reals + choice_count(r) + e];
    }
    return routed;
}

static struct router_case router_case(int64_t rule, bool with_bias) {
    struct router_case x = {.rule = rules[rule]};
    real *logits = test_reals(score_count(&x.rule), 1);
    for (int64_t i = 0; i < score_count(&x.rule); i++) logits[i] *= 6;
    x.logits = logits;
    x.bias = with_bias ? test_reals(x.rule.experts, 2) : NULL;
    return x;
}

static void check_scores(const struct router_case *x, const struct routed *got) {
    const int64_t experts = x->rule.experts;
    for (int64_t t = 0; t < tokens; t++) {
        wide sum = 0;
        for (int64_t e = 0; e < experts; e++) sum += expl(x->logits[t * experts + e]);
        for (int64_t e = 0; e < experts; e++) {
            const wide l = x->logits[t * experts + e];
            const struct router_score *score = &router_scores[x->rule.score];
            const wide want = score->value ? score->value(l) : expl(l) / sum;
            // exp of a rounded difference of at most 12, a sum, a division.
            const double bound = EPSILON * (12 + 8 + (double)experts) * (double)want;
            assert_near("score", t * experts + e, got->scores[t * experts + e], want, bound);
        }
    }
}

struct ranked {
    real value;
    int32_t index;
};

static int compare(const void *a, const void *b) {
    const struct ranked *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? -1 : 1;
    return x->index - y->index;
}

// Marks the experts of the best groups; all of them without groups.
static void allow(const struct router_case *x, const real *values, bool *allowed) {
    const struct hk_router_rule *r = &x->rule;
    const int64_t groups = r->groups > 1 ? r->groups : 1, count = r->experts / groups;
    struct ranked best[64];
    for (int64_t g = 0; g < groups; g++) {
        real first = -INFINITY, second = -INFINITY;
        for (int64_t e = g * count; e < (g + 1) * count; e++) {
            if (values[e] > first) {
                second = first;
                first = values[e];
            } else if (values[e] > second) {
                second = values[e];
            }
        }
        const bool two = r->group_score == HK_GROUP_AS_USUAL ? r->score != HK_SOFTMAX
                                                             : r->group_score == HK_GROUP_TWO_BEST;
        const bool sum = two && count > 1;
        best[g] = (struct ranked){sum ? first + second : first, (int32_t)g};
    }
    qsort(best, (size_t)groups, sizeof *best, compare);
    for (int64_t e = 0; e < r->experts; e++) allowed[e] = groups == 1;
    for (int64_t i = 0; i < r->topk_groups && groups > 1; i++) {
        for (int64_t e = 0; e < count; e++) allowed[best[i].index * count + e] = true;
    }
}

static void check_choice(const struct router_case *x, const struct routed *got) {
    const struct hk_router_rule *r = &x->rule;
    int32_t loads[HK_EXPERTS_MAX] = {0};
    for (int64_t t = 0; t < tokens; t++) {
        real values[HK_EXPERTS_MAX];
        bool allowed[HK_EXPERTS_MAX];
        struct ranked order[HK_EXPERTS_MAX];
        int64_t count = 0;
        for (int64_t e = 0; e < r->experts; e++) {
            values[e] = got->scores[t * r->experts + e] + (x->bias ? x->bias[e] : 0);
        }
        allow(x, values, allowed);
        for (int64_t e = 0; e < r->experts; e++) {
            if (allowed[e]) order[count++] = (struct ranked){values[e], (int32_t)e};
        }
        qsort(order, (size_t)count, sizeof *order, compare);
        for (int64_t j = 0; j < r->topk; j++) {
            assert_int_equal(got->ids[t * r->topk + j], order[j].index);
            loads[order[j].index]++;
        }
    }
    for (int64_t e = 0; e < r->experts; e++) assert_int_equal(got->loads[e], loads[e]);
}

static void check_weights(const struct router_case *x, const struct routed *got) {
    const struct hk_router_rule *r = &x->rule;
    for (int64_t t = 0; t < tokens; t++) {
        const int32_t *ids = got->ids + t * r->topk;
        const real *logits = x->logits + t * r->experts, *scores = got->scores + t * r->experts;
        wide sum = 0, exps = 0;
        for (int64_t j = 0; j < r->topk; j++) sum += scores[ids[j]];
        for (int64_t j = 0; j < r->topk; j++) exps += expl(logits[ids[j]]);
        for (int64_t j = 0; j < r->topk; j++) {
            wide want = scores[ids[j]];
            if (r->weight == HK_RENORMALIZED) want /= sum + 1e-20L;
            if (r->weight == HK_SOFTMAX_OF_TOPK) want = expl(logits[ids[j]]) / exps;
            want *= r->scale;
            const double bound = EPSILON * (24 + (double)r->topk) * (double)want;
            assert_near("weight", t * r->topk + j, got->weights[t * r->topk + j], want, bound);
        }
    }
}

static void routing_follows_every_rule(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(rules) * 2; s++) {
        const struct router_case x = router_case(s / 2, s % 2);
        const struct routed got = route_all(&x);
        check_scores(&x, &got);
        check_choice(&x, &got);
        check_weights(&x, &got);
        test_free_all();
    }
}

// Experts that the scores would hardly choose: all different, and another first one each time.
static const int32_t *force(const struct hk_router_rule *r) {
    int32_t *forced = test_ints(choice_count(r), 1, 0);
    for (int64_t t = 0; t < tokens; t++) {
        for (int64_t j = 0; j < r->topk; j++) {
            forced[t * r->topk + j] = (int32_t)((5 * t + j) % r->experts);
        }
    }
    return forced;
}

static void forced_experts_replace_the_choice(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(rules) * 2; s++) {
        struct router_case x = router_case(s / 2, s % 2);
        x.forced = force(&x.rule);
        x.record = test_ints(choice_count(&x.rule), 1, 0);
        const struct routed got = route_all(&x);
        int32_t loads[HK_EXPERTS_MAX] = {0};
        for (int64_t i = 0; i < choice_count(&x.rule); i++) {
            assert_int_equal(got.ids[i], x.forced[i]);
            assert_int_equal(x.record[i], x.forced[i]);
            loads[x.forced[i]]++;
        }
        for (int64_t e = 0; e < x.rule.experts; e++) assert_int_equal(got.loads[e], loads[e]);
        check_scores(&x, &got);
        check_weights(&x, &got);
        test_free_all();
    }
}

static void the_record_is_the_choice(void **state) {
    (void)state;
    struct router_case x = router_case(5, true);
    x.record = test_ints(choice_count(&x.rule), 1, 0);
    const struct routed got = route_all(&x);
    assert_memory_equal(x.record, got.ids, (size_t)choice_count(&x.rule) * sizeof *x.record);
    test_free_all();
}

static void ties_go_to_the_lower_index(void **state) {
    (void)state;
    struct router_case x = router_case(1, false);
    real *logits = test_reals(score_count(&x.rule), 1);
    for (int64_t i = 0; i < score_count(&x.rule); i++) logits[i] = 1;
    x.logits = logits;
    const struct routed got = route_all(&x);
    for (int64_t i = 0; i < choice_count(&x.rule); i++) assert_int_equal(got.ids[i], i % 2);
    test_free_all();
}

static void nan_gives_valid_ids(void **state) {
    (void)state;
    for (int64_t rule = 0; rule < COUNT(rules); rule++) {
        struct router_case x = router_case(rule, false);
        x.logits = test_nans(score_count(&x.rule));
        const struct routed got = route_all(&x);
        for (int64_t t = 0; t < tokens; t++) {
            for (int64_t j = 0; j < x.rule.topk; j++) {
                const int32_t id = got.ids[t * x.rule.topk + j];
                assert_in_range(id, 0, x.rule.experts - 1);
                for (int64_t i = 0; i < j; i++) {
                    assert_int_not_equal(id, got.ids[t * x.rule.topk + i]);
                }
            }
        }
        test_free_all();
    }
}

// More than a device routes at once: as if they came piece by piece.
static void many_tokens_are_routed_as_few(void **state) {
    (void)state;
    enum { pieces = 3, piece = 80, many = pieces * piece };
    const struct hk_router_rule *r = &rules[1];
    const int64_t scores = r->experts, choices = r->topk;
    const real *logits = test_reals(many * scores, 1);
    real *s[2] = {test_nans(many * scores), test_nans(many * scores)};
    real *w[2] = {test_nans(many * choices), test_nans(many * choices)};
    int32_t *ids[2] = {test_ints(many * choices, 1, 0), test_ints(many * choices, 1, 0)};
    int32_t *loads = test_ints(scores, 2, 1), *part = test_ints(scores, 2, 1);
    HK(router, s[0], w[0], ids[0], loads, logits, NULL, NULL, NULL, many, *r);
    for (int64_t t = 0; t < many; t += piece) {
        HK(router, s[1] + t * scores, w[1] + t * choices, ids[1] + t * choices, part,
           logits + t * scores, NULL, NULL, NULL, piece, *r);
        for (int64_t e = 0; e < scores; e++) loads[e] -= part[e];
    }
    assert_same_bits("scores", s[0], s[1], many * scores);
    assert_same_bits("weights", w[0], w[1], many * choices);
    assert_memory_equal(ids[0], ids[1], (size_t)(many * choices) * sizeof *ids[0]);
    for (int64_t e = 0; e < scores; e++) assert_int_equal(loads[e], 0);
    test_free_all();
}

struct router_gradient {
    const struct router_case *x;
    const struct routed *got;
    const real *dweights, *dscores;
    double *logits, *bias, *scores, *weights;
    int32_t *ids, *loads;
};

static void run_gradient(const void *context, real *out) {
    const struct router_gradient *g = context;
    HK(router_grad, out, g->dweights, g->dscores, g->got->scores, g->got->weights, g->got->ids,
       tokens, g->x->rule);
}

static double loss(const void *context) {
    const struct router_gradient *g = context;
    const struct hk_router_rule *r = &g->x->rule;
    double sum = 0;
    hk_router_f64(g->scores, g->weights, g->ids, g->loads, g->logits, g->bias, g->x->forced, NULL,
                  tokens, *r);
    for (int64_t i = 0; i < choice_count(r); i++) sum += (double)g->dweights[i] * g->weights[i];
    for (int64_t i = 0; i < score_count(r) && g->dscores; i++) {
        sum += (double)g->dscores[i] * g->scores[i];
    }
    return sum;
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(rules) * 2; s++) {
        struct router_case x = router_case(s / 2, s / 2 % 2);
        const struct hk_router_rule *r = &x.rule;
        if (r->experts > 64) continue; // Too many differences.
        if (s / 2 % 3 == 1) x.forced = force(r);
        const struct routed got = route_all(&x);
        const struct router_gradient g = {
            .x = &x,
            .got = &got,
            .dweights = test_reals(choice_count(r), 5),
            .dscores = s % 2 ? test_reals(score_count(r), 6) : NULL,
            .logits = test_widened(x.logits, score_count(r)),
            .bias = x.bias ? test_widened(x.bias, r->experts) : NULL,
            .scores = test_doubles(score_count(r)),
            .weights = test_doubles(choice_count(r)),
            .ids = test_ints(choice_count(r), 1, 0),
            .loads = test_ints(r->experts, 1, 0),
        };
        real *grad = test_nans(score_count(r));
        run_with_threads(run_gradient, &g, grad, score_count(r));
        // Terms are at most scale or 1; sums of up to `experts` of them, each off by a few units.
        const double rounding = EPSILON * 8 * ((double)r->experts + 24) * (r->scale + 1);
        check_gradient("dlogits", grad, g.logits, score_count(r), loss, &g, rounding);
        test_free_all();
    }
}

// The one chosen expert's weight is `scale` for any logits: its gradient is 0, and no rounding of 0.
static void an_expert_that_is_alone_has_no_gradient(void **state) {
    (void)state;
    static const enum hk_weight weights[] = {HK_RENORMALIZED, HK_SOFTMAX_OF_TOPK};
    for (int64_t s = 0; s < COUNT(weights) * COUNT(router_scores); s++) {
        struct router_case x = router_case(0, false);
        x.rule.weight = weights[s / COUNT(router_scores)];
        x.rule.score = (enum hk_score)(s % COUNT(router_scores));
        x.rule.scale = 2.6;
        const struct routed got = route_all(&x);
        const struct router_gradient g = {
            .x = &x, .got = &got, .dweights = test_reals(choice_count(&x.rule), 5)};
        real *grad = test_nans(score_count(&x.rule));
        run_with_threads(run_gradient, &g, grad, score_count(&x.rule));
        for (int64_t i = 0; i < score_count(&x.rule); i++) assert_true(grad[i] == 0);
        test_free_all();
    }
}

// Scores far below 0 are as small as they are: no target's end before the others'.
static void scores_vanish_alike(void **state) {
    (void)state;
    struct router_case x = router_case(0, false);
    real *logits = test_reals(score_count(&x.rule), 1);
    for (int64_t i = 0; i < score_count(&x.rule); i++) logits[i] = (real)(-1.5 * (double)i);
    x.logits = logits;
    for (size_t s = 0; s < COUNT(router_scores); s++) {
        const struct router_score *score = &router_scores[s];
        x.rule.score = (enum hk_score)s;
        const struct routed got = route_all(&x);
        for (int64_t i = 0; score->value && i < score_count(&x.rule); i++) {
            const wide want = score->value(logits[i]);
            const double tiny = sizeof(real) == 4 ? FLT_MIN : DBL_MIN; // Less may become 0.
            const double bound = 64 * EPSILON * (double)want + ((double)want < tiny ? tiny : 0);
            assert_near("score", i, got.scores[i], want, bound);
        }
    }
    test_free_all();
}

static void every_score_has_its_definition(void **state) {
    (void)state;
    static const char *const words[] = {
#define HK_SCORE(ID, word, ...) #word,
#define HK_SCORE_OF_ALL HK_SCORE
#include "kernels/router/scores.def"
    };
    assert_int_equal(COUNT(words), COUNT(router_scores));
    for (size_t i = 0; i < COUNT(words); i++) assert_string_equal(words[i], router_scores[i].word);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_score_has_its_definition),
        cmocka_unit_test(routing_follows_every_rule),
        cmocka_unit_test(an_expert_that_is_alone_has_no_gradient),
        cmocka_unit_test(scores_vanish_alike),
        cmocka_unit_test(forced_experts_replace_the_choice),
        cmocka_unit_test(the_record_is_the_choice),
        cmocka_unit_test(ties_go_to_the_lower_index),
        cmocka_unit_test(nan_gives_valid_ids),
        cmocka_unit_test(many_tokens_are_routed_as_few),
        cmocka_unit_test(gradients_match_central_differences),
    };
    return RUN_KERNEL_TESTS(tests);
}
