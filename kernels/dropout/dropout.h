// dropout: factors that drop a share of values, 0 or 1 / (1 - rate).
// Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from overfitting" (JMLR 15), scaled
// in training in place of evaluation.
#ifndef HECATE_KERNELS_DROPOUT_H
#define HECATE_KERNELS_DROPOUT_H

#include "kernels/noise/noise.h"

// y [sequences, tokens, width]: 0 with probability `rate`, else 1 / (1 - rate); where noise.on is false, 1. Each
// element depends on (seed, its sequence's global number, layer, its position and channel) alone. 0 < rate < 1.
// Philox4x32-10, as noise/philox.h; layers below 2^32.
void hk_dropout_f32(float *y, struct hk_noise noise, int64_t layer, int64_t sequences,
                    int64_t tokens, int64_t width, double rate);
void hk_dropout_f64(double *y, struct hk_noise noise, int64_t layer, int64_t sequences,
                    int64_t tokens, int64_t width, double rate);

#endif
