// CPU twin of sdpa, backward.
#include "kernels/sdpa/backward.h"

HK_KERNEL(void, sdpa_grad,
          (real * dq, real *dk, real *dv, const real *dout, const real *q, const real *k,
           const real *v, const real *out, const real *lse, struct hk_sdpa_dims dims),
          (dq, dk, dv, dout, q, k, v, out, lse, dims), BACKWARD_WORK(dims)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    const struct arrays a = {dq, dk, dv, dout, q, k, v, out, lse};
    grad_of_all(&a, &dims);
}
