// CPU twin of sdpa, forward.
#include "kernels/sdpa/forward.h"

HK_KERNEL(void, sdpa,
          (real * out, real *lse, const real *q, const real *k, const real *v, const real *sinks,
           struct hk_sdpa_dims dims),
          (out, lse, q, k, v, sinks, dims), FORWARD_WORK(dims)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    assert(dims.before == 0 || (dims.batch == 1 && dims.causal));
    if (!dims.begins) return attend_all(out, lse, q, k, v, sinks, &dims);
    for (struct document at = {0}; next_document(&at, &dims);) {
        const struct places p = places_of(&at, &dims);
        const struct hk_sdpa_dims own = dims_of(&at, &dims);
        attend_all(out + p.out, lse + p.lse, q + p.q, k + p.k, v + p.v, sinks, &own);
    }
}
