// CUDA twin of causal_conv: a thread for each value of y and of dx; a block for 32 channels of dw, whose warps take
// every LINES-th token. Plain: x is read once for each tap, from the cache where it is large enough. Bytes moved: 8 for
// a float, 4 for a bf16, and a third more backward.
// Differences from the contract: a warp sums every LINES-th token of dw in float, then their sums are added.
#include "kernels/causal_conv/causal_conv.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

constexpr int LINES = 16; // Warps.

// Positions before that of a token that its document has.
HKC_DEVICE int64_t seen(const hk_conv_dims &d, int64_t token) {
    const int64_t t = token % d.positions;
    return d.begins ? t - d.begins[token] : t;
}

template <class T>
__global__ void __launch_bounds__(WIDE_THREADS)
    convolve(T *y, const T *x, const float *w, hk_conv_dims dims) {
    const int64_t i = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    const int64_t token = i / dims.channels, c = i % dims.channels;
    if (token >= dims.batch * dims.positions) return;
    const int64_t before = seen(dims, token);
    float sum = 0;
    for (int64_t j = 0; j < dims.taps; j++) {
        const int64_t back = dims.taps - 1 - j;
        if (back <= before) sum += w[c * dims.taps + j] * hkc_float(x[i - back * dims.channels]);
    }
    y[i] = (T)sum;
}

template <class T>
__global__ void __launch_bounds__(WIDE_THREADS)
    convolve_back(T *dx, const T *dy, const float *w, hk_conv_dims dims, bool add) {
    const int64_t i = (int64_t)blockIdx.x * WIDE_THREADS + threadIdx.x;
    const int64_t token = i / dims.channels, c = i % dims.channels;
    if (token >= dims.batch * dims.positions) return;
    float sum = add ? hkc_float(dx[i]) : 0;
    for (int64_t j = 0; j < dims.taps; j++) {
        const int64_t ahead = dims.taps - 1 - j;
        if (token % dims.positions + ahead >= dims.positions) continue;
        if (seen(dims, token + ahead) >= ahead)
            sum += w[c * dims.taps + j] * hkc_float(dy[i + ahead * dims.channels]);
    }
    dx[i] = (T)sum;
}

// blockIdx.y is the tap.
template <class T>
__global__ void __launch_bounds__(LINES * 32)
    correlate(float *dw, const T *dy, const T *x, hk_conv_dims dims, bool add) {
    HKC_SHARED(shared);
    float *sums = (float *)shared;
    const int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x % 32, line = threadIdx.x / 32;
    const int64_t back = dims.taps - 1 - blockIdx.y, tokens = dims.batch * dims.positions;
    float sum = 0;
    for (int64_t token = line; token < tokens && c < dims.channels; token += LINES) {
        const int64_t at = token * dims.channels + c;
        if (seen(dims, token) >= back)
            sum += hkc_float(dy[at]) * hkc_float(x[at - back * dims.channels]);
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (line != 0 || c >= dims.channels) return;
    float *to = dw + c * dims.taps + blockIdx.y, total = add ? *to : 0;
    for (int i = 0; i < LINES; i++) total += sums[i * 32 + threadIdx.x];
    *to = total;
}

template <class T>
void forward(hkc_lane *lane, T *y, const T *x, const float *w, hk_conv_dims dims) {
    const int64_t count = dims.batch * dims.positions * dims.channels;
    hkc_launch(lane, (convolve<T>), blocks_of(count, WIDE_THREADS), WIDE_THREADS, 0, y, x, w, dims);
}

template <class T>
void backward(hkc_lane *lane, T *dx, float *dw, const T *dy, const T *x, const float *w,
              hk_conv_dims dims, hk_write write_x, hk_write write_w) {
    const int64_t count = dims.batch * dims.positions * dims.channels;
    hkc_launch(lane, (convolve_back<T>), blocks_of(count, WIDE_THREADS), WIDE_THREADS, 0, dx, dy, w,
               dims, write_x == HK_ADD);
    hkc_launch(lane, (correlate<T>), dim3(blocks_of(dims.channels, 32), (unsigned)dims.taps),
               LINES * 32, LINES * 32 * sizeof(float), dw, dy, x, dims, write_w == HK_ADD);
}

} // namespace

extern "C" void hkc_causal_conv_f32(struct hkc_lane *lane, float *y, const float *x, const float *w,
                                    struct hk_conv_dims dims) {
    forward(lane, y, x, w, dims);
}

extern "C" void hkc_causal_conv_bf16(struct hkc_lane *lane, hk_bf16 *y, const hk_bf16 *x,
                                     const float *w, struct hk_conv_dims dims) {
    forward(lane, hkc_values(y), hkc_values(x), w, dims);
}

extern "C" void hkc_causal_conv_grad_f32(struct hkc_lane *lane, float *dx, float *dw,
                                         const float *dy, const float *x, const float *w,
                                         struct hk_conv_dims dims, enum hk_write write_x,
                                         enum hk_write write_w) {
    backward(lane, dx, dw, dy, x, w, dims, write_x, write_w);
}

extern "C" void hkc_causal_conv_grad_bf16(struct hkc_lane *lane, hk_bf16 *dx, float *dw,
                                          const hk_bf16 *dy, const hk_bf16 *x, const float *w,
                                          struct hk_conv_dims dims, enum hk_write write_x,
                                          enum hk_write write_w) {
    backward(lane, hkc_values(dx), dw, hkc_values(dy), hkc_values(x), w, dims, write_x, write_w);
}
