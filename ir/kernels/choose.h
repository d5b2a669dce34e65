// What the families of kernels share: a function for each operation that says which kernel computes it.
#ifndef HECATE_IR_KERNELS_CHOOSE_H
#define HECATE_IR_KERNELS_CHOOSE_H

#include "ir/kernel.h"

typedef void hec_choose(MlirOperation op, struct hec_choice *choice);

hec_choose hec_choose_contract, hec_choose_grouped, hec_choose_spread, hec_choose_spread_grad;
hec_choose hec_choose_sum;
hec_choose hec_choose_norm, hec_choose_norm_grad;
hec_choose hec_choose_rope, hec_choose_sdpa, hec_choose_sdpa_grad;
hec_choose hec_choose_gather, hec_choose_gather_grad;
hec_choose hec_choose_cross_entropy, hec_choose_cross_entropy_grad;
hec_choose hec_choose_mean_scores, hec_choose_mean_scores_grad;
hec_choose hec_choose_by_token, hec_choose_by_token_grad, hec_choose_aux_loss,
    hec_choose_aux_loss_grad;
hec_choose hec_choose_permute, hec_choose_combine, hec_choose_gate_rows, hec_choose_gate_rows_grad;

// The kernel of that name; where there is none, the choice stays empty.
void hec_choice_kernel(struct hec_choice *choice, const char *name);
// The kernel called as the operation.
void hec_choice_own_kernel(struct hec_choice *choice, MlirOperation op);
// Adds a size: dimensions from .. to-1 of `t`.
void hec_choice_size(struct hec_choice *choice, const char *name, const struct hec_tensor *t,
                     int from, int to);

#endif
