// limit on a device: launchers of the kernels that limit.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_LIMIT_CUDA_H
#define HECATE_KERNELS_LIMIT_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/limit/limit.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_limit_f32(struct hkc_lane *lane, int32_t *kept_first, int32_t *kept_pair,
                   int32_t *kept_slot, const float *weights, const int32_t *first,
                   const int32_t *pair, int64_t tokens, int64_t topk, int64_t experts,
                   int64_t group, double capacity, enum hk_drop drop);

// kept[p] = ids[p] where kept_slot[p] is a row and p < limited; -1 in all the others of `count`.
void hkc_limit_ids(struct hkc_lane *lane, int32_t *kept, const int32_t *ids,
                   const int32_t *kept_slot, int64_t limited, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
