// CUDA twin of rounding to bf16: a thread for W values. Bytes moved: 6 for a value.
#include "kernels/bf16.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

template <int W>
__global__ void __launch_bounds__(WIDE_THREADS)
    round_values(hk_bf16 *to, const float *from, int64_t vectors) {
    const int64_t v = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    if (v >= vectors) return;
    const hkc_vector<float, W> read = ((const hkc_vector<float, W> *)from)[v];
    hkc_vector<hk_bf16, W> out;
    for (int i = 0; i < W; i++) out.at[i] = hk_bf16_round(read.at[i]);
    ((hkc_vector<hk_bf16, W> *)to)[v] = out;
}

} // namespace

extern "C" void hkc_round_bf16(struct hkc_lane *lane, hk_bf16 *to, const float *from,
                               int64_t count) {
    if (as_vectors(count, to, from)) {
        hkc_launch(lane, round_values<4>, blocks_of(count / 4, WIDE_THREADS), WIDE_THREADS, 0, to,
                   from, count / 4);
    } else {
        hkc_launch(lane, round_values<1>, blocks_of(count, WIDE_THREADS), WIDE_THREADS, 0, to, from,
                   count);
    }
}
