// CUDA twin of matmul: GEMMs of one group, see cuda/products.h.
//
// B lies as rows, there is no epilogue. The lane's library may compute them (cuda/library.h); else every element is one
// sum in ascending order of the contracted index; in tn, sums of 1024 rows each, added in order. _bf16 differs from the
// cpu's: A and C lie in memory as bf16, too, and a result that is A or C is rounded once, when it is written (HK_ADD:
// after it was added). The gradient of B is float.
#include "kernels/matmul/matmul.h"

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

extern "C" void hkc_matmul_nn_f32(struct hkc_lane *lane, float *c, const float *a, const float *b,
                                  enum hk_layout layout, struct hk_matmul_dims dims,
                                  enum hk_write write, const struct hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NN, false, c, a, b, dims, write)) return;
    product::launch_nn(lane, c, a, plain(b, layout, dims, write, epilogue));
}

extern "C" void hkc_matmul_nt_f32(struct hkc_lane *lane, float *a, const float *c, const float *b,
                                  enum hk_layout layout, struct hk_matmul_dims dims,
                                  enum hk_write write, const struct hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NT, false, a, c, b, dims, write)) return;
    product::launch_nt(lane, a, c, plain(b, layout, dims, write, epilogue));
}

extern "C" void hkc_matmul_tn_f32(struct hkc_lane *lane, float *b, const float *a, const float *c,
                                  enum hk_layout layout, struct hk_matmul_dims dims,
                                  enum hk_write write) {
    if (by_library(lane, HKC_TN, false, b, a, c, dims, write)) return;
    product::launch_tn(lane, a, c, plain(b, layout, dims, write, NULL));
}

extern "C" void hkc_matmul_nn_bf16(struct hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a,
                                   const hk_bf16 *b, enum hk_layout layout,
                                   struct hk_matmul_dims dims, enum hk_write write,
                                   const struct hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NN, true, c, a, b, dims, write)) return;
    product::launch_nn(lane, c, a, plain(b, layout, dims, write, epilogue));
}

extern "C" void hkc_matmul_nt_bf16(struct hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c,
                                   const hk_bf16 *b, enum hk_layout layout,
                                   struct hk_matmul_dims dims, enum hk_write write,
                                   const struct hk_epilogue *epilogue) {
    if (by_library(lane, HKC_NT, true, a, c, b, dims, write)) return;
    product::launch_nt(lane, a, c, plain(b, layout, dims, write, epilogue));
}

extern "C" void hkc_matmul_tn_bf16(struct hkc_lane *lane, float *b, const hk_bf16 *a,
                                   const hk_bf16 *c, enum hk_layout layout,
                                   struct hk_matmul_dims dims, enum hk_write write) {
    if (by_library(lane, HKC_TN, true, b, a, c, dims, write)) return;
    product::launch_tn(lane, a, c, plain(b, layout, dims, write, NULL));
}
