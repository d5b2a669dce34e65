// CUDA twin of matmul: GEMMs of one group, see cuda/products.h.
#include "kernels/matmul/matmul_cuda.h"

#include <assert.h>

#include "kernels/cuda/library.h"
#include "kernels/cuda/products.h"

using product::products;

static products plain(const void *weight, hk_layout layout, hk_matmul_dims dims, hk_write write,
                      const hk_epilogue *epilogue) {
    assert(layout == HK_ROWS && !epilogue);
    assert(dims.m >= 0 && dims.m <= INT32_MAX);
    assert(dims.n >= 0 && dims.n <= INT32_MAX && dims.k >= 0 && dims.k <= INT32_MAX);
    products p = {};
    p.groups = 1;
    p.rows = dims.m;
    p.n = dims.n;
    p.k = dims.k;
    p.weight = (void *)weight;
    p.add = write == HK_ADD;
    return p;
}

// Whether the lane's library has been asked for the GEMM.
static bool by_library(hkc_lane *lane, hkc_form form, bool bf16, void *result, const void *left,
                       const void *right, hk_matmul_dims dims, hk_write write) {
    if (!lane->library) return false;
    const hkc_product p = {{form, bf16, dims}, left, right, result, write == HK_ADD};
    return lane->library->product(lane->library, lane, &p);
}

void hkc_matmul_nn_f32(hkc_lane *lane, float *c, const float *a, const float *b, hk_layout layout,
                       hk_matmul_dims dims, hk_write write, const hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NN, false, c, a, b, dims, write)) return;
    product::launch_nn(lane, c, a, plain(b, layout, dims, write, epilogue));
}

void hkc_matmul_nt_f32(hkc_lane *lane, float *a, const float *c, const float *b, hk_layout layout,
                       hk_matmul_dims dims, hk_write write, const hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NT, false, a, c, b, dims, write)) return;
    product::launch_nt(lane, a, c, plain(b, layout, dims, write, epilogue));
}

void hkc_matmul_tn_f32(hkc_lane *lane, float *b, const float *a, const float *c, hk_layout layout,
                       hk_matmul_dims dims, hk_write write) {
    if (by_library(lane, HKC_TN, false, b, a, c, dims, write)) return;
    product::launch_tn(lane, a, c, plain(b, layout, dims, write, NULL));
}

void hkc_matmul_nn_bf16(hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const hk_bf16 *b,
                        hk_layout layout, hk_matmul_dims dims, hk_write write,
                        const hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NN, true, c, a, b, dims, write)) return;
    product::launch_nn(lane, c, a, plain(b, layout, dims, write, epilogue));
}

void hkc_matmul_nt_bf16(hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const hk_bf16 *b,
                        hk_layout layout, hk_matmul_dims dims, hk_write write,
                        const hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NT, true, a, c, b, dims, write)) return;
    product::launch_nt(lane, a, c, plain(b, layout, dims, write, epilogue));
}

void hkc_matmul_tn_bf16(hkc_lane *lane, float *b, const hk_bf16 *a, const hk_bf16 *c,
                        hk_layout layout, hk_matmul_dims dims, hk_write write) {
    if (by_library(lane, HKC_TN, true, b, a, c, dims, write)) return;
    product::launch_tn(lane, a, c, plain(b, layout, dims, write, NULL));
}
