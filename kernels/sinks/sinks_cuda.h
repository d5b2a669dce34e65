// sinks_cuda: launchers of sinks on CUDA devices, see sinks.h and cuda/lane.h. Differences: a warp sums every 16th row,
// then their sums are added, in float.
#ifndef HECATE_KERNELS_SINKS_CUDA_H
#define HECATE_KERNELS_SINKS_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/sinks/sinks.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_sinks_grad_f32(struct hkc_lane *lane, float *dsinks, const float *dout, const float *out,
                        const float *lse, const float *sinks, int64_t batch, int64_t positions,
                        int64_t heads, int64_t width, enum hk_write write);
void hkc_sinks_grad_bf16(struct hkc_lane *lane, float *dsinks, const hk_bf16 *dout,
                         const hk_bf16 *out, const float *lse, const float *sinks, int64_t batch,
                         int64_t positions, int64_t heads, int64_t width, enum hk_write write);

#ifdef __cplusplus
}
#endif

#endif
