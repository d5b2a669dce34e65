// CPU twin of dropout.
#include "kernels/dropout/dropout.h"

#include "kernels/noise/factors.h"

// `dropped`: of 2^32 words, a whole number.
HK_INLINE real keep(uint32_t word, double dropped, double kept) {
    return word < dropped ? 0 : (real)kept;
}

HK_KERNEL(void, dropout,
          (real * y, struct hk_noise noise, int64_t layer, int64_t sequences, int64_t tokens,
           int64_t width, double rate),
          (y, noise, layer, sequences, tokens, width, rate),
          HK_PASS(sequences *tokens *width, 0, "sequences tokens width", sequences, tokens,
                  width)) {
    const struct hk_stream stream = {noise, (uint32_t)layer, 0x64726F70}; // "drop"
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < sequences * tokens; row++) {
        hk_fill_row(y, stream, row, tokens, width, keep, floor(rate * 0x1p32), 1 / (1 - rate));
    }
}
