// rmsnorm: scale every row to unit root mean square.
// Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", arXiv:1910.07467.
#ifndef HECATE_KERNELS_RMSNORM_H
#define HECATE_KERNELS_RMSNORM_H

#include "kernels/types.h"

// rstd[i] = 1 / sqrt(mean of x[i, :]^2 + eps),  y[i, j] = x[i, j] * rstd[i] * gain[j]
//
//   y, x  [m, n]; in place (y = x) is allowed
//   rstd  [m], kept for the gradient
//   gain  [n], or NULL for 1
void hk_rmsnorm_f32(float *y, float *rstd, const float *x, const float *gain, int64_t m, int64_t n,
                    double eps);
void hk_rmsnorm_f64(double *y, double *rstd, const double *x, const double *gain, int64_t m,
                    int64_t n, double eps);

// dx[i, j] (+)= rstd (g dy - xhat mean(g dy xhat)),  xhat = x rstd
// dgain[j] (+)= sum over i ascending of dy[i, j] xhat[i, j];  dgain may be NULL
void hk_rmsnorm_grad_f32(float *dx, float *dgain, const float *dy, const float *x,
                         const float *rstd, const float *gain, int64_t m, int64_t n,
                         enum hk_write dx_write, enum hk_write dgain_write);
void hk_rmsnorm_grad_f64(double *dx, double *dgain, const double *dy, const double *x,
                         const double *rstd, const double *gain, int64_t m, int64_t n,
                         enum hk_write dx_write, enum hk_write dgain_write);

#endif
