// softmax of every row.
#ifndef HECATE_KERNELS_SOFTMAX_H
#define HECATE_KERNELS_SOFTMAX_H

#include "kernels/types.h"

// r[i, j] = exp(a[i, j] - max over k of a[i, k]) / sum over k of exp(a[i, k] - that maximum)
//
//   r, a  [m, n]; in place (r = a) is allowed. A row with a NaN is NaN; n 0: nothing.
void hk_softmax_f32(float *r, const float *a, int64_t m, int64_t n);
void hk_softmax_f64(double *r, const double *a, int64_t m, int64_t n);

// da[i, j] (+)= r[i, j] (dr[i, j] - sum over k of dr[i, k] r[i, k]);  da, dr, r [m, n]
void hk_softmax_grad_f32(float *da, const float *dr, const float *r, int64_t m, int64_t n,
                         enum hk_write write);
void hk_softmax_grad_f64(double *da, const double *dr, const double *r, int64_t m, int64_t n,
                         enum hk_write write);

#endif
