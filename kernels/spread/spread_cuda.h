// spread_cuda: launchers of spread on CUDA devices, see spread.h and cuda/lane.h. Differences: rows of an expert are
// summed in an order that depends on their number.
#ifndef HECATE_KERNELS_SPREAD_CUDA_H
#define HECATE_KERNELS_SPREAD_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/spread/spread.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_spread_f32(struct hkc_lane *lane, float *y, const float *const *chunk, int64_t offset,
                    const int32_t *first, int64_t experts, int64_t n, enum hk_write write);
void hkc_spread_bf16(struct hkc_lane *lane, hk_bf16 *y, const float *const *chunk, int64_t offset,
                     const int32_t *first, int64_t experts, int64_t n, enum hk_write write);
void hkc_spread_grad_f32(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                         const float *dy, const int32_t *first, int64_t experts, int64_t n,
                         enum hk_write write);
void hkc_spread_grad_bf16(struct hkc_lane *lane, float *const *chunk, int64_t offset,
                          const hk_bf16 *dy, const int32_t *first, int64_t experts, int64_t n,
                          enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
