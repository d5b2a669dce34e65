// z_loss: keeps router logits small.
// Source: Zoph et al. 2022, "ST-MoE", arXiv:2202.08906, equation 5.
#ifndef HECATE_KERNELS_Z_LOSS_H
#define HECATE_KERNELS_Z_LOSS_H

#include "kernels/types.h"

// loss[0] = coef * mean over t of (log sum over e of exp(logits[t, e]))^2. Summed in double over
// fixed blocks. 0 for 0 tokens.
void hk_z_loss_f32(float *loss, const float *logits, int64_t tokens, int64_t experts, double coef);
void hk_z_loss_f64(double *loss, const double *logits, int64_t tokens, int64_t experts,
                   double coef);

// dlogits [tokens, experts] (+)=, given dloss [1].
void hk_z_loss_grad_f32(float *dlogits, const float *dloss, const float *logits, int64_t tokens,
                        int64_t experts, double coef, enum hk_write write);
void hk_z_loss_grad_f64(double *dlogits, const double *dloss, const double *logits, int64_t tokens,
                        int64_t experts, double coef, enum hk_write write);

#endif
