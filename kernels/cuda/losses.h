// losses: shared by kernels of losses over the vocabulary. A block for a token reads its logits once.
#ifndef HECATE_KERNELS_CUDA_LOSSES_H
#define HECATE_KERNELS_CUDA_LOSSES_H

#include <math.h>

#include "kernels/cuda/rows.h"

namespace hkc {

constexpr size_t LOG_SUM_EXP_SHARED = 64 * sizeof(float);

// log sum exp(row[v] * factor), of WIDE_THREADS threads: each sums exp(x - its own maximum) of its elements; then all
// are brought to one maximum. All of them get it. `numbers` [64], shared.
template <class T, int W>
HKC_DEVICE float block_log_sum_exp(const T *row, int64_t vocabulary, float factor, float *numbers) {
    typedef hkc_vector<T, W> values;
    const values *from = (const values *)row;
    float most = -INFINITY, sum = 0;
    for (int64_t v = threadIdx.x; v < vocabulary / W; v += WIDE_THREADS) {
        hkc_vector<float, W> read = hkc_floats(from[v]);
        for (int i = 0; i < W; i++) read.at[i] *= factor;
        float own = read.at[0];
        for (int i = 1; i < W; i++) own = fmaxf(own, read.at[i]);
        if (own > most) {
            sum *= expf(most - own);
            most = own;
        }
        for (int i = 0; i < W; i++) sum += expf(read.at[i] - most);
    }
    const float all = block_max(most, numbers);
    if (most > -INFINITY) sum *= expf(most - all); // A thread that has read nothing has sum 0.
    sum = block_sum(sum, numbers + 32);
    return all + logf(sum);
}

// loss[0] = scale[0] times the sum of `losses`. Thread i sums every token whose number is i, modulo the threads.
template <class T>
__global__ void __launch_bounds__(WIDE_THREADS)
    sum_losses(float *loss, const T *losses, const float *scale, int64_t tokens) {
    HKC_SHARED(shared);
    double sum = 0;
    for (int64_t t = threadIdx.x; t < tokens; t += WIDE_THREADS) sum += (double)losses[t];
    sum = block_sum(sum, (double *)shared);
    if (threadIdx.x == 0) loss[0] = (float)((double)scale[0] * sum);
}

} // namespace hkc

#endif
