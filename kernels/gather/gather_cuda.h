// gather_cuda: launchers of gather on CUDA devices, see gather.h and cuda/lane.h. Differences: the table has at most
// HKC_SCRATCH / 8 rows; it and its gradient are float, for any type of values.
#ifndef HECATE_KERNELS_GATHER_CUDA_H
#define HECATE_KERNELS_GATHER_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/gather/gather.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_gather_f32(struct hkc_lane *lane, float *y, const float *table, const int32_t *ids,
                    int64_t count, int64_t width);
void hkc_gather_bf16(struct hkc_lane *lane, hk_bf16 *y, const float *table, const int32_t *ids,
                     int64_t count, int64_t width);
void hkc_gather_grad_f32(struct hkc_lane *lane, float *dtable, const float *dy, const int32_t *ids,
                         int64_t count, int64_t rows, int64_t width, enum hk_write write);
void hkc_gather_grad_bf16(struct hkc_lane *lane, float *dtable, const hk_bf16 *dy,
                          const int32_t *ids, int64_t count, int64_t rows, int64_t width,
                          enum hk_write write);

void hkc_ahead(struct hkc_lane *lane, int32_t *ids, const int32_t *targets, int64_t sequences,
               int64_t positions, int64_t by);

#ifdef __cplusplus
}
#endif

#endif
