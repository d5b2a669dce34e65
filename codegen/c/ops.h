// What the families of operations offer to the table (table.c).
#ifndef HECATE_CODEGEN_C_OPS_H
#define HECATE_CODEGEN_C_OPS_H

#include "codegen/host/dims.h"
#include "codegen/host/emitter.h"
#include "codegen/host/function.h"
#include "codegen/host/home.h"
#include "codegen/host/literal.h"
#include "codegen/host/printer.h"
#include "codegen/host/symbols.h"

hec_emit_op hec_emit_elementwise, hec_emit_fused;
hec_emit_op hec_emit_contract, hec_emit_grouped_contract, hec_emit_spread, hec_emit_spread_grad;
hec_emit_op hec_emit_sum, hec_emit_copy, hec_emit_accumulate;
hec_emit_op hec_emit_rmsnorm, hec_emit_rmsnorm_grad, hec_emit_layernorm, hec_emit_layernorm_grad;
hec_emit_op hec_emit_rope, hec_emit_rope_grad, hec_emit_sdpa, hec_emit_sdpa_grad;
hec_emit_op hec_emit_gather, hec_emit_gather_grad;
hec_emit_op hec_emit_cross_entropy, hec_emit_cross_entropy_grad;
hec_emit_op hec_emit_noise, hec_emit_router, hec_emit_router_grad;
hec_emit_op hec_emit_fractions, hec_emit_mean_scores, hec_emit_mean_scores_grad;
hec_emit_op hec_emit_aux_loss, hec_emit_aux_loss_grad, hec_emit_z_loss, hec_emit_z_loss_grad;
hec_emit_op hec_emit_route, hec_emit_limit, hec_emit_permute, hec_emit_combine;
hec_emit_op hec_emit_gate_rows, hec_emit_gate_rows_grad;

// The loops of a moe.fused over `block`, a part of its first `rows` dimensions and of the others.
void hec_emit_fused_block(struct hec_emitter *e, MlirOperation op, int rows);

// The last argument of the product `op`, whose result has `rows` dimensions of rows: its epilogue,
// written as a function before the current one; "NULL" where it has none.
const char *hec_epilogue(struct hec_emitter *e, MlirOperation op, int rows);

// "f32", "f64", or "bf16" for an operation that rounds its operands; what it writes is f32 then.
const char *hec_kernel_suffix(struct hec_emitter *e, MlirOperation op);

#endif
