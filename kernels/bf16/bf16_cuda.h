// bf16_cuda: launchers of what rounds to bf16 on CUDA devices, see kernels/bf16.h and cuda/lane.h.
#ifndef HECATE_KERNELS_BF16_CUDA_H
#define HECATE_KERNELS_BF16_CUDA_H

#include "kernels/bf16.h"
#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_round_bf16(struct hkc_lane *lane, hk_bf16 *to, const float *from, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
