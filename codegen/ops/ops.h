// What the families of operations offer to the table (table.c).
#ifndef HECATE_CODEGEN_OPS_OPS_H
#define HECATE_CODEGEN_OPS_OPS_H

#include "codegen/emitter.h"

hec_emit_op hec_emit_elementwise, hec_emit_fused;
hec_emit_op hec_emit_contract, hec_emit_grouped_contract, hec_emit_spread, hec_emit_spread_grad;
hec_emit_op hec_emit_sum, hec_emit_copy, hec_emit_stash, hec_emit_accumulate;
hec_emit_op hec_emit_rmsnorm, hec_emit_rmsnorm_grad, hec_emit_layernorm, hec_emit_layernorm_grad;
hec_emit_op hec_emit_rope, hec_emit_rope_grad, hec_emit_sdpa, hec_emit_sdpa_grad;
hec_emit_op hec_emit_gather, hec_emit_gather_grad;
hec_emit_op hec_emit_cross_entropy, hec_emit_cross_entropy_grad;
hec_emit_op hec_emit_noise, hec_emit_router, hec_emit_router_grad;
hec_emit_op hec_emit_fractions, hec_emit_mean_scores, hec_emit_mean_scores_grad;
hec_emit_op hec_emit_aux_loss, hec_emit_aux_loss_grad, hec_emit_z_loss, hec_emit_z_loss_grad;
hec_emit_op hec_emit_route, hec_emit_limit, hec_emit_permute, hec_emit_combine;
hec_emit_op hec_emit_gate_rows, hec_emit_gate_rows_grad;
hec_emit_op hec_emit_drop, hec_emit_exchange;
hec_emit_op hec_emit_dispatch, hec_emit_give_back, hec_emit_collect;
hec_emit_op hec_emit_dispatch_grad, hec_emit_give_back_grad, hec_emit_collect_grad;
hec_emit_op hec_emit_dense_ready;
hec_emit_op hec_emit_plan, hec_emit_materialize, hec_emit_prefetch, hec_emit_calibrate,
    hec_emit_await;
hec_emit_op hec_emit_reduce, hec_emit_release;
hec_emit_op hec_emit_nothing;

// The loops of a moe.fused over `block`, a part of its first `rows` dimensions and of the others.
void hec_emit_fused_block(struct hec_emitter *e, MlirOperation op, int rows);

// The last argument of the product `op`, whose result has `rows` dimensions of rows: its epilogue,
// written as a function before the current one; "NULL" where it has none.
const char *hec_epilogue(struct hec_emitter *e, MlirOperation op, int rows);

// "f32", "f64", or "bf16" for an operation that rounds its operands; what it writes is f32 then.
const char *hec_kernel_suffix(struct hec_emitter *e, MlirOperation op);

// The tokens of a group of `op`, whose ids or weights are `picks`: "0" where all of an iteration are one.
const char *hec_group_tokens(struct hec_emitter *e, MlirOperation op, MlirValue picks);

// The constant of kernels/limit for the rule that moe.limit or fssdp.drop drops rows by.
const char *hec_drop_rule(struct hec_emitter *e, MlirOperation op);

// The arguments that name a route to the runtime: "m->experts, 0, i".
const char *hec_route_key(struct hec_emitter *e, MlirOperation op);

#endif
