// What stands for each operation in C. A new operation gets its row here, unless it is elementwise.
#include "codegen/c/printer.h"

#include "codegen/c/ops.h"

static hec_emit_op *const table[HEC_OP_OTHER + 1] = {
    // Copies and sums.
    [HEC_OP_accumulate] = hec_emit_accumulate,
    [HEC_OP_copy] = hec_emit_copy,
    [HEC_OP_sum] = hec_emit_sum,
    [HEC_OP_fused] = hec_emit_fused,
    // Kernels.
    [HEC_OP_call] = hec_emit_call,
    // Mixture of experts.
    [HEC_OP_noise] = hec_emit_noise,
    [HEC_OP_router] = hec_emit_router,
    [HEC_OP_router_grad] = hec_emit_router_grad,
    [HEC_OP_fractions] = hec_emit_fractions,
    [HEC_OP_mean_scores] = hec_emit_mean_scores,
    [HEC_OP_mean_scores_grad] = hec_emit_mean_scores_grad,
    [HEC_OP_route] = hec_emit_route,
    [HEC_OP_limit] = hec_emit_limit,
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
