// fractions: an expert's part of the top-k choices of a group of sequences.
// Source: f of Fedus et al. 2021, arXiv:2101.03961, equation 5.
#ifndef HECATE_KERNELS_FRACTIONS_H
#define HECATE_KERNELS_FRACTIONS_H

#include "kernels/router/router.h"

// Groups are `group` sequences each, the last one may have fewer; group 0: all sequences are one.
//
//   fractions [sequences, experts] choices of the expert / all choices, in the sequence's group; 0 without choices
//   running   NULL, or [experts]: a group counts the choices of the groups before it, too, and those of
//             the step's earlier iterations, which `running` holds from `iteration` 1 on (0: no step)
//   ids       [sequences, tokens, topk], the chosen experts
void hk_fractions_f32(float *fractions, int32_t *running, const int32_t *ids, int64_t sequences,
                      int64_t tokens, int64_t topk, int64_t experts, int64_t group,
                      int64_t iteration);
void hk_fractions_f64(double *fractions, int32_t *running, const int32_t *ids, int64_t sequences,
                      int64_t tokens, int64_t topk, int64_t experts, int64_t group,
                      int64_t iteration);

#endif
