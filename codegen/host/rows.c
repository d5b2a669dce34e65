// Rows on their way to the ranks of their experts: calls of runtime/experts. Gradients that all ranks
// sum: calls of runtime/train/dense.h.
#include "codegen/host/rows.h"

#include "codegen/host/dims.h"
#include "codegen/host/function.h"
#include "codegen/host/literal.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"

const char *hec_route_key(struct hec_emitter *e, MlirOperation op) {
    const char *layer = hec_layer_text(e, op, 0);
    return HEC_TEXT(e, "m->experts, %d, %s", hec_set_index(e, hec_any_set(op)),
                    layer ? layer : "0");
}

const char *hec_group_tokens(struct hec_emitter *e, MlirOperation op, MlirValue picks) {
    if (!hec_any_has_group(op)) return "0";
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(picks));
    const char *positions = hec_product(e, &t, 1, t.rank - 1);
    const int64_t group = hec_any_group(op);
    return group == 1 ? positions : HEC_TEXT(e, "%" PRId64 " * %s", group, positions);
}

// The constant of kernels/limit for the rule that fssdp.drop drops rows by.
static const char *drop_rule(struct hec_emitter *e, MlirOperation op) {
    static const struct hec_word drops[] = {
        {"lowest", "HK_LOWEST"}, {"position", "HK_POSITION"}, {0}};
    return hec_word(e, op, "drop", drops);
}

void hec_emit_drop(struct hec_emitter *e, MlirOperation op) {
    const MlirValue ids = hec_drop_ids(op);
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(ids));
    hec_statement(e, "hrt_experts_drop(%s, %s, %s, %s, %s, %s, %s, %s);", hec_route_key(e, op),
                  hec_ref(e, hec_drop_kept(op)), hec_ref(e, ids), hec_ref(e, hec_drop_weights(op)),
                  hec_product(e, &t, 0, t.rank - 1), hec_group_tokens(e, op, ids),
                  hec_number(e, hec_any_capacity(op)), drop_rule(e, op));
}

void hec_emit_exchange(struct hec_emitter *e, MlirOperation op) {
    const MlirValue ids = hec_exchange_ids(op);
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(ids));
    hec_statement(e, "hrt_experts_route(%s, %s, %s);", hec_route_key(e, op), hec_ref(e, ids),
                  hec_product(e, &t, 0, t.rank - 1));
}

void hec_emit_await_counts(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_await_counts(%s);", hec_route_key(e, op));
}

void hec_emit_dispatch(struct hec_emitter *e, MlirOperation op) {
    const char *rows = hec_ref(e, hec_dispatch_rows(op)), *gate = hec_ref(e, hec_dispatch_gate(op)),
               *first = hec_ref(e, hec_dispatch_first(op));
    hec_statement(e, "hrt_experts_dispatch(%s, wave, %s, %s, %s, %s, %s);", hec_route_key(e, op),
                  rows, gate, first, hec_ref(e, hec_dispatch_x(op)),
                  hec_ref(e, hec_dispatch_weights(op)));
    e->back_end->memory->rows(e, op, hec_dispatch_first(op));
}

void hec_emit_give_back(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_give_back(%s, wave, %s);", hec_route_key(e, op),
                  hec_ref(e, hec_give_back_rows(op)));
}

void hec_emit_collect(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_combine(%s, %s);", hec_route_key(e, op),
                  hec_ref(e, hec_collect_y(op)));
}

void hec_emit_dispatch_grad(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_dispatch_grad(%s, wave, %s, %s);", hec_route_key(e, op),
                  hec_ref(e, hec_dispatch_grad_drows(op)), hec_ref(e, hec_dispatch_grad_dy(op)));
    e->back_end->memory->rows(e, op, hec_dispatch_grad_first(op));
}

void hec_emit_give_back_grad(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_give_back_grad(%s, wave, %s, %s);", hec_route_key(e, op),
                  hec_ref(e, hec_give_back_grad_drows(op)),
                  hec_ref(e, hec_give_back_grad_dgate(op)));
}

void hec_emit_collect_grad(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_combine_grad(%s, %s, %s);", hec_route_key(e, op),
                  hec_ref(e, hec_collect_grad_dx(op)), hec_ref(e, hec_collect_grad_dweights(op)));
}

void hec_emit_dense_ready(struct hec_emitter *e, MlirOperation op) {
    const char *layer = hec_layer_text(e, op, 0);
    hec_statement(e, "hrt_train_dense_ready(m->dense, %d, %s);", hec_bucket_index(e, op),
                  layer ? layer : "0");
}

// "m->dense, 1, i + 1"
static const char *unit_text(struct hec_emitter *e, MlirOperation op) {
    const char *layer = hec_layer_text(e, op, hec_any_has_ahead(op) ? hec_any_ahead(op) : 0);
    return HEC_TEXT(e, "m->dense, %d, %s", hec_unit_index(e, op), layer ? layer : "0");
}

void hec_emit_dense_gather(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_train_dense_bring(%s);", unit_text(e, op));
}

void hec_emit_dense_await(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_train_dense_await(%s);", unit_text(e, op));
}

void hec_emit_dense_release(struct hec_emitter *e, MlirOperation op) {
    if (!hec_forget_kept(op)) hec_statement(e, "hrt_train_dense_release(%s);", unit_text(e, op));
}
