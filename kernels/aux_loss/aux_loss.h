// aux_loss: the load-balancing loss of Switch Transformers, 1 * coef when balanced.
// Source: Fedus et al. 2021, arXiv:2101.03961, equation 4.
#ifndef HECATE_KERNELS_AUX_LOSS_H
#define HECATE_KERNELS_AUX_LOSS_H

#include "kernels/types.h"

// loss[0] = coef * experts * mean over sequences s of sum over e of fractions[s, e] * means[s, e]
//
//   means      [sequences, experts] as mean_scores gives them
//   fractions  [sequences, experts] as fractions gives them
//
// Summed in double. 0 for no sequences.
void hk_aux_loss_f32(float *loss, const float *means, const float *fractions, int64_t sequences,
                     int64_t experts, double coef);
void hk_aux_loss_f64(double *loss, const double *means, const double *fractions, int64_t sequences,
                     int64_t experts, double coef);

// Stores dmeans [sequences, experts], given dloss [1]. Fractions have no gradient.
void hk_aux_loss_grad_f32(float *dmeans, const float *dloss, const float *fractions,
                          int64_t sequences, int64_t experts, double coef);
void hk_aux_loss_grad_f64(double *dmeans, const double *dloss, const double *fractions,
                          int64_t sequences, int64_t experts, double coef);

#endif
