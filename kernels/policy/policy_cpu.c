// CPU twin of dpo and policy. Rows of logits are read as by cross_entropy; the rest is a number a token.
#include "kernels/policy/policy.h"

#include "kernels/cpu/row.h"

HK_INLINE double said_of(struct hk_teacher reference, int64_t t, int32_t target) {
    for (int64_t k = 0; k < reference.count; k++) {
        const int64_t at = t * reference.count + k;
        if (reference.ids[at] == target && reference.log_probs[at] > -INFINITY)
            return (double)reference.log_probs[at];
    }
    return NAN;
}

// The log-probability of a sequence's targets, more than the reference's.
HK_INLINE double gain_of(const real *logits, const real *lse, struct hk_teacher reference,
                         const int32_t *targets, int64_t sequence, const struct hk_dpo_dims *dims) {
    double sum = 0;
    for (int64_t i = 0; i < dims->positions; i++) {
        const int64_t t = sequence * dims->positions + i;
        if (targets[t] < 0) continue;
        assert(targets[t] < dims->vocabulary);
        sum += (double)logits[t * dims->vocabulary + targets[t]] - (double)lse[t] -
               said_of(reference, t, targets[t]);
    }
    return sum;
}

HK_INLINE void add_pair(double *sums, double chosen, double rejected) {
    if (!sums) return;
    sums[HK_DPO_PAIRS]++;
    sums[HK_DPO_CHOSEN] += chosen;
    sums[HK_DPO_REJECTED] += rejected;
    sums[HK_DPO_RIGHT] += chosen > rejected;
}

HK_INLINE void set_slopes(real *slopes, const int32_t *targets, int64_t count, double slope) {
    for (int64_t i = 0; i < count; i++) slopes[i] = targets[i] < 0 ? 0 : (real)slope;
}

HK_KERNEL(void, dpo,
          (real * loss, real *slopes, real *lse, const real *logits, struct hk_teacher reference,
           const int32_t *targets, const real *scale, struct hk_dpo_dims dims),
          (loss, slopes, lse, logits, reference, targets, scale, dims),
          HK_PASS(dims.tokens *dims.vocabulary, 2 * dims.tokens, "tokens vocabulary", dims.tokens,
                  dims.vocabulary)) {
    const int64_t pairs = reference.count ? dims.tokens / dims.positions / 2 : 0;
    const int64_t paired = 2 * pairs * dims.positions;
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < dims.tokens; t++)
        lse[t] = row_log_sum_exp(logits + t * dims.vocabulary, dims.vocabulary, 1);
    double sum = 0;
    for (int64_t i = 0; i < pairs; i++) {
        const double gained = gain_of(logits, lse, reference, targets, 2 * i, &dims),
                     missed = gain_of(logits, lse, reference, targets, 2 * i + 1, &dims);
        const double h = dims.beta * (gained - missed);
        const double slope = dims.beta / (1 + exp(h)); // 0 where exp(h) is infinite.
        const int64_t chosen = 2 * i * dims.positions, rejected = chosen + dims.positions;
        sum += h > 0 ? log1p(exp(-h)) : log1p(exp(h)) - h;
        add_pair(reference.sums, dims.beta * gained, dims.beta * missed);
        set_slopes(slopes + chosen, targets + chosen, dims.positions, -slope);
        set_slopes(slopes + rejected, targets + rejected, dims.positions, slope);
    }
    for (int64_t t = paired; t < dims.tokens; t++) slopes[t] = 0;
    loss[0] = (real)((double)scale[0] * sum);
}

HK_INLINE void add_token(double *sums, const float *said, int64_t count, double own, double clip) {
    if (!sums) return;
    const double change = own - (double)said[0], ratio = exp(change), advantage = (double)said[1];
    sums[HK_POLICY_TOKENS]++;
    sums[HK_POLICY_ADVANTAGE] += advantage;
    sums[HK_POLICY_RATIO] += ratio;
    sums[HK_POLICY_CLIPPED] +=
        fmin(fmax(ratio, 1 - clip), 1 + clip) * advantage < ratio * advantage;
    sums[HK_POLICY_KL_OLD] += expm1(change) - change;
    if (count < 3) return;
    const double apart = (double)said[2] - own;
    sums[HK_POLICY_REFERENCES]++;
    sums[HK_POLICY_KL] += expm1(apart) - apart;
}

// The loss of a token, and its slope.
HK_INLINE double lost_of(const float *said, double own, const struct hk_policy_dims *dims,
                         double *slope) {
    const double ratio = exp(own - (double)said[0]), advantage = (double)said[1];
    const double kept = fmin(fmax(ratio, 1 - dims->clip), 1 + dims->clip);
    const bool free = ratio * advantage <= kept * advantage;
    *slope = free ? -ratio * advantage : 0;
    double lost = free ? -ratio * advantage : -kept * advantage;
    if (dims->kl == 0) return lost;
    const double apart = (double)said[2] - own;
    *slope += dims->kl * (1 - exp(apart));
    return lost + dims->kl * (expm1(apart) - apart);
}

HK_KERNEL(void, policy,
          (real * loss, real *slopes, real *lse, const real *logits, struct hk_teacher rollout,
           const int32_t *targets, const real *scale, struct hk_policy_dims dims),
          (loss, slopes, lse, logits, rollout, targets, scale, dims),
          HK_PASS(dims.tokens *dims.vocabulary, 3 * dims.tokens, "tokens vocabulary", dims.tokens,
                  dims.vocabulary)) {
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < dims.tokens; t++)
        lse[t] = row_log_sum_exp(logits + t * dims.vocabulary, dims.vocabulary, 1);
    double sum = 0;
    for (int64_t t = 0; t < dims.tokens; t++) {
        slopes[t] = 0;
        if (targets[t] < 0 || rollout.count == 0) continue;
        assert(targets[t] < dims.vocabulary && rollout.count >= (dims.kl == 0 ? 2 : 3));
        const double own = (double)logits[t * dims.vocabulary + targets[t]] - (double)lse[t];
        const float *said = rollout.log_probs + t * rollout.count;
        double slope;
        sum += lost_of(said, own, &dims, &slope);
        add_token(rollout.sums, said, rollout.count, own, dims.clip);
        slopes[t] = (real)slope;
    }
    loss[0] = (real)((double)scale[0] * sum);
}

HK_KERNEL(void, policy_grad,
          (real * dlogits, const real *dloss, const real *logits, const real *slopes,
           const real *lse, const int32_t *targets, const real *scale, int64_t tokens,
           int64_t vocabulary),
          (dlogits, dloss, logits, slopes, lse, targets, scale, tokens, vocabulary),
          HK_PASS(2 * tokens * vocabulary, 2 * tokens, "tokens vocabulary", tokens, vocabulary)) {
    const real factor = dloss[0] * scale[0];
#pragma omp parallel for schedule(static)
    for (int64_t t = 0; t < tokens; t++) {
        const real *from = logits + t * vocabulary;
        real *to = dlogits + t * vocabulary;
        if (targets[t] < 0) {
            memset(to, 0, (size_t)vocabulary * sizeof *to);
            continue;
        }
        const real by = -factor * slopes[t], shift = lse[t];
        const real of_target = HK_REAL(exp)(from[targets[t]] - shift); // `from` may be `to`.
#pragma omp simd
        for (int64_t v = 0; v < vocabulary; v++) to[v] = by * HK_REAL(exp)(from[v] - shift);
        to[targets[t]] = by * (of_target - 1);
    }
}
