// What stands for each operation in C. A new operation gets its row here, unless it is elementwise.
#include "codegen/c/printer.h"

#include "codegen/c/ops.h"

static hec_emit_op *const table[HEC_OP_OTHER + 1] = {
    // Copies and sums.
    [HEC_OP_accumulate] = hec_emit_accumulate,
    [HEC_OP_copy] = hec_emit_copy,
    [HEC_OP_sum] = hec_emit_sum,
    [HEC_OP_fused] = hec_emit_fused,
    // Products.
    [HEC_OP_contract] = hec_emit_contract,
    [HEC_OP_grouped_contract] = hec_emit_grouped_contract,
    [HEC_OP_spread] = hec_emit_spread,
    [HEC_OP_spread_grad] = hec_emit_spread_grad,
    // Norms.
    [HEC_OP_rmsnorm] = hec_emit_rmsnorm,
    [HEC_OP_rmsnorm_grad] = hec_emit_rmsnorm_grad,
    [HEC_OP_layernorm] = hec_emit_layernorm,
    [HEC_OP_layernorm_grad] = hec_emit_layernorm_grad,
    // Attention.
    [HEC_OP_rope] = hec_emit_rope,
    [HEC_OP_rope_grad] = hec_emit_rope_grad,
    [HEC_OP_sdpa] = hec_emit_sdpa,
    [HEC_OP_sdpa_grad] = hec_emit_sdpa_grad,
    // Embedding and loss.
    [HEC_OP_gather] = hec_emit_gather,
    [HEC_OP_gather_grad] = hec_emit_gather_grad,
    [HEC_OP_cross_entropy] = hec_emit_cross_entropy,
    [HEC_OP_cross_entropy_grad] = hec_emit_cross_entropy_grad,
    // Mixture of experts.
    [HEC_OP_noise] = hec_emit_noise,
    [HEC_OP_router] = hec_emit_router,
    [HEC_OP_router_grad] = hec_emit_router_grad,
    [HEC_OP_fractions] = hec_emit_fractions,
    [HEC_OP_mean_scores] = hec_emit_mean_scores,
    [HEC_OP_mean_scores_grad] = hec_emit_mean_scores_grad,
    [HEC_OP_aux_loss] = hec_emit_aux_loss,
    [HEC_OP_aux_loss_grad] = hec_emit_aux_loss_grad,
    [HEC_OP_z_loss] = hec_emit_z_loss,
    [HEC_OP_z_loss_grad] = hec_emit_z_loss_grad,
    [HEC_OP_route] = hec_emit_route,
    [HEC_OP_limit] = hec_emit_limit,
    [HEC_OP_permute] = hec_emit_permute,
    [HEC_OP_combine] = hec_emit_combine,
    [HEC_OP_gate_rows] = hec_emit_gate_rows,
    [HEC_OP_gate_rows_grad] = hec_emit_gate_rows_grad,
};

static hec_emit_op *find(enum hec_op op) {
    if (hec_op_row(op)->traits->elementwise) return hec_emit_elementwise;
    return table[op];
}

const struct hec_printer hec_c_printer = {
    .target = "cpu",
    .headers = (const char *const[]){"hecate/kernels/kernels.h", NULL},
    .of = find,
};
