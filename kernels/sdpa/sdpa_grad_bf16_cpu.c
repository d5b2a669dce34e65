// CPU twin of sdpa with bf16 products, backward.
#define HK_TILE_BF16
#include "kernels/sdpa/backward.h"

HK_KERNEL_BF16(void, sdpa_grad,
               (float *dq, float *dk, float *dv, const float *dout, const float *q, const float *k,
                const float *v, const float *out, const float *lse, struct hk_sdpa_dims dims),
               (dq, dk, dv, dout, q, k, v, out, lse, dims), BACKWARD_WORK(dims)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    const struct arrays a = {dq, dk, dv, dout, q, k, v, out, lse};
    grad_of_all(&a, &dims);
}
