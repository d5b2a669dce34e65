// aux_loss: the load-balancing loss of Switch Transformers, per layer, 1 * coef when balanced.
// Source: Fedus et al. 2021, arXiv:2101.03961, equations 4 to 6; normalized as Megatron does.
#ifndef HECATE_KERNELS_AUX_LOSS_H
#define HECATE_KERNELS_AUX_LOSS_H

#include "kernels/router/router.h"

// loss[0] = coef * experts / (topk * tokens^2) * sum over e of loads[e] * sum over t of p[t, e]
//
//   scores  [tokens, experts]; p = scores (softmax), or scores / their row sum (others)
//   loads   [experts], how often each was chosen
//
// Summed in double over fixed blocks. 0 for 0 tokens.
void hk_aux_loss_f32(float *loss, const float *scores, const int32_t *loads, int64_t tokens,
                     int64_t experts, int64_t topk, enum hk_score score, double coef);
void hk_aux_loss_f64(double *loss, const double *scores, const int32_t *loads, int64_t tokens,
                     int64_t experts, int64_t topk, enum hk_score score, double coef);

// Stores dscores [tokens, experts], given dloss [1]. Loads have no gradient.
void hk_aux_loss_grad_f32(float *dscores, const float *dloss, const float *scores,
                          const int32_t *loads, int64_t tokens, int64_t experts, int64_t topk,
                          enum hk_score score, double coef);
void hk_aux_loss_grad_f64(double *dscores, const double *dloss, const double *scores,
                          const int32_t *loads, int64_t tokens, int64_t experts, int64_t topk,
                          enum hk_score score, double coef);

// The same loss of each sequence alone, averaged over the sequences (DeepSeek-V3's, arXiv:2412.19437,
// equations 17 to 20): its loads are those of its own tokens.
//
//   scores  [sequences, tokens, experts]
//   ids     [sequences, tokens, topk], the chosen experts
//
// 0 for no sequences or no tokens.
void hk_aux_loss_sequence_f32(float *loss, const float *scores, const int32_t *ids,
                              int64_t sequences, int64_t tokens, int64_t experts, int64_t topk,
                              enum hk_score score, double coef);
void hk_aux_loss_sequence_f64(double *loss, const double *scores, const int32_t *ids,
                              int64_t sequences, int64_t tokens, int64_t experts, int64_t topk,
                              enum hk_score score, double coef);

// Stores dscores [sequences, tokens, experts], given dloss [1]. The choice has no gradient.
void hk_aux_loss_sequence_grad_f32(float *dscores, const float *dloss, const float *scores,
                                   const int32_t *ids, int64_t sequences, int64_t tokens,
                                   int64_t experts, int64_t topk, enum hk_score score, double coef);
void hk_aux_loss_sequence_grad_f64(double *dscores, const double *dloss, const double *scores,
                                   const int32_t *ids, int64_t sequences, int64_t tokens,
                                   int64_t experts, int64_t topk, enum hk_score score, double coef);

#endif
