// The products of bf16.
#include "kernels/cuda/product_mma.h"
#include "kernels/cuda/product_wgmma.h"
#include "kernels/cuda/products_kernels.h"

namespace product {

typedef __nv_bfloat16 value;

// Of all architectures that are compiled for, sm_90a alone has wgmma.
static bool has_warpgroups(const hkc_lane *lane) {
    return lane->capability == 90;
}

void launch_nn(hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const products &p) {
    if (has_warpgroups(lane)) {
        product_nn<wgmma_async>(lane, (value *)c, (const value *)a, p);
    } else {
        product_nn<mma_sync>(lane, (value *)c, (const value *)a, p);
    }
}

void launch_nt(hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const products &p) {
    if (has_warpgroups(lane)) {
        product_nt<wgmma_async>(lane, (value *)a, (const value *)c, p);
    } else {
        product_nt<mma_sync>(lane, (value *)a, (const value *)c, p);
    }
}

void launch_swiglu(hkc_lane *lane, const swiglu<hk_bf16> &out, const hk_bf16 *a,
                   const products &p) {
    const swiglu<value> o = {(value *)out.ab,
                             (value *)out.ac,
                             (value *)out.r,
                             out.scale,
                             (const value *const *)out.chunk,
                             out.offset};
    if (has_warpgroups(lane)) {
        product_swiglu<wgmma_async>(lane, o, (const value *)a, p);
    } else {
        product_swiglu<mma_sync>(lane, o, (const value *)a, p);
    }
}

void launch_tn(hkc_lane *lane, const hk_bf16 *a, const hk_bf16 *c, const products &p) {
    if (has_warpgroups(lane)) {
        product_tn<wgmma_async>(lane, (const value *)a, (const value *)c, p);
    } else {
        product_tn<mma_sync>(lane, (const value *)a, (const value *)c, p);
    }
}

} // namespace product
