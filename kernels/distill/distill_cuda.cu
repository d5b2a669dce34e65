// CUDA twin of distill: a block for a token, as cross_entropy has it. Each thread has one of a teacher's entries, if
// there are no more than threads. Bytes moved: as cross_entropy; entries are few beside the vocabulary.
// Differences from the contract: sums over entries and tokens run in an order that depends on their number, and entries
// have probabilities in double, which gradients take as floats.
#include "kernels/distill/distill.h"

#include "kernels/cuda/losses.h"

namespace {

using namespace hkc;

// Where the block's sums lie in shared memory: for each warp a number, for each sum another place.
constexpr size_t MOST = 0, SUM = 128, LOST = 384, LOGITS = 640;
constexpr size_t SHARED = LOGITS + LOG_SUM_EXP_SHARED;

// One token's entries, and the factor of their probabilities.
struct entries {
    const int32_t *ids;
    const float *log_probs;
    int64_t count;
    double most, share, factor;

    HKC_DEVICE double probability(int64_t k) const {
        return exp(((double)log_probs[k] - most) * factor) * share;
    }
};

// All threads of the block call it and get the same. `share` is 0 where there is none.
HKC_DEVICE entries entries_of(const hk_teacher &teacher, int64_t token, double factor,
                              unsigned char *shared) {
    entries e = {teacher.ids + token * teacher.count,
                 teacher.log_probs + token * teacher.count,
                 teacher.count,
                 0,
                 0,
                 factor};
    float most = -INFINITY;
#pragma unroll 1
    for (int64_t k = threadIdx.x; k < e.count; k += WIDE_THREADS)
        most = fmaxf(most, e.log_probs[k]);
    most = block_max(most, (float *)(shared + MOST));
    if (most == -INFINITY) return e;
    e.most = (double)most;
    double sum = 0;
#pragma unroll 1
    for (int64_t k = threadIdx.x; k < e.count; k += WIDE_THREADS)
        sum += exp(((double)e.log_probs[k] - e.most) * factor);
    e.share = 1 / block_sum(sum, (double *)(shared + SUM));
    return e;
}

template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    token_losses(float *losses, float *lse, const T *logits, hk_teacher teacher, int64_t vocabulary,
                 double temperature, double factor) {
    HKC_SHARED(shared);
    const int64_t t = blockIdx.x;
    const T *row = logits + t * vocabulary;
    const entries e = entries_of(teacher, t, factor, shared);
    if (e.share == 0) { // All threads know.
        if (threadIdx.x == 0) losses[t] = lse[t] = 0;
        return;
    }
    const float all =
        block_log_sum_exp<T, W>(row, vocabulary, (float)e.factor, (float *)(shared + LOGITS));
    double lost = 0;
#pragma unroll 1
    for (int64_t k = threadIdx.x; k < e.count; k += WIDE_THREADS) {
        const double p = e.probability(k);
        if (p > 0) lost += p * ((double)all - (double)hkc_float(row[e.ids[k]]) * e.factor);
    }
    lost = block_sum(lost, (double *)(shared + LOST));
    if (threadIdx.x != 0) return;
    lse[t] = all;
    losses[t] = (float)(temperature * temperature * lost);
}

// Entries come first, as they may lie where the gradient will: `own` [count], shared, has that of each entry's token, with
// the probabilities of all entries of this token. The first one writes it.
template <class T, int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    distill_grad(T *dlogits, const float *dloss, const T *logits, const float *lse,
                 hk_teacher teacher, const float *scale, int64_t vocabulary, double temperature,
                 double factor) {
    typedef hkc_vector<T, W> values;
    HKC_SHARED(shared);
    float *own = (float *)(shared + SHARED), *p = own + teacher.count;
    const int64_t t = blockIdx.x;
    const entries e = entries_of(teacher, t, factor, shared);
    const float weight = e.share == 0 ? 0 : (float)((double)(dloss[0] * scale[0]) * temperature);
    const float shift = lse[t], times = (float)factor;
    const T *row = logits + t * vocabulary;
#pragma unroll 1
    for (int64_t k = threadIdx.x; e.share != 0 && k < e.count; k += WIDE_THREADS)
        p[k] = (float)e.probability(k);
    __syncthreads();
#pragma unroll 1
    for (int64_t k = threadIdx.x; e.share != 0 && k < e.count; k += WIDE_THREADS) {
        float said = 0;
        bool first = true;
        for (int64_t j = 0; j < e.count; j++) {
            if (e.ids[j] != e.ids[k]) continue;
            first = first && j >= k;
            said += p[j];
        }
        const float softmax = expf(hkc_float(row[e.ids[k]]) * times - shift);
        own[k] = first ? weight * (softmax - said) : NAN;
    }
    __syncthreads();
    const values *from = (const values *)row;
    values *to = (values *)(dlogits + t * vocabulary);
    for (int64_t v = threadIdx.x; v < vocabulary / W; v += WIDE_THREADS) {
        const values read = from[v];
        values out;
        for (int i = 0; i < W; i++)
            out.at[i] =
                (T)(weight == 0 ? 0.0f : weight * expf(hkc_float(read.at[i]) * times - shift));
        to[v] = out;
    }
    __syncthreads();
#pragma unroll 1
    for (int64_t k = threadIdx.x; e.share != 0 && k < e.count; k += WIDE_THREADS) {
        if (!isnan(own[k])) dlogits[t * vocabulary + e.ids[k]] = (T)own[k];
    }
}

template <class T>
void forward(hkc_lane *lane, float *loss, float *losses, float *lse, const T *logits,
             hk_teacher teacher, const float *scale, int64_t tokens, int64_t vocabulary,
             double temperature) {
    constexpr int W = VECTOR<T>;
    if (as_vectors<W>(vocabulary, logits)) {
        hkc_launch(lane, (token_losses<T, W>), (unsigned)tokens, WIDE_THREADS, SHARED, losses, lse,
                   logits, teacher, vocabulary, temperature, 1 / temperature);
    } else {
        hkc_launch(lane, (token_losses<T, 1>), (unsigned)tokens, WIDE_THREADS, SHARED, losses, lse,
                   logits, teacher, vocabulary, temperature, 1 / temperature);
    }
    hkc_launch(lane, sum_losses<float>, 1, WIDE_THREADS, SHARED, loss, (const float *)losses, scale,
               tokens);
}

template <class T>
void backward(hkc_lane *lane, T *dlogits, const float *dloss, const T *logits, const float *lse,
              hk_teacher teacher, const float *scale, int64_t tokens, int64_t vocabulary,
              double temperature) {
    constexpr int W = VECTOR<T>;
    const size_t shared = SHARED + 2 * (size_t)teacher.count * sizeof(float);
    if (as_vectors<W>(vocabulary, dlogits, logits)) {
        hkc_launch(lane, (distill_grad<T, W>), (unsigned)tokens, WIDE_THREADS, shared, dlogits,
                   dloss, logits, lse, teacher, scale, vocabulary, temperature, 1 / temperature);
    } else {
        hkc_launch(lane, (distill_grad<T, 1>), (unsigned)tokens, WIDE_THREADS, shared, dlogits,
                   dloss, logits, lse, teacher, scale, vocabulary, temperature, 1 / temperature);
    }
}

} // namespace

extern "C" void hkc_distill_f32(struct hkc_lane *lane, float *loss, float *losses, float *lse,
                                const float *logits, struct hk_teacher teacher, const float *scale,
                                int64_t tokens, int64_t vocabulary, double temperature) {
    forward(lane, loss, losses, lse, logits, teacher, scale, tokens, vocabulary, temperature);
}

extern "C" void hkc_distill_bf16(struct hkc_lane *lane, float *loss, float *losses, float *lse,
                                 const hk_bf16 *logits, struct hk_teacher teacher,
                                 const float *scale, int64_t tokens, int64_t vocabulary,
                                 double temperature) {
    forward(lane, loss, losses, lse, hkc_values(logits), teacher, scale, tokens, vocabulary,
            temperature);
}

extern "C" void hkc_distill_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dloss,
                                     const float *logits, const float *lse,
                                     struct hk_teacher teacher, const float *scale, int64_t tokens,
                                     int64_t vocabulary, double temperature) {
    backward(lane, dlogits, dloss, logits, lse, teacher, scale, tokens, vocabulary, temperature);
}

extern "C" void hkc_distill_grad_bf16(struct hkc_lane *lane, hk_bf16 *dlogits, const float *dloss,
                                      const hk_bf16 *logits, const float *lse,
                                      struct hk_teacher teacher, const float *scale, int64_t tokens,
                                      int64_t vocabulary, double temperature) {
    backward(lane, hkc_values(dlogits), dloss, hkc_values(logits), lse, teacher, scale, tokens,
             vocabulary, temperature);
}
