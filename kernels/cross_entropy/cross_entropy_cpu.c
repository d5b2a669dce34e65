// CPU twin of cross_entropy. A row of logits is read from memory once and stays in cache for the
// second pass.
#include "kernels/cross_entropy/cross_entropy.h"

#include "kernels/cpu/row.h"

HK_INLINE void log_sums(real *lse, const real *logits, int64_t tokens, int64_t vocabulary) {
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        lse[t] = row_log_sum_exp(logits + t * vocabulary, vocabulary, 1);
    }
}

HK_KERNEL(void, log_sum_exp, (real * lse, const real *logits, int64_t tokens, int64_t vocabulary),
          (lse, logits, tokens, vocabulary),
          HK_PASS(tokens *vocabulary, 0, "tokens vocabulary", tokens, vocabulary)) {
    log_sums(lse, logits, tokens, vocabulary);
}

HK_KERNEL(void, cross_entropy,
          (real * loss, real *lse, const real *logits, const int32_t *targets, const float *weights,
           const real *scale, int64_t tokens, int64_t vocabulary),
          (loss, lse, logits, targets, weights, scale, tokens, vocabulary),
          HK_PASS(tokens *vocabulary, tokens, "tokens vocabulary", tokens, vocabulary)) {
    log_sums(lse, logits, tokens, vocabulary);
    double sum = 0;
    for (int64_t t = 0; t < tokens; t++) {
        if (targets[t] < 0) continue;
        assert(targets[t] < vocabulary);
        const double lost = (double)lse[t] - (double)logits[t * vocabulary + targets[t]];
        sum = fma(weights ? (double)weights[t] : 1, lost, sum); // Alike with any instructions.
    }
    loss[0] = (real)((double)scale[0] * sum);
}

HK_KERNEL(void, cross_entropy_grad,
          (real * dlogits, const real *dloss, const real *logits, const real *lse,
           const int32_t *targets, const float *weights, const real *scale, int64_t tokens,
           int64_t vocabulary),
          (dlogits, dloss, logits, lse, targets, weights, scale, tokens, vocabulary),
          HK_PASS(2 * tokens * vocabulary, tokens, "tokens vocabulary", tokens, vocabulary)) {
    const real scaled = dloss[0] * scale[0];
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        const real *from = logits + t * vocabulary;
        real *to = dlogits + t * vocabulary;
        if (targets[t] < 0) {
            memset(to, 0, (size_t)vocabulary * sizeof *to);
            continue;
        }
        const real shift = lse[t], factor = weights ? scaled * (real)weights[t] : scaled;
        const real of_target = HK_REAL(exp)(from[targets[t]] - shift); // `from` may be `to`.
#pragma omp simd
        for (int64_t v = 0; v < vocabulary; v++) to[v] = factor * HK_REAL(exp)(from[v] - shift);
        to[targets[t]] = factor * (of_target - 1);
    }
}
