// adamw: one optimizer step over any number of parameters, in one pass over memory.
// Source: Loshchilov and Hutter 2017, "Decoupled Weight Decay Regularization", arXiv:1711.05101.
#ifndef HECATE_KERNELS_ADAMW_H
#define HECATE_KERNELS_ADAMW_H

#include "kernels/clip/clip.h"
#include "kernels/types.h"

struct hk_adamw_rule {
    double lr;
    double beta1;
    double beta2;
    double eps;
    double decay;       // Decoupled: param shrinks by lr * decay.
    double grad_scale;  // Multiplies every gradient first: clipping, averaging.
    double correction1; // 1 - beta1^step, step counted from 1.
    double correction2; // 1 - beta2^step.
    // NULL, or numbers known only when the kernel runs: gradients are scaled by its scale, too, and where it has
    // stopped nothing happens.
    const struct hk_clipped *clipped;
};

// g = grad_scale * grad
// mean = beta1 mean + (1 - beta1) g;   variance = beta2 variance + (1 - beta2) g^2
// param -= lr (mean / correction1 / (sqrt(variance / correction2) + eps) + decay param)
// grad = 0, ready to be added to.
//
// All arrays have `count` elements. Elementwise: layouts and their zero padding are unaffected.
void hk_adamw_f32(float *param, float *grad, float *mean, float *variance, int64_t count,
                  const struct hk_adamw_rule *rule);
void hk_adamw_f64(double *param, double *grad, double *mean, double *variance, int64_t count,
                  const struct hk_adamw_rule *rule);

// The same, and rounded[..] = the new param in bf16, without another pass over it. HK_ROWS: element by
// element. HK_PANELS: float panels of a matrix with an even number of rows, so that `count` is a
// multiple of 2 * HK_PANEL; `rounded` is laid out as bf16 panels are (types.h).
void hk_adamw_rounded_f32(float *param, hk_bf16 *rounded, float *grad, float *mean, float *variance,
                          int64_t count, enum hk_layout layout, const struct hk_adamw_rule *rule);

#endif
