// CPU twin of dropout: four channels from one call of the generator.
#include "kernels/dropout/dropout.h"

#include "kernels/cpu/real.h"
#include "kernels/noise/philox.h"

static const uint32_t purpose = 0x64726F70; // "drop": no stream of the runtime's has these words.

HK_KERNEL(void, dropout,
          (real * y, struct hk_noise noise, int64_t layer, int64_t sequences, int64_t tokens,
           int64_t width, double rate),
          (y, noise, layer, sequences, tokens, width, rate),
          HK_PASS(sequences *tokens *width, 0, "sequences tokens width", sequences, tokens,
                  width)) {
    const uint64_t blocks = (uint64_t)(width + 3) / 4;
    const uint64_t first = noise.first_then ? *noise.first_then : noise.first;
    const uint64_t dropped = (uint64_t)(rate * 0x1p32); // Of 2^32 words.
    const real kept = (real)(1 / (1 - rate));
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < sequences * tokens; row++) {
        const uint64_t number = first * (uint64_t)tokens + (uint64_t)row;
        real *to = y + row * width;
        for (int64_t c = 0; c < width; c += 4) {
            const uint64_t at = number * blocks + (uint64_t)c / 4;
            const struct hk_philox drawn = hk_philox4x32(
                (struct hk_philox){{(uint32_t)at, (uint32_t)(at >> 32), (uint32_t)layer, purpose}},
                (uint32_t)noise.seed, (uint32_t)(noise.seed >> 32));
            for (int64_t k = 0; k < 4 && c + k < width; k++) {
                const real factor = drawn.word[k] < dropped ? 0 : kept;
                to[c + k] = noise.on ? factor : 1;
            }
        }
    }
}
