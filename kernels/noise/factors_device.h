// factors_device: the walk over y [rows, width] that noise and dropout share on devices: a thread for four channels,
// from one call of the generator; the bits of the CPU's (factors.h). Only *_cuda.cu files include it.
#ifndef HECATE_KERNELS_NOISE_FACTORS_DEVICE_H
#define HECATE_KERNELS_NOISE_FACTORS_DEVICE_H

#include "kernels/cuda/device.h"
#include "kernels/cuda/lane.h"
#include "kernels/noise/noise.h"
#include "kernels/noise/philox.h"

namespace {

constexpr int BLOCK = 256;

// `blocks`: threads of a row. Factor: a class with `purpose`, which keeps streams apart, and `of`, a word's factor.
template <typename Factor>
__global__ void __launch_bounds__(BLOCK)
    fill_factors(float *y, struct hk_noise noise, uint32_t layer, int64_t tokens, int64_t rows,
                 int64_t width, int64_t blocks, Factor factor) {
    const int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= rows * blocks) return;
    const int64_t row = i / blocks, channel = i % blocks * 4;
    const uint64_t first = noise.first_then ? *noise.first_then : noise.first;
    const uint64_t number = first * (uint64_t)tokens + (uint64_t)row;
    const uint64_t at = number * (uint64_t)blocks + (uint64_t)channel / 4;
    const struct hk_philox counter = {{(uint32_t)at, (uint32_t)(at >> 32), layer, Factor::purpose}};
    const struct hk_philox drawn =
        hk_philox4x32(counter, (uint32_t)noise.seed, (uint32_t)(noise.seed >> 32));
    float value[4];
#pragma unroll
    for (int k = 0; k < 4; k++) value[k] = noise.on ? factor.of(drawn.word[k]) : 1;
    float *to = y + row * width + channel;
    if (width % 4 == 0 && (uintptr_t)y % sizeof(float4) == 0) {
        *(float4 *)to = make_float4(value[0], value[1], value[2], value[3]);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (channel + k < width) to[k] = value[k];
    }
}

template <typename Factor>
void launch_factors(struct hkc_lane *lane, float *y, struct hk_noise noise, int64_t layer,
                    int64_t sequences, int64_t tokens, int64_t width, Factor factor) {
    const int64_t rows = sequences * tokens, blocks = (width + 3) / 4, threads = rows * blocks;
    hkc_launch(lane, fill_factors<Factor>, (unsigned)((threads + BLOCK - 1) / BLOCK), BLOCK, 0, y,
               noise, (uint32_t)layer, tokens, rows, width, blocks, factor);
}

} // namespace

#endif
