// linear_cross_entropy: the loss of a language model straight from the input of its head. Logits are there for a
// block of tokens at a time, never of all tokens.
#ifndef HECATE_KERNELS_LINEAR_CROSS_ENTROPY_H
#define HECATE_KERNELS_LINEAR_CROSS_ENTROPY_H

#include "kernels/types.h"

// The head's matrix w is [k, n] in `layout`. Logits are x w: x [m, k], n words. `turned`, as w is where it is the
// table of embeddings: x w^T, x [m, n], k words.
struct hk_head_dims {
    int64_t m; // Tokens.
    int64_t n, k;
    int64_t block; // Tokens whose logits are there at a time, at least 1.
    bool turned;
};

// Tokens first .. first + count - 1, at most a block of them.
struct hk_tokens {
    int64_t first, count;
};

// Losses as cross_entropy.h has them, of logits as matmul.h computes them: the same bits for every size of block.
//
//   block    [block, words], gets the logits of one block after the other
//   only     not NULL: nothing but the logits of these tokens is computed, into the first rows of `block`. For one
//            token, m = 1, the call before, without `only`, has left them there. `loss` and `lse` are not touched,
//            `targets`, `weights` and `scale` not read
void hk_linear_cross_entropy_f32(float *loss, float *lse, float *block, const float *x,
                                 const float *w, enum hk_layout layout, const int32_t *targets,
                                 const float *weights, const float *scale, struct hk_head_dims dims,
                                 const struct hk_tokens *only);
void hk_linear_cross_entropy_f64(double *loss, double *lse, double *block, const double *x,
                                 const double *w, enum hk_layout layout, const int32_t *targets,
                                 const float *weights, const double *scale,
                                 struct hk_head_dims dims, const struct hk_tokens *only);
// The GEMM rounds its operands, as hk_matmul_nn_bf16 does; the rest is float.
void hk_linear_cross_entropy_bf16(float *loss, float *lse, float *block, const float *x,
                                  const hk_bf16 *w, enum hk_layout layout, const int32_t *targets,
                                  const float *weights, const float *scale,
                                  struct hk_head_dims dims, const struct hk_tokens *only);

// The gradients of x, in `write_dx`, and of w, unless `dw` is NULL, in `layout` and `write_dw`. Logits of a block are
// recomputed in `block` and become their gradients there (hk_cross_entropy_grad). dx has the same bits for
// every size of block. dw is a sum over tokens which matmul_tn cuts into parts, of 512 tokens at most: blocks of a
// multiple of 512 tokens leave its bits, too.
void hk_linear_cross_entropy_grad_f32(float *dx, float *dw, float *block, const float *dloss,
                                      const float *x, const float *w, enum hk_layout layout,
                                      const float *lse, const int32_t *targets,
                                      const float *weights, const float *scale,
                                      struct hk_head_dims dims, enum hk_write write_dx,
                                      enum hk_write write_dw);
void hk_linear_cross_entropy_grad_f64(double *dx, double *dw, double *block, const double *dloss,
                                      const double *x, const double *w, enum hk_layout layout,
                                      const double *lse, const int32_t *targets,
                                      const float *weights, const double *scale,
                                      struct hk_head_dims dims, enum hk_write write_dx,
                                      enum hk_write write_dw);
void hk_linear_cross_entropy_grad_bf16(float *dx, float *dw, float *block, const float *dloss,
                                       const float *x, const hk_bf16 *w, enum hk_layout layout,
                                       const float *lse, const int32_t *targets,
                                       const float *weights, const float *scale,
                                       struct hk_head_dims dims, enum hk_write write_dx,
                                       enum hk_write write_dw);

#endif
