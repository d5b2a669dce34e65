// cross_entropy: the language model's loss, fused with the softmax over the vocabulary.
#ifndef HECATE_KERNELS_CROSS_ENTROPY_H
#define HECATE_KERNELS_CROSS_ENTROPY_H

#include "kernels/types.h"

// lse[t] = log sum over v of exp(logits[t, v])
// loss[0] = scale[0] * sum over t with targets[t] >= 0 of weights[t] * (lse[t] - logits[t, targets[t]])
//
//   logits   [tokens, vocabulary]
//   targets  [tokens], below vocabulary; negative: this token is ignored
//   weights  [tokens]; NULL: each is 1
//   scale    [1], usually 1 / sum of the weights
//
// The sum runs in double over ascending t.
void hk_cross_entropy_f32(float *loss, float *lse, const float *logits, const int32_t *targets,
                          const float *weights, const float *scale, int64_t tokens,
                          int64_t vocabulary);
void hk_cross_entropy_f64(double *loss, double *lse, const double *logits, const int32_t *targets,
                          const float *weights, const double *scale, int64_t tokens,
                          int64_t vocabulary);

// The same `lse` alone.
void hk_log_sum_exp_f32(float *lse, const float *logits, int64_t tokens, int64_t vocabulary);
void hk_log_sum_exp_f64(double *lse, const double *logits, int64_t tokens, int64_t vocabulary);

// dlogits[t, v] = dloss[0] scale[0] weights[t] (exp(logits[t, v] - lse[t]) - [v = targets[t]]); zeros where
// the target is ignored. In place (dlogits = logits) is allowed.
void hk_cross_entropy_grad_f32(float *dlogits, const float *dloss, const float *logits,
                               const float *lse, const int32_t *targets, const float *weights,
                               const float *scale, int64_t tokens, int64_t vocabulary);
void hk_cross_entropy_grad_f64(double *dlogits, const double *dloss, const double *logits,
                               const double *lse, const int32_t *targets, const float *weights,
                               const double *scale, int64_t tokens, int64_t vocabulary);

#endif
