// CPU twin of aux_loss.
#include "kernels/aux_loss/aux_loss.h"

#include "kernels/cpu/row.h"

enum { blocks = 64 };

// coef * experts / (topk * tokens^2); 0 for 0 tokens.
static double factor_of(int64_t tokens, int64_t experts, int64_t topk, double coef) {
    if (tokens == 0) return 0;
    return coef * (double)experts / ((double)topk * (double)tokens * (double)tokens);
}

// Sum over e of loads[e] * p[e].
static double weighted(const real *scores, const int32_t *loads, int64_t experts,
                       enum hk_score score) {
    double sum = 0, whole = 0;
    for (int64_t e = 0; e < experts; e++) {
        sum += (double)scores[e] * (double)loads[e];
        whole += (double)scores[e];
    }
    return score == HK_SOFTMAX ? sum : sum / whole;
}

// The sum of `weighted` over tokens, in double over fixed blocks.
static double sum_weighted(const real *scores, const int32_t *loads, int64_t tokens,
                           int64_t experts, enum hk_score score) {
    const int64_t block = (tokens + blocks - 1) / blocks;
    double partial[blocks] = {0};
#pragma omp parallel for schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        for (int64_t t = b * block; t < (b + 1) * block && t < tokens; t++) {
            partial[b] += weighted(scores + t * experts, loads, experts, score);
        }
    }
    double sum = 0;
    for (int b = 0; b < blocks; b++) sum += partial[b];
    return sum;
}

static void grad_of_tokens(real *dscores, double factor, const real *scores, const int32_t *loads,
                           int64_t tokens, int64_t experts, enum hk_score score) {
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        const real *from = scores + t * experts;
        real *to = dscores + t * experts;
        // p = s / sum: the gradient of a share is (load - weighted mean of loads) / sum.
        double mean = 0, whole = 1;
        if (score != HK_SOFTMAX) {
            mean = weighted(from, loads, experts, score);
            whole = (double)row_sum(from, experts);
        }
        const real c = (real)(factor / whole), less = (real)mean;
#pragma omp simd
        for (int64_t e = 0; e < experts; e++) to[e] = c * ((real)loads[e] - less);
    }
}

static void count_loads(int32_t *loads, const int32_t *ids, int64_t picks, int64_t experts) {
    for (int64_t e = 0; e < experts; e++) loads[e] = 0;
    for (int64_t p = 0; p < picks; p++) loads[ids[p]]++;
}

HK_KERNEL(void, aux_loss,
          (real * loss, const real *scores, const int32_t *loads, int64_t tokens, int64_t experts,
           int64_t topk, enum hk_score score, double coef),
          (loss, scores, loads, tokens, experts, topk, score, coef),
          HK_PASS(tokens *experts, experts, "tokens experts", tokens, experts)) {
    const double sum = sum_weighted(scores, loads, tokens, experts, score);
    loss[0] = (real)(factor_of(tokens, experts, topk, coef) * sum);
}

HK_KERNEL(void, aux_loss_grad,
          (real * dscores, const real *dloss, const real *scores, const int32_t *loads,
           int64_t tokens, int64_t experts, int64_t topk, enum hk_score score, double coef),
          (dscores, dloss, scores, loads, tokens, experts, topk, score, coef),
          HK_PASS(2 * tokens * experts, experts, "tokens experts", tokens, experts)) {
    const double factor = (double)dloss[0] * factor_of(tokens, experts, topk, coef);
    grad_of_tokens(dscores, factor, scores, loads, tokens, experts, score);
}

HK_KERNEL(void, aux_loss_sequence,
          (real * loss, const real *scores, const int32_t *ids, int64_t sequences, int64_t tokens,
           int64_t experts, int64_t topk, enum hk_score score, double coef),
          (loss, scores, ids, sequences, tokens, experts, topk, score, coef),
          HK_PASS(sequences *tokens *experts, sequences *tokens *topk, "sequences tokens experts",
                  sequences, tokens, experts)) {
    int32_t loads[HK_EXPERTS_MAX];
    double sum = 0;
    assert(experts <= HK_EXPERTS_MAX);
    for (int64_t s = 0; s < sequences; s++) {
        count_loads(loads, ids + s * tokens * topk, tokens * topk, experts);
        sum += sum_weighted(scores + s * tokens * experts, loads, tokens, experts, score);
    }
    const double mean = sequences > 0 ? sum / (double)sequences : 0;
    loss[0] = (real)(factor_of(tokens, experts, topk, coef) * mean);
}

HK_KERNEL(void, aux_loss_sequence_grad,
          (real * dscores, const real *dloss, const real *scores, const int32_t *ids,
           int64_t sequences, int64_t tokens, int64_t experts, int64_t topk, enum hk_score score,
           double coef),
          (dscores, dloss, scores, ids, sequences, tokens, experts, topk, score, coef),
          HK_PASS(2 * sequences * tokens * experts, sequences *tokens *topk,
                  "sequences tokens experts", sequences, tokens, experts)) {
    int32_t loads[HK_EXPERTS_MAX];
    assert(experts <= HK_EXPERTS_MAX);
    for (int64_t s = 0; s < sequences; s++) {
        const double factor =
            (double)dloss[0] * factor_of(tokens, experts, topk, coef) / (double)sequences;
        count_loads(loads, ids + s * tokens * topk, tokens * topk, experts);
        grad_of_tokens(dscores + s * tokens * experts, factor, scores + s * tokens * experts, loads,
                       tokens, experts, score);
    }
}
