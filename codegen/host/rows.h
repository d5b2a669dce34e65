// Rows on their way to the ranks of their experts, and gradients that all ranks sum: calls of the runtime.
#ifndef HECATE_CODEGEN_HOST_ROWS_H
#define HECATE_CODEGEN_HOST_ROWS_H

#include "codegen/host/back_end.h"
#include "codegen/host/emitter.h"

hec_emit_op hec_emit_drop, hec_emit_exchange, hec_emit_await_counts, hec_emit_fractions;
hec_emit_op hec_emit_dispatch, hec_emit_give_back, hec_emit_collect;
hec_emit_op hec_emit_dispatch_grad, hec_emit_give_back_grad, hec_emit_collect_grad;
hec_emit_op hec_emit_dense_ready;
hec_emit_op hec_emit_dense_gather;
hec_emit_op hec_emit_dense_await;
hec_emit_op hec_emit_dense_release;

// The tokens of a group of `op`, whose ids or weights are `picks`: "0" where all of an iteration are one.
const char *hec_group_tokens(struct hec_emitter *e, MlirOperation op, MlirValue picks);

// The arguments that name a route to the runtime: "m->experts, 0, i".
const char *hec_route_key(struct hec_emitter *e, MlirOperation op);

#endif
