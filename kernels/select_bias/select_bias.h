// select_bias: a router's selection bias moves against the load of its experts, once a step.
// Source: Wang et al. 2024, "Auxiliary-Loss-Free Load Balancing Strategy for Mixture-of-Experts", arXiv:2408.15664.
#ifndef HECATE_KERNELS_SELECT_BIAS_H
#define HECATE_KERNELS_SELECT_BIAS_H

#include "kernels/types.h"

struct hk_clipped; // clip/clip.h

// counts[layer][expert] (+)= loads[layer * stride + expert].
void hk_add_counts(int64_t *counts, const int32_t *loads, int64_t layers, int64_t experts,
                   int64_t stride, enum hk_write write);

// bias[layer * stride + expert] moves by `rate`: down where counts[layer][expert] is above the mean of its layer, up
// where it is below. Integers decide, so no rounding is involved. `clipped`, if not NULL, may say that nothing is
// updated.
void hk_select_bias_f32(float *bias, const int64_t *counts, int64_t layers, int64_t experts,
                        int64_t stride, double rate, const struct hk_clipped *clipped);
void hk_select_bias_f64(double *bias, const int64_t *counts, int64_t layers, int64_t experts,
                        int64_t stride, double rate, const struct hk_clipped *clipped);

#endif
