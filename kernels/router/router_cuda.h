// router on a device: launchers of the kernels that router.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_ROUTER_CUDA_H
#define HECATE_KERNELS_ROUTER_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/router/router.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_router_f32(struct hkc_lane *lane, float *scores, float *weights, int32_t *ids,
                    int32_t *loads, const float *logits, const float *bias, const int32_t *forced,
                    int32_t *record, int64_t tokens, struct hk_router_rule rule);

void hkc_router_grad_f32(struct hkc_lane *lane, float *dlogits, const float *dweights,
                         const float *dscores, const float *scores, const float *weights,
                         const int32_t *ids, int64_t tokens, struct hk_router_rule rule);

#ifdef __cplusplus
}
#endif

#endif
