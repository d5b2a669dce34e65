// CUDA twin of sinks: a block for each head, a warp of it for each row in turn. AHEAD of its rows are read before they
// are added, one after the other. Bytes moved: 8 for a float of out, half of that of bf16; in flight in bf16: 16 KB of
// a block. As many blocks as heads leave a large device half idle.
// Differences from the contract: a warp sums every 16th row, then their sums are added, in float.
#include "kernels/sinks/sinks.h"

#include "kernels/cuda/device.h"

namespace {

constexpr int LINES = 16; // Warps.
constexpr int AHEAD = 8;  // Rows.

template <class T>
__global__ void __launch_bounds__(LINES * 32)
    sinks_grad(float *dsinks, const T *dout, const T *out, const float *lse, const float *sinks,
               int64_t batch, int64_t positions, int64_t heads, int64_t width, bool add) {
    HKC_SHARED(shared);
    float *sums = (float *)shared;
    const int64_t h = blockIdx.x, lane = threadIdx.x % 32, line = threadIdx.x / 32;
    float sum = 0;
    for (int64_t b = 0; b < batch; b++) {
        const float *of = lse + (b * heads + h) * positions;
        for (int64_t t = line; t < positions; t += LINES * AHEAD) {
            float dot[AHEAD] = {}, share[AHEAD];
            const int rows = (int)min((positions - t + LINES - 1) / LINES, (int64_t)AHEAD);
#pragma unroll
            for (int a = 0; a < AHEAD; a++) share[a] = a < rows ? of[t + a * LINES] : 0;
            for (int64_t c = lane; c < width; c += 32) {
                T left[AHEAD], right[AHEAD];
#pragma unroll
                for (int a = 0; a < AHEAD; a++) {
                    if (a >= rows) continue;
                    const int64_t at = ((b * positions + t + a * LINES) * heads + h) * width + c;
                    left[a] = dout[at];
                    right[a] = out[at];
                }
#pragma unroll
                for (int a = 0; a < AHEAD; a++) {
                    if (a < rows) dot[a] += hkc_float(left[a]) * hkc_float(right[a]);
                }
            }
#pragma unroll
            for (int a = 0; a < AHEAD; a++) {
                if (a < rows) sum += dot[a] * expf(sinks[h] - share[a]);
            }
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) sums[line] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    float total = 0;
    for (int i = 0; i < LINES; i++) total += sums[i];
    dsinks[h] = (add ? dsinks[h] : 0) - total;
}

template <class T>
void backward(hkc_lane *lane, float *dsinks, const T *dout, const T *out, const float *lse,
              const float *sinks, int64_t batch, int64_t positions, int64_t heads, int64_t width,
              hk_write write) {
    hkc_launch(lane, sinks_grad<T>, (unsigned)heads, LINES * 32, LINES * sizeof(float), dsinks,
               dout, out, lse, sinks, batch, positions, heads, width, write == HK_ADD);
}

} // namespace

extern "C" void hkc_sinks_grad_f32(struct hkc_lane *lane, float *dsinks, const float *dout,
                                   const float *out, const float *lse, const float *sinks,
                                   int64_t batch, int64_t positions, int64_t heads, int64_t width,
                                   enum hk_write write) {
    backward(lane, dsinks, dout, out, lse, sinks, batch, positions, heads, width, write);
}

extern "C" void hkc_sinks_grad_bf16(struct hkc_lane *lane, float *dsinks, const hk_bf16 *dout,
                                    const hk_bf16 *out, const float *lse, const float *sinks,
                                    int64_t batch, int64_t positions, int64_t heads, int64_t width,
                                    enum hk_write write) {
    backward(lane, dsinks, hkc_values(dout), hkc_values(out), lse, sinks, batch, positions, heads,
             width, write);
}
