// matmul: the three GEMMs of a linear layer, y = x W, and of its gradient.
//
// A is [m, k], C is [m, n], both row major; B is [k, n] in `layout`. Every element is one sum in
// ascending order of the contracted index, cut into fixed blocks whose sums are then added in
// order: a row of the result has the same bits for any other rows, however many.
#ifndef HECATE_KERNELS_MATMUL_H
#define HECATE_KERNELS_MATMUL_H

#include "kernels/dims.h"
#include "kernels/types.h"

// nn and nt call `epilogue` (kernels/types.h), unless it is NULL, for every block of the result.

// C (+)= A B
void hk_matmul_nn_f32(float *c, const float *a, const float *b, enum hk_layout layout,
                      struct hk_matmul_dims dims, enum hk_write write,
                      const struct hk_epilogue *epilogue);
void hk_matmul_nn_f64(double *c, const double *a, const double *b, enum hk_layout layout,
                      struct hk_matmul_dims dims, enum hk_write write,
                      const struct hk_epilogue *epilogue);

// A (+)= C B^T: the gradient of the left operand.
void hk_matmul_nt_f32(float *a, const float *c, const float *b, enum hk_layout layout,
                      struct hk_matmul_dims dims, enum hk_write write,
                      const struct hk_epilogue *epilogue);
void hk_matmul_nt_f64(double *a, const double *c, const double *b, enum hk_layout layout,
                      struct hk_matmul_dims dims, enum hk_write write,
                      const struct hk_epilogue *epilogue);

// B (+)= A^T C: the gradient of the right operand. As panels, the padding becomes zero (HK_STORE)
// or, zero already, stays so (HK_ADD).
void hk_matmul_tn_f32(float *b, const float *a, const float *c, enum hk_layout layout,
                      struct hk_matmul_dims dims, enum hk_write write);
void hk_matmul_tn_f64(double *b, const double *a, const double *c, enum hk_layout layout,
                      struct hk_matmul_dims dims, enum hk_write write);

// The same with bf16 operands: A and C are rounded as they are read, the result is float. tn leaves
// float panels (or rows): gradients lie as the master weights do. A packed B has the bits of results that its elements
// have as bf16 panels; it is unpacked block by block.
void hk_matmul_nn_bf16(float *c, const float *a, const hk_bf16 *b, enum hk_layout layout,
                       struct hk_matmul_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);
void hk_matmul_nt_bf16(float *a, const float *c, const hk_bf16 *b, enum hk_layout layout,
                       struct hk_matmul_dims dims, enum hk_write write,
                       const struct hk_epilogue *epilogue);
void hk_matmul_tn_bf16(float *b, const float *a, const float *c, enum hk_layout layout,
                       struct hk_matmul_dims dims, enum hk_write write);

// Row major [k, n] to panels (hk_panels_size(k, n) elements, padding zero), and back.
void hk_panels_pack_f32(float *panels, const float *rows, int64_t k, int64_t n);
void hk_panels_pack_f64(double *panels, const double *rows, int64_t k, int64_t n);
void hk_panels_unpack_f32(float *rows, const float *panels, int64_t k, int64_t n);
void hk_panels_unpack_f64(double *rows, const double *panels, int64_t k, int64_t n);

#endif
