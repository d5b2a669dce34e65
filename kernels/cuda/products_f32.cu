// The GEMMs of float.
#include "kernels/cuda/product_ffma.h"
#include "kernels/cuda/products_kernels.h"

namespace product {

void launch_nn(hkc_lane *lane, float *c, const float *a, const products &p) {
    product_nn<ffma>(lane, c, a, p);
}

void launch_nt(hkc_lane *lane, float *a, const float *c, const products &p) {
    product_nt<ffma>(lane, a, c, p);
}

void launch_swiglu(hkc_lane *lane, const swiglu<float> &out, const float *a, const products &p) {
    product_swiglu<ffma>(lane, out, a, p);
}

void launch_tn(hkc_lane *lane, const float *a, const float *c, const products &p) {
    product_tn<ffma>(lane, a, c, p);
}

} // namespace product
