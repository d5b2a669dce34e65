// GEMMs: the interface of matmul and grouped to the device: one GEMM, or one of every expert.
#ifndef HECATE_KERNELS_CUDA_PRODUCTS_H
#define HECATE_KERNELS_CUDA_PRODUCTS_H

#include <stdint.h>

#include "kernels/bf16.h"
#include "kernels/cuda/lane.h"

namespace product {

// Rows first[e] .. first[e+1]-1 of `left` and of the other array with rows belong to group e; without
// `first` there is one group of `rows` rows. `k` and `n` are the sizes of every matrix of weights;
// group e's is chunk[e] + offset, or `weight` if there are no chunks. Values of `left`, `right` and of
// weights are of the GEMM's type, gradients of weights float.
struct products {
    const int32_t *first;
    int64_t groups, rows, n, k;
    void *const *chunk;
    void *weight;
    int64_t offset;
    bool add; // To the result; otherwise it is overwritten.
    // With `pair` rows of an operand are gathered: row r is row pair[r] / picks of what is handed over. It is the left
    // one in nn and nt, a in tn, or c with `of_c`.
    const int32_t *pair;
    int64_t picks;
    bool of_c;
};

// c (+)= a B: a [rows, k], c [rows, n].
void launch_nn(hkc_lane *lane, float *c, const float *a, const products &p);
void launch_nn(hkc_lane *lane, hk_bf16 *c, const hk_bf16 *a, const products &p);

// a (+)= c B^T
void launch_nt(hkc_lane *lane, float *a, const float *c, const products &p);
void launch_nt(hkc_lane *lane, hk_bf16 *a, const hk_bf16 *c, const products &p);

// r = silu(a B) (a C) scale, and both GEMMs. C is, of group e, chunk[e] + offset of this, scale [rows].
template <class T> struct swiglu {
    T *ab, *ac, *r;
    const float *scale;
    const T *const *chunk;
    int64_t offset;
};
void launch_swiglu(hkc_lane *lane, const swiglu<float> &out, const float *a, const products &p);
void launch_swiglu(hkc_lane *lane, const swiglu<hk_bf16> &out, const hk_bf16 *a, const products &p);

// B (+)= a^T c
void launch_tn(hkc_lane *lane, const float *a, const float *c, const products &p);
void launch_tn(hkc_lane *lane, const hk_bf16 *a, const hk_bf16 *c, const products &p);

} // namespace product

#endif
