// dropout on a device: launchers of the kernels that dropout.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_DROPOUT_CUDA_H
#define HECATE_KERNELS_DROPOUT_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/dropout/dropout.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_dropout_f32(struct hkc_lane *lane, float *y, struct hk_noise noise, int64_t layer,
                     int64_t sequences, int64_t tokens, int64_t width, double rate);

#ifdef __cplusplus
}
#endif

#endif
