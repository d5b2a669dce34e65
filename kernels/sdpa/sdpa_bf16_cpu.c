// CPU twin of sdpa with bf16 products, forward.
#define HK_TILE_BF16
#include "kernels/sdpa/forward.h"

HK_KERNEL_BF16(void, sdpa,
               (float *out, float *lse, const float *q, const float *k, const float *v,
                struct hk_sdpa_dims dims),
               (out, lse, q, k, v, dims), FORWARD_WORK(dims)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    attend_all(out, lse, q, k, v, &dims);
}
