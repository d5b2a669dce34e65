// The router: scores, the choice, weights; and what losses that balance experts read of it.
#include <math.h>

#include "tests/interpret/machine.h"
#include "tests/router_scores.h"

static bool says(MlirOperation op, const char *key, const char *word) {
    return mlirStringRefEqual(hec_get_string(op, key), HEC_STR(word));
}

static const struct router_score *score_of(MlirOperation op) {
    const struct router_score *of = router_scores;
    while (!says(op, "score", of->word)) of++;
    return of;
}

static void score(MlirOperation op, double *s, const double *logits, int64_t experts) {
    const struct router_score *of = score_of(op);
    double most = -INFINITY, sum = 0;
    for (int64_t e = 0; e < experts; e++) most = fmax(most, logits[e]);
    for (int64_t e = 0; e < experts; e++) sum += exp(logits[e] - most);
    for (int64_t e = 0; e < experts; e++) {
        s[e] = of->value ? (double)of->value(logits[e]) : exp(logits[e] - most) / sum;
    }
}

static int64_t best_of(const double *value, const bool *taken, int64_t count) {
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++) {
        if (!taken[i] && (best < 0 || value[i] > value[best])) best = i;
    }
    return best;
}

// Marks the experts of all but the best groups as taken.
static void close_groups(MlirOperation op, const double *rank, bool *taken, int64_t experts) {
    const int64_t groups = hec_get_int(op, "groups"), each = experts / groups;
    const bool usual = !hec_has_attr(op, "group_score");
    const bool two = usual ? !says(op, "score", "softmax") : says(op, "group_score", "two_best");
    double value[HEC_IR_EXPERTS_MAX];
    bool open[HEC_IR_EXPERTS_MAX] = {0};
    for (int64_t g = 0; g < groups; g++) {
        bool seen[HEC_IR_EXPERTS_MAX] = {0};
        const int64_t first = best_of(rank + g * each, seen, each);
        seen[first] = true;
        const int64_t second = best_of(rank + g * each, seen, each);
        value[g] = rank[g * each + first] + (two && second >= 0 ? rank[g * each + second] : 0);
    }
    for (int64_t i = 0; i < hec_get_int(op, "topk_groups"); i++)
        open[best_of(value, open, groups)] = true;
    for (int64_t e = 0; e < experts; e++) taken[e] = !open[e / each];
}

void run_router(struct machine *m, MlirOperation op) {
    const struct tensor *logits = in(m, op, 0), *bias = has_in(op, 1) ? in(m, op, 1) : NULL;
    struct tensor *scores = out(m, op, 0), *weights = out(m, op, 1), *ids = out(m, op, 2);
    struct tensor *loads = out(m, op, 3);
    const int64_t experts = loads->count, topk = hec_get_int(op, "topk");
    fill(loads, 0);
    for (int64_t t = 0; t < logits->count / experts; t++) {
        const double *own = logits->at + t * experts;
        double *s = scores->at + t * experts, rank[HEC_IR_EXPERTS_MAX], sum = 0;
        bool taken[HEC_IR_EXPERTS_MAX] = {0};
        score(op, s, own, experts);
        for (int64_t e = 0; e < experts; e++) {
            rank[e] = s[e] + (bias ? bias->at[e] : 0);
            if (isnan(rank[e])) fault(m, op, "a score is no number");
        }
        if (hec_has_attr(op, "groups") && hec_get_int(op, "groups") > 1)
            close_groups(op, rank, taken, experts);
        for (int64_t j = 0; j < topk; j++) {
            const int64_t e = best_of(rank, taken, experts);
            taken[e] = true;
            ids->at[t * topk + j] = (double)e;
            loads->at[e]++;
            weights->at[t * topk + j] = says(op, "weight", "softmax_of_topk") ? exp(own[e]) : s[e];
            sum += weights->at[t * topk + j];
        }
        if (says(op, "weight", "scores")) sum = 1;
        for (int64_t j = 0; j < topk; j++)
            weights->at[t * topk + j] *= hec_get_float(op, "scale") / sum;
    }
}

// d: gradients of scores; becomes those of logits.
static void score_back(MlirOperation op, double *d, const double *s, int64_t experts) {
    const struct router_score *of = score_of(op);
    double with = 0;
    for (int64_t e = 0; e < experts; e++) with += d[e] * s[e];
    for (int64_t e = 0; e < experts; e++) {
        d[e] = of->slope ? d[e] * (double)of->slope(s[e]) : s[e] * (d[e] - with);
    }
}

void run_router_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dweights = in(m, op, 0), *scores = in(m, op, 1), *weights = in(m, op, 2);
    const struct tensor *ids = in(m, op, 3), *dscores = has_in(op, 4) ? in(m, op, 4) : NULL;
    struct tensor *dlogits = out(m, op, 0);
    const int64_t experts = scores->shape.size[scores->shape.rank - 1];
    const int64_t topk = hec_get_int(op, "topk");
    const double scale = hec_get_float(op, "scale");
    const bool of_logits = says(op, "weight", "softmax_of_topk");
    for (int64_t t = 0; t < scores->count / experts; t++) {
        const double *s = scores->at + t * experts, *dw = dweights->at + t * topk;
        const double *w = weights->at + t * topk, *id = ids->at + t * topk;
        double *d = dlogits->at + t * experts, sum = 0, with = 0;
        for (int64_t j = 0; j < topk; j++) {
            if (!(id[j] >= 0 && id[j] < (double)experts)) fault(m, op, "expert %g", id[j]);
            sum += s[(int64_t)id[j]], with += dw[j] * w[j];
        }
        if (says(op, "weight", "scores")) sum = 1, with = 0;
        for (int64_t e = 0; e < experts; e++) d[e] = dscores ? dscores->at[t * experts + e] : 0;
        for (int64_t j = 0; j < topk && !of_logits; j++)
            d[(int64_t)id[j]] += (scale * dw[j] - with) / sum;
        score_back(op, d, s, experts);
        for (int64_t j = 0; j < topk && of_logits; j++)
            d[(int64_t)id[j]] += w[j] * (dw[j] - with / scale);
    }
}

// ---- what balances experts

void run_fractions(struct machine *m, MlirOperation op) {
    const struct tensor *ids = in(m, op, 0);
    struct tensor *f = out(m, op, 0);
    const int64_t sequences = f->shape.size[0], experts = f->count / sequences;
    const int64_t picks = ids->count / sequences, given = hec_has_attr(op, "group");
    const int64_t group = given ? hec_get_int(op, "group") : sequences;
    for (int64_t s = 0; s < sequences; s++) {
        const int64_t start = s / group * group, end = start + group;
        const int64_t from = hec_get_bool(op, "per_step") ? 0 : start;
        double all = 0;
        for (int64_t e = 0; e < experts; e++) f->at[s * experts + e] = 0;
        for (int64_t p = from * picks; p < (end < sequences ? end : sequences) * picks; p++) {
            if (!(ids->at[p] < (double)experts)) fault(m, op, "expert %g", ids->at[p]);
            all++;
            if (ids->at[p] >= 0) f->at[s * experts + (int64_t)ids->at[p]]++;
        }
        for (int64_t e = 0; e < experts; e++) f->at[s * experts + e] /= all;
    }
}

static double row_sum(MlirOperation op, const double *s, int64_t experts) {
    double sum = 0;
    for (int64_t e = 0; e < experts; e++) sum += s[e];
    return says(op, "score", "softmax") ? 1 : sum;
}

void run_mean_scores(struct machine *m, MlirOperation op) {
    const struct tensor *scores = in(m, op, 0);
    struct tensor *means = out(m, op, 0);
    const int64_t sequences = means->shape.size[0], experts = means->count / sequences;
    const int64_t tokens = scores->count / means->count;
    fill(means, 0);
    for (int64_t t = 0; t < sequences * tokens; t++) {
        const double *s = scores->at + t * experts, sum = row_sum(op, s, experts);
        for (int64_t e = 0; e < experts; e++)
            means->at[t / tokens * experts + e] += s[e] / sum / (double)tokens;
    }
}

void run_mean_scores_grad(struct machine *m, MlirOperation op) {
    const struct tensor *dmeans = in(m, op, 0), *scores = in(m, op, 1);
    struct tensor *d = out(m, op, 0);
    const int64_t sequences = dmeans->shape.size[0], experts = dmeans->count / sequences;
    const int64_t tokens = scores->count / dmeans->count;
    const bool whole = says(op, "score", "softmax");
    for (int64_t t = 0; t < sequences * tokens; t++) {
        const double *s = scores->at + t * experts, sum = row_sum(op, s, experts);
        const double *dp = dmeans->at + t / tokens * experts;
        double with = 0;
        for (int64_t e = 0; e < experts && !whole; e++) with += dp[e] * s[e] / sum;
        for (int64_t e = 0; e < experts; e++)
            d->at[t * experts + e] = (dp[e] - with) / sum / (double)tokens;
    }
}

void run_dropout(struct machine *m, MlirOperation op) {
    struct tensor *y = out(m, op, 0);
    const double rate = hec_get_float(op, "rate");
    const int64_t layer = has_in(op, 0) ? index_in(m, op, 0) : 0;
    const int64_t key = hec_get_int(op, "number") * HEC_IR_LAYERS_MAX + layer;
    for (int64_t i = 0; i < y->count; i++) {
        const double drawn = (random_unit(m->options->seed, "dropout", key, i) + 1) / 2;
        y->at[i] = drawn < rate ? 0 : 1 / (1 - rate);
    }
}

// The same factor wherever an operation of this number asks: it may be recomputed.
void run_noise(struct machine *m, MlirOperation op) {
    struct tensor *y = out(m, op, 0);
    const double amount = hec_get_float(op, "amount");
    const int64_t layer = has_in(op, 0) ? index_in(m, op, 0) : 0;
    const int64_t key = hec_get_int(op, "number") * HEC_IR_LAYERS_MAX + layer;
    for (int64_t i = 0; i < y->count; i++)
        y->at[i] = 1 + amount * random_unit(m->options->seed, "noise", key, i);
}
