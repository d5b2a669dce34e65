// select_bias on the host.
#include "kernels/select_bias/select_bias.h"

#include "kernels/clip/clip.h"

void hk_add_counts(int64_t *counts, const int32_t *loads, int64_t layers, int64_t experts,
                   int64_t stride, enum hk_write write) {
    for (int64_t i = 0; i < layers * experts; i++) {
        const int64_t load = loads[i / experts * stride + i % experts];
        counts[i] = write == HK_ADD ? counts[i] + load : load;
    }
}

// The change of expert e's bias in a layer.
static double move_of(const int64_t *counts, int64_t experts, int64_t e, double rate) {
    int64_t sum = 0;
    for (int64_t i = 0; i < experts; i++) sum += counts[i];
    const int64_t excess = counts[e] * experts - sum;
    return excess > 0 ? -rate : excess < 0 ? rate : 0;
}

void hk_select_bias_f32(float *bias, const int64_t *counts, int64_t layers, int64_t experts,
                        int64_t stride, double rate, const struct hk_clipped *clipped) {
    if (clipped && clipped->stopped) return;
    for (int64_t i = 0; i < layers * experts; i++) {
        const int64_t layer = i / experts, e = i % experts;
        float *b = &bias[layer * stride + e];
        *b = (float)((double)*b + move_of(counts + layer * experts, experts, e, rate));
    }
}

void hk_select_bias_f64(double *bias, const int64_t *counts, int64_t layers, int64_t experts,
                        int64_t stride, double rate, const struct hk_clipped *clipped) {
    if (clipped && clipped->stopped) return;
    for (int64_t i = 0; i < layers * experts; i++) {
        const int64_t layer = i / experts, e = i % experts;
        bias[layer * stride + e] += move_of(counts + layer * experts, experts, e, rate);
    }
}
