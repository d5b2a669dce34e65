// adamw_cuda: launchers of adamw on CUDA devices, see adamw.h and cuda/lane.h. The rule is read when the launcher is
// called.
#ifndef HECATE_KERNELS_ADAMW_CUDA_H
#define HECATE_KERNELS_ADAMW_CUDA_H

#include "kernels/adamw/adamw.h"
#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_adamw_f32(struct hkc_lane *lane, float *param, float *grad, float *mean, float *variance,
                   int64_t count, const struct hk_adamw_rule *rule);
void hkc_adamw_rounded_f32(struct hkc_lane *lane, float *param, hk_bf16 *rounded, float *grad,
                           float *mean, float *variance, int64_t count, enum hk_layout layout,
                           const struct hk_adamw_rule *rule);

#ifdef __cplusplus
}
#endif

#endif
