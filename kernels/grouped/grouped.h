// grouped: the three GEMMs of matmul.h for many experts at once. Rows first[e] .. first[e+1]-1
// of A [rows, k] and C [rows, n] belong to expert e; chunk[e] points at that expert's parameters,
// `offset` elements into which its matrix B [k, n] lies as panels.
//
// Each result has the bits that hk_matmul gives for that expert alone. Experts without rows are
// ordinary: nn and nt write nothing for them, tn writes zeros (HK_STORE).
#ifndef HECATE_KERNELS_GROUPED_H
#define HECATE_KERNELS_GROUPED_H

#include "kernels/types.h"

struct hk_grouped_dims {
    int64_t experts; // `first` has one entry more, ascending from 0; the last one is the row count.
    int64_t n;       // Columns of every B.
    int64_t k;       // Rows of every B.
    enum hk_packing
        packing; // Every B may be packed, where bf16 GEMMs nn and nt read it: `offset` then counts places of bf16.
};

// nn and nt call `epilogue` (kernels/types.h), unless it is NULL, for every block of the result; its
// rows are those of the whole result, and all of one expert.

// C (+)= A B
void hk_grouped_nn_f32(float *c, const float *a, const float *const *chunk, int64_t offset,
                       const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);
void hk_grouped_nn_f64(double *c, const double *a, const double *const *chunk, int64_t offset,
                       const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);

// A (+)= C B^T
void hk_grouped_nt_f32(float *a, const float *c, const float *const *chunk, int64_t offset,
                       const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);
void hk_grouped_nt_f64(double *a, const double *c, const double *const *chunk, int64_t offset,
                       const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);

// B (+)= A^T C
void hk_grouped_tn_f32(float *const *chunk, int64_t offset, const float *a, const float *c,
                       const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);
void hk_grouped_tn_f64(double *const *chunk, int64_t offset, const double *a, const double *c,
                       const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);

// The same with bf16 operands, see matmul.h; tn adds to float panels.
void hk_grouped_nn_bf16(float *c, const float *a, const hk_bf16 *const *chunk, int64_t offset,
                        const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
                        const struct hk_epilogue *epilogue);
void hk_grouped_nt_bf16(float *a, const float *c, const hk_bf16 *const *chunk, int64_t offset,
                        const int32_t *first, struct hk_grouped_dims dims, enum hk_write write,
                        const struct hk_epilogue *epilogue);
void hk_grouped_tn_bf16(float *const *chunk, int64_t offset, const float *a, const float *c,
                        const int32_t *first, struct hk_grouped_dims dims, enum hk_write write);

#endif
