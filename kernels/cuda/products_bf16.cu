// The GEMMs of bf16.
#include "kernels/cuda/product_mma.h"
#include "kernels/cuda/product_wgmma.h"
#include "kernels/cuda/products_kernels.h"

namespace product {

typedef __nv_bfloat16 value;

// Whether a tile's columns are there, and every multiprocessor has a tile; how many rows experts have is not known.
template <class U> static bool fills(const hkc_lane *lane, const products &p, int64_t width) {
    return width > U::WIDTH / 2 && most_tiles<U>(p, width) >= lane->multiprocessors;
}

// Calls `launch` with what multiplies for a result of rows, `width` columns wide.
template <class L>
static void with_unit(hkc_lane *lane, const products &p, int64_t width, const L &launch) {
    if (!lane->warpgroups) {
        launch(mma_sync());
    } else if (fills<wgmma_async<256>>(lane, p, width)) {
        launch(wgmma_async<256>());
    } else {
        launch(wgmma_async<128>());
    }
}

void launch_nn(hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const products &p) {
    with_unit(lane, p, p.n, [&](auto unit) {
        product_nn<decltype(unit)>(lane, (value *)c, (const value *)a, p);
    });
}

void launch_nt(hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const products &p) {
    with_unit(lane, p, p.k, [&](auto unit) {
        product_nt<decltype(unit)>(lane, (value *)a, (const value *)c, p);
    });
}

void launch_swiglu(hkc_lane *lane, const swiglu<hk_bf16> &out, const hk_bf16 *a,
                   const products &p) {
    const swiglu<value> o = {(value *)out.ab,
                             (value *)out.ac,
                             (value *)out.r,
                             out.scale,
                             (const value *const *)out.chunk,
                             out.offset};
    with_unit(lane, p, 2 * p.n,
              [&](auto unit) { product_swiglu<decltype(unit)>(lane, o, (const value *)a, p); });
}

void launch_tn(hkc_lane *lane, const hk_bf16 *a, const hk_bf16 *c, const products &p) {
    if (lane->warpgroups) {
        product_tn<wgmma_async<128>>(lane, (const value *)a, (const value *)c, p);
    } else {
        product_tn<mma_sync>(lane, (const value *)a, (const value *)c, p);
    }
}

} // namespace product
