// noise: the factors of a router's jitter, uniform in 1 +- amount.
// Source: Fedus et al. 2021, arXiv:2101.03961, section 2.3 (input jitter).
#ifndef HECATE_KERNELS_NOISE_H
#define HECATE_KERNELS_NOISE_H

#include "kernels/types.h"

// The key of the noise of a call, besides layer, position and channel.
struct hk_noise {
    bool on; // False, as in evaluation: all factors are 1.
    uint64_t seed;
    uint64_t first;             // Global number of the call's first sequence.
    const uint64_t *first_then; // NULL, or where that number stands when the kernel runs.
};

// y [sequences, tokens, width], each element from (seed, its sequence's global number, layer, its
// position and channel) alone. Philox4x32-10, as noise/philox.h; layers below 2^32.
void hk_noise_f32(float *y, struct hk_noise noise, int64_t layer, int64_t sequences, int64_t tokens,
                  int64_t width, double amount);
void hk_noise_f64(double *y, struct hk_noise noise, int64_t layer, int64_t sequences,
                  int64_t tokens, int64_t width, double amount);

#endif
