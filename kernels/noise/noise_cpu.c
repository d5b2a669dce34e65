// CPU twin of noise.
#include "kernels/noise/noise.h"

#include "kernels/noise/factors.h"

HK_INLINE real uniform(uint32_t word, double amount, double none) {
    (void)none;
    const double u = ((double)word + 0.5) * 0x1p-31 - 1;
    return (real)(1 + amount * u);
}

HK_KERNEL(void, noise,
          (real * y, struct hk_noise noise, int64_t layer, int64_t sequences, int64_t tokens,
           int64_t width, double amount),
          (y, noise, layer, sequences, tokens, width, amount),
          HK_PASS(sequences *tokens *width, 0, "sequences tokens width", sequences, tokens,
                  width)) {
    const struct hk_stream stream = {noise, (uint32_t)layer, 0x6A697474}; // "jitt"
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < sequences * tokens; row++) {
        hk_fill_row(y, stream, row, tokens, width, uniform, amount, 0);
    }
}
