// sdpa_cuda: launchers of sdpa on CUDA devices, see sdpa.h and cuda/lane.h. Differences: blocks have 32 keys;
// batch * heads * positions is at most HKC_SCRATCH / 4 for gradients, widths are at most 384.
#ifndef HECATE_KERNELS_SDPA_CUDA_H
#define HECATE_KERNELS_SDPA_CUDA_H

#include "kernels/cuda/lane.h"
#include "kernels/sdpa/sdpa.h"

#ifdef __cplusplus
extern "C" {
#endif

void hkc_sdpa_f32(struct hkc_lane *lane, float *out, float *lse, const float *q, const float *k,
                  const float *v, const float *sinks, struct hk_sdpa_dims dims);
void hkc_sdpa_bf16(struct hkc_lane *lane, hk_bf16 *out, float *lse, const hk_bf16 *q,
                   const hk_bf16 *k, const hk_bf16 *v, const float *sinks,
                   struct hk_sdpa_dims dims);
void hkc_sdpa_grad_f32(struct hkc_lane *lane, float *dq, float *dk, float *dv, const float *dout,
                       const float *q, const float *k, const float *v, const float *out,
                       const float *lse, struct hk_sdpa_dims dims);
void hkc_sdpa_grad_bf16(struct hkc_lane *lane, hk_bf16 *dq, hk_bf16 *dk, hk_bf16 *dv,
                        const hk_bf16 *dout, const hk_bf16 *q, const hk_bf16 *k, const hk_bf16 *v,
                        const hk_bf16 *out, const float *lse, struct hk_sdpa_dims dims);

#ifdef __cplusplus
}
#endif

#endif
