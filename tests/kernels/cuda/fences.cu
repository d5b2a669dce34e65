// Kernels with products of warpgroups, which warpgroups.py compiles with planted faults.
#include "kernels/cuda/product_mma.h"
#include "kernels/cuda/product_wgmma.h"
#include "kernels/cuda/products_kernels.h"

namespace product {

typedef __nv_bfloat16 value;

template __global__ void
rows_kernel<wgmma_async<128>, MN_MAJOR, NEITHER, value>(value *, const value *, products);
template __global__ void
rows_kernel<wgmma_async<256>, K_MAJOR, NEITHER, value>(value *, const value *, products);

} // namespace product
