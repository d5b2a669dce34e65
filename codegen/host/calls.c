// Operations that are the same in every target: one row per operation.
#include "codegen/host/calls.h"

#include "codegen/host/experts.h"
#include "codegen/host/rows.h"

static hec_emit_op *const table[HEC_OP_OTHER + 1] = {
    // Symbols and values that have their memory already.
    [HEC_OP_get] = hec_emit_nothing,
    [HEC_OP_fetch] = hec_emit_nothing,
    [HEC_OP_stash] = hec_emit_nothing,
    [HEC_OP_CONSTANT] = hec_emit_nothing,
    [HEC_OP_ADDI] = hec_emit_nothing,
    [HEC_OP_SUBI] = hec_emit_nothing,
    [HEC_OP_SCF_YIELD] = hec_emit_nothing,
    [HEC_OP_RETURN] = hec_emit_nothing,
    [HEC_OP_waves] = hec_emit_nothing,
    [HEC_OP_overwritten] = hec_emit_nothing,
    // Movement of experts.
    [HEC_OP_plan] = hec_emit_plan,
    [HEC_OP_materialize] = hec_emit_materialize,
    [HEC_OP_prefetch] = hec_emit_prefetch,
    [HEC_OP_calibrate] = hec_emit_calibrate,
    [HEC_OP_await] = hec_emit_await,
    [HEC_OP_reduce] = hec_emit_reduce,
    [HEC_OP_release] = hec_emit_release,
    // Gradients of what every rank has.
    [HEC_OP_all_reduce] = hec_emit_dense_ready,
    [HEC_OP_reduce_scatter] = hec_emit_dense_ready,
    // Rows on their way to the ranks of their experts.
    [HEC_OP_drop] = hec_emit_drop,
    [HEC_OP_exchange] = hec_emit_exchange,
    [HEC_OP_dispatch] = hec_emit_dispatch,
    [HEC_OP_give_back] = hec_emit_give_back,
    [HEC_OP_collect] = hec_emit_collect,
    [HEC_OP_dispatch_grad] = hec_emit_dispatch_grad,
    [HEC_OP_give_back_grad] = hec_emit_give_back_grad,
    [HEC_OP_collect_grad] = hec_emit_collect_grad,
};

hec_emit_op *hec_host_op(enum hec_op op) {
    return table[op];
}

void hec_emit_nothing(struct hec_emitter *e, MlirOperation op) {
    (void)e, (void)op;
}
