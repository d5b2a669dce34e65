// CPU twin of router: one token after the other, experts vectorized for scores and maxima.
#include "kernels/router/router.h"

#include "kernels/cpu/row.h"

// The index of the largest value, the first of equals, which becomes NaN: taken. NaN is never
// found; -1 when nothing is left.
static int64_t take_best(real *values, int64_t count) {
    const real peak = row_max(values, count);
    for (int64_t i = 0; i < count; i++) {
        if (values[i] == peak) {
            values[i] = NAN;
            return i;
        }
    }
    return -1;
}

// A group's best value, or the sum of its two best.
static real group_value(const real *values, int64_t count, bool two) {
    real best = -(real)INFINITY, second = -(real)INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const real value = values[i];
        second = value > best ? best : value > second ? value : second;
        best = value > best ? value : best;
    }
    return two && count > 1 ? best + second : best;
}

// Marks the experts outside the best groups as taken.
static void keep_groups(real *values, const struct hk_router_rule *rule) {
    real by_group[HK_EXPERTS_MAX];
    bool kept[HK_EXPERTS_MAX] = {false};
    const int64_t count = rule->experts / rule->groups;
    const bool two = rule->group_score == HK_GROUP_TWO_BEST ||
                     (rule->group_score == HK_GROUP_AS_USUAL && rule->score != HK_SOFTMAX);
    for (int64_t g = 0; g < rule->groups; g++) {
        by_group[g] = group_value(values + g * count, count, two);
    }
    for (int64_t i = 0; i < rule->topk_groups; i++) {
        const int64_t best = take_best(by_group, rule->groups);
        assert(best >= 0);
        kept[best] = true;
    }
    for (int64_t e = 0; e < rule->experts; e++) {
        if (!kept[e / count]) values[e] = NAN;
    }
}

static void choose(int32_t *ids, const real *scores, const real *bias,
                   const struct hk_router_rule *rule) {
    real values[HK_EXPERTS_MAX];
    for (int64_t e = 0; e < rule->experts; e++) {
        const real value = scores[e] + (bias ? bias[e] : 0);
        values[e] = isnan(value) ? -(real)INFINITY : value;
    }
    if (rule->groups > 1) keep_groups(values, rule);
    for (int64_t j = 0; j < rule->topk; j++) {
        const int64_t best = take_best(values, rule->experts);
        assert(best >= 0);
        ids[j] = (int32_t)best;
    }
}

static void softmax_row(real *scores, const real *logits, int64_t experts) {
    const real peak = row_max(logits, experts);
#pragma omp simd
    for (int64_t e = 0; e < experts; e++) scores[e] = HK_REAL(exp)(logits[e] - peak);
    const real sum = row_sum(scores, experts);
#pragma omp simd
    for (int64_t e = 0; e < experts; e++) scores[e] /= sum;
}

typedef double wide;
#define WIDE(function) function
#define HK_SCORE(ID, word, value, slope)                                                           \
    static inline real word##_value(real l) value static inline real word##_slope(real s) slope
#define HK_SCORE_OF_ALL(...)
#include "kernels/router/scores.def"
#undef HK_SCORE
#undef HK_SCORE_OF_ALL

static void score_row(real *scores, const real *logits, const struct hk_router_rule *rule) {
    const int64_t experts = rule->experts;
    switch (rule->score) {
    case HK_SOFTMAX:
        softmax_row(scores, logits, experts);
        return;
#define HK_SCORE(ID, word, ...)                                                                    \
    case HK_##ID:                                                                                  \
        _Pragma("omp simd") for (int64_t e = 0; e < experts; e++) scores[e] =                      \
            word##_value(logits[e]);                                                               \
        return;
#define HK_SCORE_OF_ALL(...)
#include "kernels/router/scores.def"
#undef HK_SCORE
    }
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
    real divisor = NAN;
    switch (rule->weight) {
    case HK_SCORES:
        divisor = 1;
        break;
    case HK_RENORMALIZED:
        divisor = sum + (real)1e-20;
        break;
    case HK_SOFTMAX_OF_TOPK:
        divisor = sum;
        break;
    }
    for (int64_t j = 0; j < rule->topk; j++) {
        weights[j] = weights[j] / divisor * (real)rule->scale;
    }
}

HK_KERNEL(void, router,
          (real * scores, real *weights, int32_t *ids, int32_t *loads, const real *logits,
           const real *bias, const int32_t *forced, int32_t *record, int64_t tokens,
           struct hk_router_rule rule),
          (scores, weights, ids, loads, logits, bias, forced, record, tokens, rule),
          HK_PASS(tokens *(2 * rule.experts + rule.topk), tokens *rule.topk, "tokens experts topk",
                  tokens, rule.experts, rule.topk)) {
    assert(rule.experts <= HK_EXPERTS_MAX);
    assert(rule.topk >= 0 && rule.topk <= rule.experts);
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        real *s = scores + t * rule.experts;
        const real *l = logits + t * rule.experts;
        int32_t *chosen = ids + t * rule.topk;
        score_row(s, l, &rule);
        if (forced) {
            for (int64_t j = 0; j < rule.topk; j++) chosen[j] = forced[t * rule.topk + j];
        } else {
            choose(chosen, s, bias, &rule);
        }
        weigh(weights + t * rule.topk, s, l, chosen, &rule);
        for (int64_t j = 0; record && j < rule.topk; j++) record[t * rule.topk + j] = chosen[j];
    }
    for (int64_t e = 0; e < rule.experts; e++) loads[e] = 0;
    for (int64_t p = 0; p < tokens * rule.topk; p++) loads[ids[p]]++;
}

// Adds the gradient of one token's weights to ds, by score. Shares are divided before they are multiplied with: the share of
// an expert that is alone is 1, and its gradient 0, not what rounding leaves.
static void grad_of_weights(real *ds, const real *dw, const real *scores, const int32_t *ids,
                            const struct hk_router_rule *rule) {
    const real scale = (real)rule->scale;
    real sum = 0, along = 0;
    for (int64_t j = 0; j < rule->topk; j++) sum += scores[ids[j]];
    sum += (real)1e-20;
    for (int64_t j = 0; j < rule->topk; j++) along += dw[j] * (scores[ids[j]] / sum);
    for (int64_t j = 0; j < rule->topk; j++) {
        const real d = rule->weight == HK_SCORES ? dw[j] : (dw[j] - along) / sum;
        ds[ids[j]] += scale * d;
    }
}

// From the gradient by score, in d, to the gradient by logit, in place.
static void grad_of_scores(real *d, const real *scores, const struct hk_router_rule *rule) {
    const int64_t experts = rule->experts;
    real along;
    switch (rule->score) {
    case HK_SOFTMAX:
        along = row_dot(d, scores, experts);
#pragma omp simd
        for (int64_t e = 0; e < experts; e++) d[e] = scores[e] * (d[e] - along);
        return;
#define HK_SCORE(ID, word, ...)                                                                    \
    case HK_##ID:                                                                                  \
        _Pragma("omp simd") for (int64_t e = 0; e < experts; e++) d[e] *= word##_slope(scores[e]); \
        return;
#include "kernels/router/scores.def"
#undef HK_SCORE
    }
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
          (dlogits, dweights, dscores, scores, weights, ids, tokens, rule),
          HK_PASS(tokens *(rule.experts *(dscores ? 3 : 2) + 2 * rule.topk), tokens *rule.topk,
                  "tokens experts topk", tokens, rule.experts, rule.topk)) {
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
