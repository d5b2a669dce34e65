// product: the GEMM family behind matmul and grouped, within one build variant.
#ifndef HECATE_KERNELS_MATMUL_PRODUCT_H
#define HECATE_KERNELS_MATMUL_PRODUCT_H

#include "kernels/cpu/real.h"
#include "kernels/matmul/matmul.h"
#include "kernels/packed/packed.h"

// An element of B as it lies in memory; gradients of B are real.
#ifdef HK_OPERAND_BF16
typedef hk_bf16 weight;
#else
typedef real weight;
#endif

// Elements of the build's precision that take as many bytes as `count` weights.
#define HK_WEIGHTS(count) ((double)(count) * sizeof(weight) / sizeof(real))

// Weights that take as many bytes as a k x n matrix.
HK_INLINE int64_t matrix_weights(enum hk_packing packing, int64_t k, int64_t n) {
    return packing == HK_UNPACKED ? k * n : hk_packed_size(packing, k, n);
}

// GEMMs of `groups` experts; a plain GEMM has one. Rows first[e] .. first[e+1]-1 of A [., k]
// and C [., n] belong to e; matrix e, [k, n] in `layout`, lies at `offset` behind pointer e.
struct product {
    int64_t groups;
    const int32_t *first;
    int64_t n;
    int64_t k;
    int64_t offset;
    enum hk_layout layout;
    enum hk_packing packing; // Then `offset` counts places of bf16.
    enum hk_write write;
    const struct hk_epilogue *epilogue; // NULL: none.
    int64_t *epilogue_time;             // As hk_epilogue_time gives it.
};

// Elements of the matrices that a grouped GEMM reads: those of experts with rows.
HK_INLINE int64_t used_elements(const int32_t *first, int64_t experts, int64_t elements) {
    int64_t used = 0;
    for (int64_t e = 0; e < experts; e++) used += first[e + 1] > first[e] ? elements : 0;
    return used;
}

// A plain GEMM of the rows 0 .. first[1]-1.
HK_INLINE struct product product_of_rows(int32_t first[2], enum hk_layout layout,
                                         struct hk_matmul_dims dims, enum hk_write write) {
    assert(dims.m >= 0 && dims.m <= INT32_MAX);
    assert(dims.n >= 0 && dims.k >= 0);
    first[0] = 0;
    first[1] = (int32_t)dims.m;
    return (struct product){
        .groups = 1,
        .first = first,
        .n = dims.n,
        .k = dims.k,
        .layout = layout,
        .packing = dims.packing,
        .write = write,
        .epilogue_time = hk_epilogue_time(),
    };
}

// C (+)= A B,  A (+)= C B^T,  B (+)= A^T C
void HK_VARIANT(product_nn)(real *c, const real *a, const weight *const *b,
                            const struct product *p);
void HK_VARIANT(product_nt)(real *a, const real *c, const weight *const *b,
                            const struct product *p);
void HK_VARIANT(product_tn)(real *const *b, const real *a, const real *c, const struct product *p);

#endif
