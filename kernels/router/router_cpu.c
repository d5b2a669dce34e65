// CPU twin of router: one token after the other, experts vectorized for the scores.
//
// The best are found in topk passes, each looking for the best one that comes after the last one
// found in the order (value descending, index ascending). So nothing needs to be marked or stored,
// however many experts there are.
#include "kernels/router/router.h"

#include "kernels/cpu/row.h"

// An expert or a group, and what it is chosen by.
struct candidate {
    real value;
    int64_t index; // -1: none.
};

static bool comes_before(struct candidate a, struct candidate b) {
    return a.value > b.value || (a.value == b.value && a.index < b.index);
}

// `best`, or `c` if c is better and still to come after `last`.
static struct candidate better(struct candidate best, struct candidate c, struct candidate last) {
    if (last.index >= 0 && !comes_before(last, c)) return best;
    return best.index < 0 || comes_before(c, best) ? c : best;
}

// What expert e is chosen by; NaN as the worst.
static real value_of(const real *scores, const real *bias, int64_t e) {
    const real value = scores[e] + (bias ? bias[e] : 0);
    return isnan(value) ? -(real)INFINITY : value;
}

static real group_value(const real *scores, const real *bias, int64_t begin, int64_t count,
                        enum hk_score score) {
    const struct candidate none = {0, -1};
    struct candidate best = none;
    for (int64_t e = begin; e < begin + count; e++) {
        best = better(best, (struct candidate){value_of(scores, bias, e), e}, none);
    }
    if (score == HK_SOFTMAX || count == 1) return best.value;
    struct candidate second = none;
    for (int64_t e = begin; e < begin + count; e++) {
        second = better(second, (struct candidate){value_of(scores, bias, e), e}, best);
    }
    return best.value + second.value;
}

// The last group that may be chosen from: groups not after it are in.
static struct candidate last_group(const real *scores, const real *bias,
                                   const struct hk_router_rule *rule) {
    const int64_t count = rule->experts / rule->groups;
    struct candidate last = {0, -1};
    for (int64_t i = 0; i < rule->topk_groups; i++) {
        struct candidate best = {0, -1};
        for (int64_t g = 0; g < rule->groups; g++) {
            const real value = group_value(scores, bias, g * count, count, rule->score);
            best = better(best, (struct candidate){value, g}, last);
        }
        last = best;
    }
    return last;
}

static void choose(int32_t *ids, const real *scores, const real *bias,
                   const struct hk_router_rule *rule) {
    const int64_t groups = rule->groups > 1 ? rule->groups : 1, count = rule->experts / groups;
    const struct candidate limit =
        groups > 1 ? last_group(scores, bias, rule) : (struct candidate){0, -1};
    struct candidate last = {0, -1};
    for (int64_t j = 0; j < rule->topk; j++) {
        struct candidate best = {0, -1};
        for (int64_t g = 0; g < groups; g++) {
            if (groups > 1) {
                const real value = group_value(scores, bias, g * count, count, rule->score);
                if (comes_before(limit, (struct candidate){value, g})) continue;
            }
            for (int64_t e = g * count; e < (g + 1) * count; e++) {
                best = better(best, (struct candidate){value_of(scores, bias, e), e}, last);
            }
        }
        assert(best.index >= 0);
        ids[j] = (int32_t)best.index;
        last = best;
    }
}

static void score_row(real *scores, const real *logits, const struct hk_router_rule *rule) {
    const int64_t experts = rule->experts;
    if (rule->score == HK_SIGMOID) {
#pragma omp simd
        for (int64_t e = 0; e < experts; e++) scores[e] = HK_REAL(sigmoid)(logits[e]);
        return;
    }
    const real peak = row_max(logits, experts);
#pragma omp simd
    for (int64_t e = 0; e < experts; e++) scores[e] = HK_REAL(exp)(logits[e] - peak);
    const real sum = row_sum(scores, experts);
#pragma omp simd
    for (int64_t e = 0; e < experts; e++) scores[e] /= sum;
}

static void weigh(real *weights, const real *scores, const real *logits, const int32_t *ids,
                  const struct hk_router_rule *rule) {
    real sum = 0;
    real peak = -(real)INFINITY; // Chosen by score plus bias: the first need not be the largest.
    for (int64_t j = 0; j < rule->topk; j++) {
        if (logits[ids[j]] > peak) peak = logits[ids[j]];
    }
    for (int64_t j = 0; j < rule->topk; j++) {
        const bool softmax = rule->weight == HK_SOFTMAX_OF_TOPK;
        weights[j] = softmax ? HK_REAL(exp)(logits[ids[j]] - peak) : scores[ids[j]];
        sum += weights[j];
    }
    if (rule->weight == HK_RENORMALIZED) sum += (real)1e-20;
    const real divisor = rule->weight == HK_SCORES ? 1 : sum;
    for (int64_t j = 0; j < rule->topk; j++) {
        weights[j] = weights[j] / divisor * (real)rule->scale;
    }
}

HK_KERNEL(void, router,
          (real * scores, real *weights, int32_t *ids, int32_t *loads, const real *logits,
           const real *bias, int64_t tokens, struct hk_router_rule rule),
          (scores, weights, ids, loads, logits, bias, tokens, rule)) {
    assert(rule.topk >= 0 && rule.topk <= rule.experts);
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        real *s = scores + t * rule.experts;
        const real *l = logits + t * rule.experts;
        score_row(s, l, &rule);
        choose(ids + t * rule.topk, s, bias, &rule);
        weigh(weights + t * rule.topk, s, l, ids + t * rule.topk, &rule);
    }
    for (int64_t e = 0; e < rule.experts; e++) loads[e] = 0;
    for (int64_t p = 0; p < tokens * rule.topk; p++) loads[ids[p]]++;
}

// Adds the gradient of one token's weights to ds, by score.
static void grad_of_weights(real *ds, const real *dw, const real *scores, const int32_t *ids,
                            const struct hk_router_rule *rule) {
    const real scale = (real)rule->scale;
    real sum = 0, along = 0;
    for (int64_t j = 0; j < rule->topk; j++) {
        sum += scores[ids[j]];
        along += dw[j] * scores[ids[j]];
    }
    sum += (real)1e-20;
    for (int64_t j = 0; j < rule->topk; j++) {
        const real d = rule->weight == HK_SCORES ? dw[j] : (dw[j] - along / sum) / sum;
        ds[ids[j]] += scale * d;
    }
}

// From the gradient by score, in d, to the gradient by logit, in place.
static void grad_of_scores(real *d, const real *scores, const struct hk_router_rule *rule) {
    const int64_t experts = rule->experts;
    if (rule->score == HK_SIGMOID) {
#pragma omp simd
        for (int64_t e = 0; e < experts; e++) d[e] *= scores[e] * (1 - scores[e]);
        return;
    }
    const real along = row_dot(d, scores, experts);
#pragma omp simd
    for (int64_t e = 0; e < experts; e++) d[e] = scores[e] * (d[e] - along);
}

// HK_SOFTMAX_OF_TOPK: the weights depend on the logits directly.
static void add_grad_of_softmax(real *d, const real *dw, const real *w, const int32_t *ids,
                                const struct hk_router_rule *rule) {
    if (rule->scale == 0) return;
    const real scale = (real)rule->scale;
    real along = 0;
    for (int64_t j = 0; j < rule->topk; j++) along += dw[j] * (w[j] / scale);
    for (int64_t j = 0; j < rule->topk; j++) d[ids[j]] += w[j] * (dw[j] - along);
}

HK_KERNEL(void, router_grad,
          (real * dlogits, const real *dweights, const real *dscores, const real *scores,
           const real *weights, const int32_t *ids, int64_t tokens, struct hk_router_rule rule),
          (dlogits, dweights, dscores, scores, weights, ids, tokens, rule)) {
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        const int64_t row = t * rule.experts, choice = t * rule.topk;
        real *d = dlogits + row;
        for (int64_t e = 0; e < rule.experts; e++) d[e] = dscores ? dscores[row + e] : 0;
        const bool softmax = rule.weight == HK_SOFTMAX_OF_TOPK;
        if (!softmax) grad_of_weights(d, dweights + choice, scores + row, ids + choice, &rule);
        if (!softmax || dscores) grad_of_scores(d, scores + row, &rule);
        if (softmax) {
            add_grad_of_softmax(d, dweights + choice, weights + choice, ids + choice, &rule);
        }
    }
}
