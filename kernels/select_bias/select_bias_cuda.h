// select_bias on a device: launchers of what select_bias.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_SELECT_BIAS_CUDA_H
#define HECATE_KERNELS_SELECT_BIAS_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/select_bias/select_bias.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_add_counts(struct hkc_lane *lane, int64_t *counts, const int32_t *loads, int64_t layers,
                    int64_t experts, int64_t stride, enum hk_write write);

void hkc_select_bias_f32(struct hkc_lane *lane, float *bias, const int64_t *counts, int64_t layers,
                         int64_t experts, int64_t stride, double rate,
                         const struct hk_clipped *clipped);

#ifdef __cplusplus
}
#endif

#endif
