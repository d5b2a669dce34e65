// Movement of experts: calls of runtime/experts, keyed by set and layer.
#include "codegen/host/experts.h"

#include "codegen/host/function.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"

// "m->fssdp, 0, i"
static const char *key_text(struct hec_emitter *e, MlirOperation op) {
    const int64_t ahead = hec_op_is(op, HEC_OP_prefetch) ? -1
                          : hec_any_has_ahead(op)        ? hec_any_ahead(op)
                                                         : 0;
    const char *layer = hec_layer_text(e, op, ahead);
    return HEC_TEXT(e, "m->fssdp, %d, %s", hec_set_index(e, hec_any_set(op)), layer ? layer : "0");
}

static const char begins[] = "if (hrt_experts_step_begins(m->fssdp)) ";
static const char ends[] = "if (hrt_experts_step_ends(m->fssdp)) ";

// The condition of an operation that is done once in a step.
static const char *once(MlirOperation op, const char *condition) {
    return hec_is_of_step(op) ? condition : "";
}

void hec_emit_plan(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "%shrt_experts_plan(%s);", once(op, begins), key_text(e, op));
}

void hec_emit_materialize(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "%shrt_experts_materialize(%s, %s);", once(op, begins), key_text(e, op),
                  hec_any_rematerialize(op) ? "true" : "false");
}

void hec_emit_prefetch(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "%shrt_experts_prefetch(%s);", once(op, begins), key_text(e, op));
}

void hec_emit_calibrate(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_calibrate(%s);", key_text(e, op));
}

void hec_emit_await(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_experts_await(%s);", key_text(e, op));
}

void hec_emit_reduce(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "%shrt_experts_reduce(%s);", once(op, ends), key_text(e, op));
}

void hec_emit_release(struct hec_emitter *e, MlirOperation op) {
    const bool gradients = mlirStringRefEqual(hec_any_what(op), HEC_STR("gradients"));
    hec_statement(e, "%shrt_experts_release_%s(%s);", once(op, ends),
                  gradients ? "grads" : "params", key_text(e, op));
}
