// noise on a device: launchers of the kernels that noise.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_NOISE_CUDA_H
#define HECATE_KERNELS_NOISE_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/noise/noise.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_noise_f32(struct hkc_lane *lane, float *y, struct hk_noise noise, int64_t layer,
                   int64_t sequences, int64_t tokens, int64_t width, double amount);

#ifdef __cplusplus
}
#endif

#endif
