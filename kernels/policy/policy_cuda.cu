// CUDA twin of dpo and policy: a block for a token, as cross_entropy has it; then one for a pair. The rest is a number
// a token. Bytes moved: as cross_entropy.
// Differences from the contract: sums over positions, pairs and tokens run in double in an order that depends on their
// number.
#include "kernels/policy/policy.h"

#include "kernels/cuda/losses.h"

namespace {

using namespace hkc;

HKC_DEVICE double said_of(const hk_teacher &reference, int64_t t, int32_t target) {
    for (int64_t k = 0; k < reference.count; k++) {
        const int64_t at = t * reference.count + k;
        if (reference.ids[at] == target && reference.log_probs[at] > -INFINITY)
            return (double)reference.log_probs[at];
    }
    return NAN;
}

// lse, and by how much the target's log-probability is more than the reference's; 0 where there is no target.
template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    gains_of(double *gains, float *lse, const T *logits, hk_teacher reference,
             const int32_t *targets, int64_t vocabulary) {
    HKC_SHARED(shared);
    const int64_t t = blockIdx.x;
    const T *row = logits + t * vocabulary;
    const float all = block_log_sum_exp<T, W>(row, vocabulary, 1, (float *)shared);
    if (threadIdx.x != 0) return;
    lse[t] = all;
    const int32_t target = targets[t];
    gains[t] = target < 0
                   ? 0
                   : (double)hkc_float(row[target]) - (double)all - said_of(reference, t, target);
}

// A block for a pair, and one for the tokens behind the last: their slopes are 0.
__global__ void __launch_bounds__(WIDE_THREADS)
    pair_losses(double *losses, float *slopes, const double *gains, const int32_t *targets,
                int64_t pairs, hk_dpo_dims dims) {
    HKC_SHARED(shared);
    const int64_t pair = blockIdx.x, first = 2 * pair * dims.positions;
    if (pair == pairs) {
        for (int64_t t = first + threadIdx.x; t < dims.tokens; t += WIDE_THREADS) slopes[t] = 0;
        return;
    }
    double sum = 0;
    for (int64_t i = threadIdx.x; i < 2 * dims.positions; i += WIDE_THREADS)
        sum += i < dims.positions ? gains[first + i] : -gains[first + i];
    const double h = dims.beta * block_sum(sum, (double *)shared);
    const double slope = dims.beta / (1 + exp(h)); // 0 where exp(h) is infinite.
    for (int64_t i = threadIdx.x; i < 2 * dims.positions; i += WIDE_THREADS) {
        const float own = (float)(i < dims.positions ? -slope : slope);
        slopes[first + i] = targets[first + i] < 0 ? 0 : own;
    }
    if (threadIdx.x == 0) losses[pair] = h > 0 ? log1p(exp(-h)) : log1p(exp(h)) - h;
}

// The loss of a token, and its slope.
HKC_DEVICE double lost_of(const float *said, double own, const hk_policy_dims &dims,
                          double *slope) {
    const double ratio = exp(own - (double)said[0]), advantage = (double)said[1];
    const double kept = fmin(fmax(ratio, 1 - dims.clip), 1 + dims.clip);
    const bool free = ratio * advantage <= kept * advantage;
    *slope = free ? -ratio * advantage : 0;
    const double lost = free ? -ratio * advantage : -kept * advantage;
    if (dims.kl == 0) return lost;
    const double apart = (double)said[2] - own;
    *slope += dims.kl * (1 - exp(apart));
    return lost + dims.kl * (expm1(apart) - apart);
}

template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    token_losses(double *losses, float *slopes, float *lse, const T *logits, hk_teacher rollout,
                 const int32_t *targets, hk_policy_dims dims) {
    HKC_SHARED(shared);
    const int64_t t = blockIdx.x;
    const T *row = logits + t * dims.vocabulary;
    const float all = block_log_sum_exp<T, W>(row, dims.vocabulary, 1, (float *)shared);
    if (threadIdx.x != 0) return;
    double slope = 0;
    lse[t] = all;
    losses[t] = 0;
    if (targets[t] >= 0 && rollout.count > 0)
        losses[t] = lost_of(rollout.log_probs + t * rollout.count,
                            (double)hkc_float(row[targets[t]]) - (double)all, dims, &slope);
    slopes[t] = (float)slope;
}

template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    policy_grad(T *dlogits, const float *dloss, const T *logits, const float *slopes,
                const float *lse, const int32_t *targets, const float *scale, int64_t vocabulary) {
    typedef hkc_vector<T, W> values;
    const int64_t t = blockIdx.x, target = targets[t];
    const float by = -(dloss[0] * scale[0]) * slopes[t], shift = lse[t];
    const values *from = (const values *)(logits + t * vocabulary);
    values *to = (values *)(dlogits + t * vocabulary);
    for (int64_t v = threadIdx.x; v < vocabulary / W; v += WIDE_THREADS) {
        const values read = from[v];
        values out;
        for (int i = 0; i < W; i++) {
            const float p = expf(hkc_float(read.at[i]) - shift);
            out.at[i] = (T)(target < 0 ? 0.0f : by * (p - (v * W + i == target ? 1.0f : 0.0f)));
        }
        to[v] = out;
    }
}

void sum_of(hkc_lane *lane, float *loss, const double *losses, const float *scale, int64_t count) {
    hkc_launch(lane, sum_losses<double>, 1, WIDE_THREADS, LOG_SUM_EXP_SHARED, loss, losses, scale,
               count);
}

template <class T>
void forward_dpo(hkc_lane *lane, float *loss, float *slopes, float *lse, const T *logits,
                 hk_teacher reference, const int32_t *targets, const float *scale,
                 hk_dpo_dims dims) {
    constexpr int W = VECTOR<T>;
    const size_t shared = LOG_SUM_EXP_SHARED;
    const int64_t pairs = reference.count ? dims.tokens / dims.positions / 2 : 0;
    double *gains = (double *)lane->scratch, *losses = gains + dims.tokens;
    assert(dims.tokens + pairs <= HKC_SCRATCH / (int64_t)sizeof *gains);
    if (as_vectors<W>(dims.vocabulary, logits)) {
        hkc_launch(lane, (gains_of<T, W>), (unsigned)dims.tokens, WIDE_THREADS, shared, gains, lse,
                   logits, reference, targets, dims.vocabulary);
    } else {
        hkc_launch(lane, (gains_of<T, 1>), (unsigned)dims.tokens, WIDE_THREADS, shared, gains, lse,
                   logits, reference, targets, dims.vocabulary);
    }
    hkc_launch(lane, pair_losses, (unsigned)pairs + 1, WIDE_THREADS, shared, losses, slopes,
               (const double *)gains, targets, pairs, dims);
    sum_of(lane, loss, losses, scale, pairs);
}

template <class T>
void forward_policy(hkc_lane *lane, float *loss, float *slopes, float *lse, const T *logits,
                    hk_teacher rollout, const int32_t *targets, const float *scale,
                    hk_policy_dims dims) {
    constexpr int W = VECTOR<T>;
    const size_t shared = LOG_SUM_EXP_SHARED;
    double *losses = (double *)lane->scratch; // One for each token.
    assert(dims.tokens <= HKC_SCRATCH / (int64_t)sizeof *losses);
    if (as_vectors<W>(dims.vocabulary, logits)) {
        hkc_launch(lane, (token_losses<T, W>), (unsigned)dims.tokens, WIDE_THREADS, shared, losses,
                   slopes, lse, logits, rollout, targets, dims);
    } else {
        hkc_launch(lane, (token_losses<T, 1>), (unsigned)dims.tokens, WIDE_THREADS, shared, losses,
                   slopes, lse, logits, rollout, targets, dims);
    }
    sum_of(lane, loss, losses, scale, dims.tokens);
}

template <class T>
void backward(hkc_lane *lane, T *dlogits, const float *dloss, const T *logits, const float *slopes,
              const float *lse, const int32_t *targets, const float *scale, int64_t tokens,
              int64_t vocabulary) {
    constexpr int W = VECTOR<T>;
    if (as_vectors<W>(vocabulary, dlogits, logits)) {
        hkc_launch(lane, (policy_grad<T, W>), (unsigned)tokens, WIDE_THREADS, 0, dlogits, dloss,
                   logits, slopes, lse, targets, scale, vocabulary);
    } else {
        hkc_launch(lane, (policy_grad<T, 1>), (unsigned)tokens, WIDE_THREADS, 0, dlogits, dloss,
                   logits, slopes, lse, targets, scale, vocabulary);
    }
}

} // namespace

extern "C" void hkc_dpo_f32(struct hkc_lane *lane, float *loss, float *slopes, float *lse,
                            const float *logits, struct hk_teacher reference,
                            const int32_t *targets, const float *scale, struct hk_dpo_dims dims) {
    forward_dpo(lane, loss, slopes, lse, logits, reference, targets, scale, dims);
}

extern "C" void hkc_dpo_bf16(struct hkc_lane *lane, float *loss, float *slopes, float *lse,
                             const hk_bf16 *logits, struct hk_teacher reference,
                             const int32_t *targets, const float *scale, struct hk_dpo_dims dims) {
    forward_dpo(lane, loss, slopes, lse, hkc_values(logits), reference, targets, scale, dims);
}

extern "C" void hkc_policy_f32(struct hkc_lane *lane, float *loss, float *slopes, float *lse,
                               const float *logits, struct hk_teacher rollout,
                               const int32_t *targets, const float *scale,
                               struct hk_policy_dims dims) {
    forward_policy(lane, loss, slopes, lse, logits, rollout, targets, scale, dims);
}

extern "C" void hkc_policy_bf16(struct hkc_lane *lane, float *loss, float *slopes, float *lse,
                                const hk_bf16 *logits, struct hk_teacher rollout,
                                const int32_t *targets, const float *scale,
                                struct hk_policy_dims dims) {
    forward_policy(lane, loss, slopes, lse, hkc_values(logits), rollout, targets, scale, dims);
}

extern "C" void hkc_policy_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dloss,
                                    const float *logits, const float *slopes, const float *lse,
                                    const int32_t *targets, const float *scale, int64_t tokens,
                                    int64_t vocabulary) {
    backward(lane, dlogits, dloss, logits, slopes, lse, targets, scale, tokens, vocabulary);
}

extern "C" void hkc_policy_grad_bf16(struct hkc_lane *lane, hk_bf16 *dlogits, const float *dloss,
                                     const hk_bf16 *logits, const float *slopes, const float *lse,
                                     const int32_t *targets, const float *scale, int64_t tokens,
                                     int64_t vocabulary) {
    backward(lane, hkc_values(dlogits), dloss, hkc_values(logits), slopes, lse, targets, scale,
             tokens, vocabulary);
}
