// CUDA twin of dropout: a thread for four channels, from one call of the generator; the bits of the CPU's.
//
// Bytes moved: 4 an element, written. About 100 instructions a thread: counted, 59 (sm_100) to 100 % (sm_80) of the
// bandwidth of copies.
#include "kernels/dropout/dropout_cuda.h"

#include "kernels/cuda/device.h"
#include "kernels/noise/philox.h"

namespace {

constexpr int BLOCK = 256;
constexpr uint32_t PURPOSE = 0x64726F70; // "drop", as on the CPU.

// y [rows, width], `blocks` threads a row. `dropped`: of 2^32 words.
__global__ void __launch_bounds__(BLOCK)
    drop(float *y, struct hk_noise noise, uint32_t layer, int64_t tokens, int64_t rows,
         int64_t width, int64_t blocks, uint64_t dropped, float kept) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
#if HKC_FAULT != 1 // asan: threads behind the last row go on.
    if (i >= rows * blocks) return;
#endif
    const int64_t row = i / blocks, channel = i % blocks * 4;
    const uint64_t first = noise.first_then ? *noise.first_then : noise.first;
    const uint64_t number = first * (uint64_t)tokens + (uint64_t)row;
#if HKC_FAULT == 2 // plain: rows have one place for each channel in the generator's sequence.
    const uint64_t at = number * (uint64_t)width + (uint64_t)channel / 4;
#else
    const uint64_t at = number * (uint64_t)blocks + (uint64_t)channel / 4;
#endif
    const struct hk_philox counter = {{(uint32_t)at, (uint32_t)(at >> 32), layer, PURPOSE}};
    const struct hk_philox drawn =
        hk_philox4x32(counter, (uint32_t)noise.seed, (uint32_t)(noise.seed >> 32));
    float factor[4];
#pragma unroll
    for (int k = 0; k < 4; k++) factor[k] = !noise.on ? 1 : drawn.word[k] < dropped ? 0 : kept;
    float *to = y + row * width + channel;
    if (width % 4 == 0 && (uintptr_t)y % sizeof(float4) == 0) {
        *(float4 *)to = make_float4(factor[0], factor[1], factor[2], factor[3]);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
#if HKC_FAULT == 3 // race: a row's last thread begins the next one.
        if (channel + k <= width) to[k] = factor[k];
#else
        if (channel + k < width) to[k] = factor[k];
#endif
    }
}

} // namespace

void hkc_dropout_f32(struct hkc_lane *lane, float *y, struct hk_noise noise, int64_t layer,
                     int64_t sequences, int64_t tokens, int64_t width, double rate) {
    const int64_t rows = sequences * tokens, blocks = (width + 3) / 4, threads = rows * blocks;
    hkc_launch(lane, drop, (unsigned)((threads + BLOCK - 1) / BLOCK), BLOCK, 0, y, noise,
               (uint32_t)layer, tokens, rows, width, blocks, (uint64_t)(rate * 0x1p32),
               (float)(1 / (1 - rate)));
}
