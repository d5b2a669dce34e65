// CUDA twin of cross_entropy: a block for a token reads its logits once, with a maximum and a sum that grow together;
// the gradient is elementwise. Bytes moved: 4 for a logit forward, 8 backward; of bf16 half of that.
// Differences from the contract: tokens are summed in double in an order that depends on their number.
#include "kernels/cross_entropy/cross_entropy.h"

#include "kernels/cuda/losses.h"

namespace {

using namespace hkc;

template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    log_sum_exp(float *lse, double *losses, const T *logits, const int32_t *targets,
                const float *weights, int64_t vocabulary) {
    HKC_SHARED(shared);
    const int64_t t = blockIdx.x;
    const float result =
        block_log_sum_exp<T, W>(logits + t * vocabulary, vocabulary, 1, (float *)shared);
    if (threadIdx.x != 0) return;
    lse[t] = result;
    if (targets[t] < 0) {
        losses[t] = 0;
    } else {
        const double lost = (double)result - (double)hkc_float(logits[t * vocabulary + targets[t]]);
        losses[t] = weights ? (double)weights[t] * lost : lost;
    }
}

template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    cross_entropy_grad(T *dlogits, const float *dloss, const T *logits, const float *lse,
                       const int32_t *targets, const float *weights, const float *scale,
                       int64_t vocabulary) {
    typedef hkc_vector<T, W> values;
    const int64_t t = blockIdx.x, target = targets[t];
    const float scaled = target < 0 ? 0 : dloss[0] * scale[0], shift = lse[t];
    const float factor = weights ? scaled * weights[t] : scaled;
    const values *from = (const values *)(logits + t * vocabulary);
    values *to = (values *)(dlogits + t * vocabulary);
    for (int64_t v = threadIdx.x; v < vocabulary / W; v += WIDE_THREADS) {
        const values read = from[v];
        values out;
        for (int i = 0; i < W; i++) {
            const float p = target < 0 ? 0 : expf(hkc_float(read.at[i]) - shift);
            out.at[i] = (T)(factor * (p - (v * W + i == target ? 1.0f : 0.0f)));
        }
        to[v] = out;
    }
}

template <class T>
void losses_of(hkc_lane *lane, double *losses, float *lse, const T *logits, const int32_t *targets,
               const float *weights, int64_t tokens, int64_t vocabulary) {
    constexpr int W = VECTOR<T>;
    const size_t shared = LOG_SUM_EXP_SHARED;
    if (as_vectors<W>(vocabulary, logits)) {
        hkc_launch(lane, (log_sum_exp<T, W>), (unsigned)tokens, WIDE_THREADS, shared, lse, losses,
                   logits, targets, weights, vocabulary);
    } else {
        hkc_launch(lane, (log_sum_exp<T, 1>), (unsigned)tokens, WIDE_THREADS, shared, lse, losses,
                   logits, targets, weights, vocabulary);
    }
}

void sum_of(hkc_lane *lane, float *loss, const double *losses, const float *scale, int64_t tokens) {
    hkc_launch(lane, sum_losses<double>, 1, WIDE_THREADS, LOG_SUM_EXP_SHARED, loss, losses, scale,
               tokens);
}

template <class T>
void forward(hkc_lane *lane, float *loss, float *lse, const T *logits, const int32_t *targets,
             const float *weights, const float *scale, int64_t tokens, int64_t vocabulary) {
    double *losses = (double *)lane->scratch; // One for each token.
    assert(tokens <= HKC_SCRATCH / (int64_t)sizeof *losses);
    losses_of(lane, losses, lse, logits, targets, weights, tokens, vocabulary);
    sum_of(lane, loss, losses, scale, tokens);
}

template <class T>
void backward(hkc_lane *lane, T *dlogits, const float *dloss, const T *logits, const float *lse,
              const int32_t *targets, const float *weights, const float *scale, int64_t tokens,
              int64_t vocabulary) {
    constexpr int W = VECTOR<T>;
    if (as_vectors<W>(vocabulary, dlogits, logits)) {
        hkc_launch(lane, (cross_entropy_grad<T, W>), (unsigned)tokens, WIDE_THREADS, 0, dlogits,
                   dloss, logits, lse, targets, weights, scale, vocabulary);
    } else {
        hkc_launch(lane, (cross_entropy_grad<T, 1>), (unsigned)tokens, WIDE_THREADS, 0, dlogits,
                   dloss, logits, lse, targets, weights, scale, vocabulary);
    }
}

} // namespace

// The two parts of cross_entropy: lse and the loss of each token, 0 where it is ignored; scale times their sum.
extern "C" void hkc_token_losses_f32(struct hkc_lane *lane, double *losses, float *lse,
                                     const float *logits, const int32_t *targets,
                                     const float *weights, int64_t tokens, int64_t vocabulary) {
    losses_of(lane, losses, lse, logits, targets, weights, tokens, vocabulary);
}

extern "C" void hkc_token_losses_bf16(struct hkc_lane *lane, double *losses, float *lse,
                                      const hk_bf16 *logits, const int32_t *targets,
                                      const float *weights, int64_t tokens, int64_t vocabulary) {
    losses_of(lane, losses, lse, hkc_values(logits), targets, weights, tokens, vocabulary);
}

extern "C" void hkc_sum_losses(struct hkc_lane *lane, float *loss, const double *losses,
                               const float *scale, int64_t tokens) {
    sum_of(lane, loss, losses, scale, tokens);
}

extern "C" void hkc_cross_entropy_f32(struct hkc_lane *lane, float *loss, float *lse,
                                      const float *logits, const int32_t *targets,
                                      const float *weights, const float *scale, int64_t tokens,
                                      int64_t vocabulary) {
    forward(lane, loss, lse, logits, targets, weights, scale, tokens, vocabulary);
}

extern "C" void hkc_cross_entropy_bf16(struct hkc_lane *lane, float *loss, float *lse,
                                       const hk_bf16 *logits, const int32_t *targets,
                                       const float *weights, const float *scale, int64_t tokens,
                                       int64_t vocabulary) {
    forward(lane, loss, lse, hkc_values(logits), targets, weights, scale, tokens, vocabulary);
}

extern "C" void hkc_cross_entropy_grad_f32(struct hkc_lane *lane, float *dlogits,
                                           const float *dloss, const float *logits,
                                           const float *lse, const int32_t *targets,
                                           const float *weights, const float *scale, int64_t tokens,
                                           int64_t vocabulary) {
    backward(lane, dlogits, dloss, logits, lse, targets, weights, scale, tokens, vocabulary);
}

extern "C" void hkc_cross_entropy_grad_bf16(struct hkc_lane *lane, hk_bf16 *dlogits,
                                            const float *dloss, const hk_bf16 *logits,
                                            const float *lse, const int32_t *targets,
                                            const float *weights, const float *scale,
                                            int64_t tokens, int64_t vocabulary) {
    backward(lane, hkc_values(dlogits), dloss, hkc_values(logits), lse, targets, weights, scale,
             tokens, vocabulary);
}
