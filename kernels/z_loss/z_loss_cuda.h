// z_loss on a device: launchers of the kernels that z_loss.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_Z_LOSS_CUDA_H
#define HECATE_KERNELS_Z_LOSS_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/z_loss/z_loss.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_z_loss_f32(struct hkc_lane *lane, float *loss, const float *logits, int64_t tokens,
                    int64_t experts, double coef);

void hkc_z_loss_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dloss,
                         const float *logits, int64_t tokens, int64_t experts, double coef,
                         enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
