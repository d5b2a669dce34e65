// Losses of a policy, whose log-probabilities of targets they read: preferences among pairs of sequences (dpo), and
// clipped ratios with advantages (policy). Fused with the softmax over the vocabulary.
//
// Sources: Rafailov et al. 2023, "Direct Preference Optimization" (arXiv:2305.18290), equations 7 and 8 of section 4;
// Schulman et al. 2017, "Proximal Policy Optimization Algorithms" (arXiv:1707.06347), equation 7; Shao et al. 2024,
// "DeepSeekMath" (arXiv:2402.03300), equation 4: the estimate of a KL divergence.
#ifndef HECATE_KERNELS_POLICY_H
#define HECATE_KERNELS_POLICY_H

#include "kernels/distill/distill.h"
#include "kernels/types.h"

struct hk_dpo_dims {
    int64_t tokens, positions,
        vocabulary; // `tokens` is a multiple of `positions`, those of a sequence.
    double beta;
};

// Sums that a call with `sums` adds to them, for logs, over ascending pairs or tokens: of one type of loss each.
enum {
    HK_DPO_PAIRS,
    HK_DPO_CHOSEN, // Rewards, beta times the gain of log-probability over the reference: of chosen answers
    HK_DPO_REJECTED, // and of rejected ones.
    HK_DPO_RIGHT,    // Pairs whose chosen answer has the larger one.
    HK_POLICY_TOKENS = 0,
    HK_POLICY_ADVANTAGE,
    HK_POLICY_RATIO,
    HK_POLICY_CLIPPED, // Tokens whose ratio is clipped, so that they have no slope but that of kl.
    HK_POLICY_KL_OLD, // r - log r - 1: an estimate of the KL divergence from what has drawn the tokens.
    HK_POLICY_REFERENCES, // Tokens with a third entry,
    HK_POLICY_KL,         // and exp(d) - d - 1 of them.
    HK_POLICY_SUMS
};

// Sequences 2 i and 2 i + 1 are a pair: the chosen one, and the rejected one. A position t with targets[t] >= 0 has:
//
//   own[t]  = logits[t, targets[t]] - lse[t], where lse[t] = log sum over v of exp(logits[t, v])
//   said[t] = the log-probability in the reference's entry of token t whose id is targets[t]; NaN: it has none
//   h[i]    = beta * (sum of own - said over the chosen sequence - the same sum over the rejected one)
//   loss[0] = scale[0] * sum over i of log(1 + exp(-h[i]))
//   slopes[t] = the derivative of pair i's loss by own[t]: -+ beta / (1 + exp(h[i])); 0 where the target is negative
//
// The sequence behind the last pair has no loss. Without a reference (count 0) nothing is lost. Sums run in double over
// ascending positions and pairs; a log-probability is a float, as it is stored.
void hk_dpo_f32(float *loss, float *slopes, float *lse, const float *logits,
                struct hk_teacher reference, const int32_t *targets, const float *scale,
                struct hk_dpo_dims dims);
void hk_dpo_f64(double *loss, double *slopes, double *lse, const double *logits,
                struct hk_teacher reference, const int32_t *targets, const double *scale,
                struct hk_dpo_dims dims);

struct hk_policy_dims {
    int64_t tokens, vocabulary;
    double clip, kl;
};

// A rollout has two or three entries of each token t with targets[t] >= 0, as a teacher's log_probs: said[t], the
// log-probability by which the target was drawn; its advantage a[t]; and, where kl is not 0, the reference's
// log-probability.
//
//   r[t]    = exp(own[t] - said[t])
//   d[t]    = reference[t] - own[t]
//   loss[0] = scale[0] * sum over t of kl (exp(d[t]) - d[t] - 1)
//             - min(r[t] a[t], clamp(r[t], 1 - clip, 1 + clip) a[t])
//   slopes[t] = the derivative of token t's loss by own[t]; 0 where the target is negative
//
// Without a rollout (count 0) nothing is lost. The sum runs in double over ascending tokens.
void hk_policy_f32(float *loss, float *slopes, float *lse, const float *logits,
                   struct hk_teacher rollout, const int32_t *targets, const float *scale,
                   struct hk_policy_dims dims);
void hk_policy_f64(double *loss, double *slopes, double *lse, const double *logits,
                   struct hk_teacher rollout, const int32_t *targets, const double *scale,
                   struct hk_policy_dims dims);

// The gradient of either loss: dlogits[t, v] = dloss[0] scale[0] slopes[t] ([v = targets[t]] - exp(logits[t, v] -
// lse[t])); zeros where the target is negative. In place (dlogits = logits) is allowed.
void hk_policy_grad_f32(float *dlogits, const float *dloss, const float *logits,
                        const float *slopes, const float *lse, const int32_t *targets,
                        const float *scale, int64_t tokens, int64_t vocabulary);
void hk_policy_grad_f64(double *dlogits, const double *dloss, const double *logits,
                        const double *slopes, const double *lse, const int32_t *targets,
                        const double *scale, int64_t tokens, int64_t vocabulary);

#endif
