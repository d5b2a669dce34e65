// aux_loss on a device: launchers of the kernels that aux_loss.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_AUX_LOSS_CUDA_H
#define HECATE_KERNELS_AUX_LOSS_CUDA_H

#include "kernels/aux_loss/aux_loss.h"
#include "kernels/cuda/lane.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_aux_loss_f32(struct hkc_lane *lane, float *loss, const float *means,
                      const float *fractions, int64_t sequences, int64_t experts, double coef);

void hkc_aux_loss_grad_f32(struct hkc_lane *lane, float *dmeans, const float *dloss,
                           const float *fractions, int64_t sequences, int64_t experts, double coef);

#ifdef __cplusplus
}
#endif

#endif
