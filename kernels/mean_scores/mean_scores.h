// mean_scores: the mean score of each expert over the tokens of a sequence.
// Source: P of Fedus et al. 2021, arXiv:2101.03961, equation 6.
#ifndef HECATE_KERNELS_MEAN_SCORES_H
#define HECATE_KERNELS_MEAN_SCORES_H

#include "kernels/router/router.h"

//   means   [sequences, experts] mean over t of p[s, t, e]; 0 for no tokens
//   scores  [sequences, tokens, experts]; p = scores (softmax), or (scores + floor / experts) / (their row sum + floor):
//           shares, also of a token whose scores are all so small that they became 0; those are even
//
// Summed in double over fixed blocks.
#define HK_SCORES_FLOOR 1e-20
void hk_mean_scores_f32(float *means, const float *scores, int64_t sequences, int64_t tokens,
                        int64_t experts, enum hk_score score);
void hk_mean_scores_f64(double *means, const double *scores, int64_t sequences, int64_t tokens,
                        int64_t experts, enum hk_score score);

// Stores dscores [sequences, tokens, experts], given dmeans [sequences, experts].
void hk_mean_scores_grad_f32(float *dscores, const float *dmeans, const float *scores,
                             int64_t sequences, int64_t tokens, int64_t experts,
                             enum hk_score score);
void hk_mean_scores_grad_f64(double *dscores, const double *dmeans, const double *scores,
                             int64_t sequences, int64_t tokens, int64_t experts,
                             enum hk_score score);

#endif
