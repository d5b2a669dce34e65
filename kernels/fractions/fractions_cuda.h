// fractions on a device: launchers of the kernels that fractions.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_FRACTIONS_CUDA_H
#define HECATE_KERNELS_FRACTIONS_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/fractions/fractions.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_fractions_f32(struct hkc_lane *lane, float *fractions, int32_t *running,
                       const int32_t *ids, int64_t sequences, int64_t tokens, int64_t topk,
                       int64_t experts, int64_t group, int64_t iteration);

#ifdef __cplusplus
}
#endif

#endif
