// CPU twin of mean_scores.
#include "kernels/mean_scores/mean_scores.h"

#include "kernels/cpu/row.h"

enum { blocks = 16 };

// Adds the tokens' p to sum [experts].
static void add_tokens(double *sum, const real *scores, int64_t tokens, int64_t experts,
                       enum hk_score score) {
    for (int64_t t = 0; t < tokens; t++) {
        const real *row = scores + t * experts;
        const bool softmax = score == HK_SOFTMAX;
        const double floor = softmax ? 0 : HK_SCORES_FLOOR;
        const double factor = softmax ? 1 : 1 / ((double)row_sum(row, experts) + floor);
        const double more = floor / (double)experts;
#pragma omp simd
        for (int64_t e = 0; e < experts; e++) sum[e] += factor * ((double)row[e] + more);
    }
}

HK_KERNEL(void, mean_scores,
          (real * means, const real *scores, int64_t sequences, int64_t tokens, int64_t experts,
           enum hk_score score),
          (means, scores, sequences, tokens, experts, score),
          HK_PASS(sequences *(tokens + 1) * experts, 0, "sequences tokens experts", sequences,
                  tokens, experts)) {
    double sum[blocks][HK_EXPERTS_MAX];
    const int64_t block = (tokens + blocks - 1) / blocks;
    assert(experts <= HK_EXPERTS_MAX);
    for (int64_t s = 0; s < sequences; s++) {
        const real *from = scores + s * tokens * experts;
#pragma omp parallel for schedule(static)
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t left = tokens - b * block, here = left < block ? left : block;
            for (int64_t e = 0; e < experts; e++) sum[b][e] = 0;
            add_tokens(sum[b], from + b * block * experts, here, experts, score);
        }
        for (int64_t e = 0; e < experts; e++) {
            double whole = 0;
            for (int b = 0; b < blocks; b++) whole += sum[b][e];
            means[s * experts + e] = tokens > 0 ? (real)(whole / (double)tokens) : 0;
        }
    }
}

HK_KERNEL(void, mean_scores_grad,
          (real * dscores, const real *dmeans, const real *scores, int64_t sequences,
           int64_t tokens, int64_t experts, enum hk_score score),
          (dscores, dmeans, scores, sequences, tokens, experts, score),
          HK_PASS(2 * sequences * tokens * experts, 0, "sequences tokens experts", sequences,
                  tokens, experts)) {
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < sequences * tokens; t++) {
        const real *d = dmeans + t / tokens * experts, *from = scores + t * experts;
        real *to = dscores + t * experts;
        // p = (s + more) / whole: the gradient of s is (d - mean of d weighted by p) / whole.
        real mean = 0, whole = 1;
        if (score != HK_SOFTMAX) {
            const real floor = (real)HK_SCORES_FLOOR, more = floor / (real)experts;
            whole = row_sum(from, experts) + floor;
            mean = row_dot(d, from, experts) / whole + row_sum(d, experts) * (more / whole);
        }
        const real c = (real)(1 / ((double)whole * (double)tokens));
#pragma omp simd
        for (int64_t e = 0; e < experts; e++) to[e] = c * (d[e] - mean);
    }
}
