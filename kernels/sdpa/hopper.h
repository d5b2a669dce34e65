// Attention of bf16 by a warpgroup's GEMMs, for Hopper: the interface of hopper_cuda.cu for bf16_cuda.cu.
#ifndef HECATE_KERNELS_SDPA_HOPPER_H
#define HECATE_KERNELS_SDPA_HOPPER_H

#include "kernels/cuda/device.h"
#include "kernels/sdpa/sdpa.h"

namespace attention {

// Whether the lane's device has such GEMMs, and the heads' rows are narrow enough for the registers.
bool by_warpgroups(const hkc_lane *lane, const hk_sdpa_dims &d);

// As hkc_sdpa_bf16 and hkc_sdpa_grad_bf16; delta as launch_deltas gives it.
void forward_by_warpgroups(hkc_lane *lane, __nv_bfloat16 *out, float *lse, const __nv_bfloat16 *q,
                           const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *sinks,
                           const hk_sdpa_dims &d);
void backward_by_warpgroups(hkc_lane *lane, __nv_bfloat16 *dq, __nv_bfloat16 *dk, __nv_bfloat16 *dv,
                            const __nv_bfloat16 *dout, const __nv_bfloat16 *q,
                            const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *lse,
                            const float *delta, const hk_sdpa_dims &d);

} // namespace attention

#endif
