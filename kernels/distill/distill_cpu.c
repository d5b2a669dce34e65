// CPU twin of distill. A row of logits is read as by cross_entropy; a row of the teacher is short beside it.
#include "kernels/distill/distill.h"

#include "kernels/cpu/row.h"

// One token's entries, and the divisor of their probabilities.
struct entries {
    const int32_t *ids;
    const float *log_probs;
    int64_t count;
    double most, sum;
};

// `sum` is 0 where there is none.
HK_INLINE struct entries entries_of(struct hk_teacher teacher, int64_t token, double factor) {
    struct entries e = {.ids = teacher.ids + token * teacher.count,
                        .log_probs = teacher.log_probs + token * teacher.count,
                        .count = teacher.count,
                        .most = -INFINITY};
    for (int64_t k = 0; k < e.count; k++) e.most = fmax(e.most, (double)e.log_probs[k]);
    if (e.most == -INFINITY) return e;
    for (int64_t k = 0; k < e.count; k++) e.sum += exp(((double)e.log_probs[k] - e.most) * factor);
    return e;
}

HK_INLINE double probability(const struct entries *e, int64_t k, double factor) {
    return exp(((double)e->log_probs[k] - e->most) * factor) / e->sum;
}

HK_KERNEL(void, distill,
          (real * loss, real *losses, real *lse, const real *logits, struct hk_teacher teacher,
           const real *scale, int64_t tokens, int64_t vocabulary, double temperature),
          (loss, losses, lse, logits, teacher, scale, tokens, vocabulary, temperature),
          HK_PASS(teacher.count ? tokens *vocabulary : 0, 2 * tokens * teacher.count,
                  "tokens vocabulary", tokens, vocabulary)) {
    const double factor = 1 / temperature;
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        const struct entries e = entries_of(teacher, t, factor);
        const real *row = logits + t * vocabulary;
        losses[t] = lse[t] = 0;
        if (e.sum == 0) continue;
        lse[t] = row_log_sum_exp(row, vocabulary, (real)factor);
        double lost = 0;
        for (int64_t k = 0; k < e.count; k++) {
            const double p = probability(&e, k, factor);
            assert(e.ids[k] >= 0 && e.ids[k] < vocabulary);
            if (p > 0) lost += p * ((double)lse[t] - (double)row[e.ids[k]] * factor);
        }
        losses[t] = (real)(temperature * temperature * lost);
    }
    double sum = 0;
    for (int64_t t = 0; t < tokens; t++) sum += (double)losses[t];
    loss[0] = (real)((double)scale[0] * sum);
}

HK_KERNEL(void, distill_grad,
          (real * dlogits, const real *dloss, const real *logits, const real *lse,
           struct hk_teacher teacher, const real *scale, int64_t tokens, int64_t vocabulary,
           double temperature),
          (dlogits, dloss, logits, lse, teacher, scale, tokens, vocabulary, temperature),
          HK_PASS(2 * tokens * vocabulary, 2 * tokens * teacher.count, "tokens vocabulary", tokens,
                  vocabulary)) {
    const double factor = 1 / temperature;
    const double weight = (double)dloss[0] * (double)scale[0] * temperature;
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        const struct entries e = entries_of(teacher, t, factor);
        const real *from = logits + t * vocabulary;
        real *to = dlogits + t * vocabulary;
        if (e.sum == 0) {
            memset(to, 0, (size_t)vocabulary * sizeof *to);
            continue;
        }
        const real shift = lse[t], by = (real)weight, times = (real)factor;
#pragma omp simd
        for (int64_t v = 0; v < vocabulary; v++) to[v] = by * HK_REAL(exp)(from[v] * times - shift);
        for (int64_t k = 0; k < e.count; k++) {
            real *at = to + e.ids[k];
            *at = (real)((double)*at - weight * probability(&e, k, factor));
        }
    }
}
