// route on a device: launchers of the kernels that route.h defines. See kernels/cuda/lane.h.
#ifndef HECATE_KERNELS_ROUTE_CUDA_H
#define HECATE_KERNELS_ROUTE_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/route/route.h"

#ifdef __cplusplus
extern "C" {
#endif

// At most 2^30 pairs.
void hkc_route(struct hkc_lane *lane, int32_t *first, int32_t *pair, int32_t *slot,
               const int32_t *ids, int64_t tokens, int64_t topk, int64_t experts);

void hkc_permute_f32(struct hkc_lane *lane, float *rows, const float *x, const int32_t *pair,
                     int64_t tokens, int64_t topk, int64_t width);

void hkc_combine_f32(struct hkc_lane *lane, float *y, const float *rows, const int32_t *slot,
                     int64_t tokens, int64_t topk, int64_t width, enum hk_write write);

// Rows of bf16. Sums are float and rounded once, when they are written.
void hkc_permute_bf16(struct hkc_lane *lane, hk_bf16 *rows, const hk_bf16 *x, const int32_t *pair,
                      int64_t tokens, int64_t topk, int64_t width);
void hkc_combine_bf16(struct hkc_lane *lane, hk_bf16 *y, const hk_bf16 *rows, const int32_t *slot,
                      int64_t tokens, int64_t topk, int64_t width, enum hk_write write);

void hkc_gate_rows_f32(struct hkc_lane *lane, float *g, const float *weights, const int32_t *pair,
                       int64_t count);

void hkc_gate_rows_grad_f32(struct hkc_lane *lane, float *dweights, const float *dg,
                            const int32_t *slot, int64_t count);

#ifdef __cplusplus
}
#endif

#endif
