// product: the matrix product family behind matmul and grouped, within one build variant.
#ifndef HECATE_KERNELS_MATMUL_PRODUCT_H
#define HECATE_KERNELS_MATMUL_PRODUCT_H

#include "kernels/cpu/real.h"

// Products of `groups` experts; a plain product has one. Rows first[e] .. first[e+1]-1 of A [., k]
// and C [., n] belong to e; matrix e, [k, n] in `layout`, lies at `offset` behind pointer e.
struct product {
    int64_t groups;
    const int32_t *first;
    int64_t n;
    int64_t k;
    int64_t offset;
    enum hk_layout layout;
    enum hk_write write;
};

// Elements of the matrices that a grouped product reads: those of experts with rows.
HK_INLINE int64_t used_elements(const int32_t *first, int64_t experts, int64_t elements) {
    int64_t used = 0;
    for (int64_t e = 0; e < experts; e++) used += first[e + 1] > first[e] ? elements : 0;
    return used;
}

// C (+)= A B,  A (+)= C B^T,  B (+)= A^T C
void HK_VARIANT(product_nn)(real *c, const real *a, const real *const *b, const struct product *p);
void HK_VARIANT(product_nt)(real *a, const real *c, const real *const *b, const struct product *p);
void HK_VARIANT(product_tn)(real *const *b, const real *a, const real *c, const struct product *p);

#endif
