// layernorm: every row to mean 0 and variance 1, then gain and bias.
// Source: Ba, Kiros and Hinton 2016, "Layer Normalization", arXiv:1607.06450.
#ifndef HECATE_KERNELS_LAYERNORM_H
#define HECATE_KERNELS_LAYERNORM_H

#include "kernels/types.h"

// y[i, j] = (x[i, j] - mean[i]) * rstd[i] * gain[j] + bias[j],
// rstd[i] = 1 / sqrt(mean of (x[i, :] - mean[i])^2 + eps)
//
//   y, x        [m, n]; in place (y = x) is allowed
//   mean, rstd  [m], kept for the gradient
//   gain, bias  [n], or NULL for 1 and 0
void hk_layernorm_f32(float *y, float *mean, float *rstd, const float *x, const float *gain,
                      const float *bias, int64_t m, int64_t n, double eps);
void hk_layernorm_f64(double *y, double *mean, double *rstd, const double *x, const double *gain,
                      const double *bias, int64_t m, int64_t n, double eps);

// dx[i, j] (+)= rstd (g dy - mean(g dy) - xhat mean(g dy xhat)),  xhat = (x - mean) rstd
// dgain[j] (+)= sum over i ascending of dy xhat;  dbias[j] (+)= sum over i of dy; each may be NULL
void hk_layernorm_grad_f32(float *dx, float *dgain, float *dbias, const float *dy, const float *x,
                           const float *mean, const float *rstd, const float *gain, int64_t m,
                           int64_t n, enum hk_write dx_write, enum hk_write dparam_write);
void hk_layernorm_grad_f64(double *dx, double *dgain, double *dbias, const double *dy,
                           const double *x, const double *mean, const double *rstd,
                           const double *gain, int64_t m, int64_t n, enum hk_write dx_write,
                           enum hk_write dparam_write);

#endif
