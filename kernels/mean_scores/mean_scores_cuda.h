// mean_scores on a device: launchers of the kernels that mean_scores.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_MEAN_SCORES_CUDA_H
#define HECATE_KERNELS_MEAN_SCORES_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/mean_scores/mean_scores.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_mean_scores_f32(struct hkc_lane *lane, float *means, const float *scores,
                         int64_t sequences, int64_t tokens, int64_t experts, enum hk_score score);

void hkc_mean_scores_grad_f32(struct hkc_lane *lane, float *dscores, const float *dmeans,
                              const float *scores, int64_t sequences, int64_t tokens,
                              int64_t experts, enum hk_score score);

#ifdef __cplusplus
}
#endif

#endif
