// CUDA twin of select_bias: a thread for each count, a block for each layer's biases.
#include "kernels/select_bias/select_bias.h"

#include "kernels/clip/clip.h"
#include "kernels/cuda/loop.h"
#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

__global__ void add_counts(int64_t *counts, const int32_t *loads, int64_t count, int64_t experts,
                           int64_t stride, bool adds) {
    HKC_FOR(i, count) {
        const int64_t load = loads[i / experts * stride + i % experts];
        counts[i] = adds ? counts[i] + load : load;
    }
}

__global__ void __launch_bounds__(WIDE_THREADS)
    select_bias(float *bias, const int64_t *counts, int64_t experts, int64_t stride, double rate,
                const hk_clipped *clipped) {
    HKC_SHARED(shared);
    if (clipped && clipped->stopped) return;
    counts += blockIdx.x * experts;
    bias += blockIdx.x * stride;
    double own = 0; // Whole numbers below 2^53.
    for (int64_t e = threadIdx.x; e < experts; e += WIDE_THREADS) own += (double)counts[e];
    const int64_t sum = (int64_t)block_sum(own, (double *)shared);
    for (int64_t e = threadIdx.x; e < experts; e += WIDE_THREADS) {
        const int64_t excess = counts[e] * experts - sum;
        const double move = excess > 0 ? -rate : excess < 0 ? rate : 0;
        bias[e] = (float)((double)bias[e] + move);
    }
}

} // namespace

extern "C" void hkc_add_counts(struct hkc_lane *lane, int64_t *counts, const int32_t *loads,
                               int64_t layers, int64_t experts, int64_t stride,
                               enum hk_write write) {
    const int64_t count = layers * experts;
    hkc_launch_loop(lane, add_counts, count, counts, loads, count, experts, stride,
                    write == HK_ADD);
}

extern "C" void hkc_select_bias_f32(struct hkc_lane *lane, float *bias, const int64_t *counts,
                                    int64_t layers, int64_t experts, int64_t stride, double rate,
                                    const struct hk_clipped *clipped) {
    hkc_launch(lane, select_bias, (unsigned)layers, WIDE_THREADS,
               WIDE_THREADS / 32 * sizeof(double), bias, counts, experts, stride, rate, clipped);
}
