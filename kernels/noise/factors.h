// factors: the row of y [sequences, tokens, width] that noise and dropout share on CPUs. Only *_cpu.c files include it.
#ifndef HECATE_KERNELS_NOISE_FACTORS_H
#define HECATE_KERNELS_NOISE_FACTORS_H

#include "kernels/cpu/real.h"
#include "kernels/noise/noise.h"
#include "kernels/noise/philox.h"

// The use that a kernel makes of a random word, and its numbers for that.
typedef real hk_factor_fn(uint32_t word, double a, double b);

// The key of a kernel's random words, besides the row and the channel.
struct hk_stream {
    struct hk_noise noise;
    uint32_t layer,
        purpose; // The purpose keeps streams apart: no two kernels have the same, nor has the runtime.
};

// Row `row` of the call: every element is factor(word, a, b), or 1 where noise.on is false. Its word depends on
// (noise.seed, its sequence's global number, layer, its position and channel, purpose) alone. Four channels come from
// one call of the generator.
HK_INLINE void hk_fill_row(real *y, struct hk_stream stream, int64_t row, int64_t tokens,
                           int64_t width, hk_factor_fn *factor, double a, double b) {
    const struct hk_noise noise = stream.noise;
    const uint64_t first = noise.first_then ? *noise.first_then : noise.first;
    const uint64_t number = first * (uint64_t)tokens + (uint64_t)row;
    const uint64_t blocks = (uint64_t)(width + 3) / 4;
    real *to = y + row * width;
    for (int64_t c = 0; c < width; c += 4) {
        const uint64_t at = number * blocks + (uint64_t)c / 4;
        const struct hk_philox counter = {
            {(uint32_t)at, (uint32_t)(at >> 32), stream.layer, stream.purpose}};
        const struct hk_philox drawn =
            hk_philox4x32(counter, (uint32_t)noise.seed, (uint32_t)(noise.seed >> 32));
        for (int64_t k = 0; k < 4 && c + k < width; k++) {
            to[c + k] = noise.on ? factor(drawn.word[k], a, b) : 1;
        }
    }
}

#endif
