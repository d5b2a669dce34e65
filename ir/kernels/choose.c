// The kernel for an operation.
#include "ir/kernels/choose.h"

#include <assert.h>
#include <string.h>

#include "ir/ops/rule.h"

static hec_choose *const table[HEC_OP_OTHER + 1] = {
    [HEC_OP_contract] = hec_choose_contract,
    [HEC_OP_grouped_contract] = hec_choose_grouped,
    [HEC_OP_spread] = hec_choose_spread,
    [HEC_OP_spread_grad] = hec_choose_spread_grad,
    [HEC_OP_sum] = hec_choose_sum,
    [HEC_OP_rmsnorm] = hec_choose_norm,
    [HEC_OP_rmsnorm_grad] = hec_choose_norm_grad,
    [HEC_OP_layernorm] = hec_choose_norm,
    [HEC_OP_layernorm_grad] = hec_choose_norm_grad,
    [HEC_OP_rope] = hec_choose_rope,
    [HEC_OP_rope_grad] = hec_choose_rope,
    [HEC_OP_sdpa] = hec_choose_sdpa,
    [HEC_OP_sdpa_grad] = hec_choose_sdpa_grad,
    [HEC_OP_gather] = hec_choose_gather,
    [HEC_OP_gather_grad] = hec_choose_gather_grad,
    [HEC_OP_cross_entropy] = hec_choose_cross_entropy,
    [HEC_OP_cross_entropy_grad] = hec_choose_cross_entropy_grad,
    [HEC_OP_z_loss] = hec_choose_by_token,
    [HEC_OP_z_loss_grad] = hec_choose_by_token_grad,
    [HEC_OP_mean_scores] = hec_choose_mean_scores,
    [HEC_OP_mean_scores_grad] = hec_choose_mean_scores_grad,
    [HEC_OP_aux_loss] = hec_choose_aux_loss,
    [HEC_OP_aux_loss_grad] = hec_choose_aux_loss_grad,
    [HEC_OP_permute] = hec_choose_permute,
    [HEC_OP_combine] = hec_choose_combine,
    [HEC_OP_gate_rows] = hec_choose_gate_rows,
    [HEC_OP_gate_rows_grad] = hec_choose_gate_rows_grad,
};

void hec_choice_kernel(struct hec_choice *choice, const char *name) {
    choice->kernel = hec_kernel_find(HEC_STR(name));
    assert(choice->kernel); // kernels.def
}

void hec_choice_own_kernel(struct hec_choice *choice, MlirOperation op) {
    hec_choice_kernel(choice, strchr(hec_op_row(hec_op_of(op))->name, '.') + 1);
}

void hec_choice_size(struct hec_choice *choice, const char *name, const struct hec_tensor *t,
                     int from, int to) {
    assert(choice->sizes < HEC_SIZES_MAX);
    choice->size[choice->sizes++] = (struct hec_size){name, hec_slice(t, from, to)};
}

struct hec_choice hec_choose_kernel(MlirOperation op) {
    struct hec_choice choice = {0};
    hec_choose *choose = table[hec_op_of(op)];
    if (choose) choose(op, &choice);
    return choice;
}
