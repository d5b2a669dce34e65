// CPU twin of sdpa, backward.
#include "kernels/sdpa/backward.h"

HK_KERNEL(void, sdpa_grad,
          (real * dq, real *dk, real *dv, const real *dout, const real *q, const real *k,
           const real *v, const real *out, const real *lse, struct hk_sdpa_dims dims),
          (dq, dk, dv, dout, q, k, v, out, lse, dims), BACKWARD_WORK(dims)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    const struct arrays all = {dq, dk, dv, dout, q, k, v, out, lse};
    if (!dims.begins) return grad_of_all(&all, &dims);
    for (struct document at = {0}; next_document(&at, &dims);) {
        const struct places p = places_of(&at, &dims);
        const struct hk_sdpa_dims own = dims_of(&at, &dims);
        const struct arrays a = {dq + p.q, dk + p.k, dv + p.v,    dout + p.out, q + p.q,
                                 k + p.k,  v + p.v,  out + p.out, lse + p.lse};
        grad_of_all(&a, &own);
    }
}
