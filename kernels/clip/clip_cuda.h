// clip on a device: the launcher of what clip.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_CLIP_CUDA_H
#define HECATE_KERNELS_CLIP_CUDA_H

#include "kernels/clip/clip.h"
#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_clip(struct hkc_lane *lane, struct hk_clipped *clipped, const double *sums, int64_t count,
              const float *numbers, int64_t numbered, double clip, int64_t skips);

#ifdef __cplusplus
}
#endif

#endif
