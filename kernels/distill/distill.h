// distill: the cross-entropy of logits against a teacher's probabilities of its likeliest tokens, fused with the
// softmax over the vocabulary. Source: Hinton et al. 2015, arXiv:1503.02531, section 2.
#ifndef HECATE_KERNELS_DISTILL_H
#define HECATE_KERNELS_DISTILL_H

#include "kernels/types.h"

// Teacher entries of the tokens of a call. A probability may stand in several entries of a row: they add up.
struct hk_teacher {
    const int32_t *ids;     // [tokens, count], in [0, vocabulary).
    const float *log_probs; // [tokens, count], up to a number added to a row; -infinity: no entry.
    int64_t count;          // 0: there is no teacher, so nothing is lost.
    double *sums;           // dpo and policy add to these (kernels/policy/policy.h); NULL: to none.
};

// p[t, k]   = exp(log_probs[t, k] / temperature) over its sum over k
// lse[t]    = log sum over v of exp(logits[t, v] / temperature)
// losses[t] = temperature^2 * sum over k of p[t, k] (lse[t] - logits[t, ids[t, k]] / temperature)
// loss[0]   = scale[0] * sum over t of losses[t]
//
// A token without an entry loses nothing, and its lse is 0. Sums run in double: over entries and over tokens ascending,
// of losses as they are stored.
void hk_distill_f32(float *loss, float *losses, float *lse, const float *logits,
                    struct hk_teacher teacher, const float *scale, int64_t tokens,
                    int64_t vocabulary, double temperature);
void hk_distill_f64(double *loss, double *losses, double *lse, const double *logits,
                    struct hk_teacher teacher, const double *scale, int64_t tokens,
                    int64_t vocabulary, double temperature);

// dlogits[t, v] = dloss[0] scale[0] temperature (exp(logits[t, v] / temperature - lse[t]) - sum of p[t, k] where ids[t,
// k] = v); zeros for a token without an entry. In place (dlogits = logits) is allowed.
void hk_distill_grad_f32(float *dlogits, const float *dloss, const float *logits, const float *lse,
                         struct hk_teacher teacher, const float *scale, int64_t tokens,
                         int64_t vocabulary, double temperature);
void hk_distill_grad_f64(double *dlogits, const double *dloss, const double *logits,
                         const double *lse, struct hk_teacher teacher, const double *scale,
                         int64_t tokens, int64_t vocabulary, double temperature);

#endif
