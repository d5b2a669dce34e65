// Movement of experts: calls of runtime/fssdp, keyed by set and layer.
#include "codegen/host/experts.h"

#include "codegen/host/function.h"
#include "codegen/host/symbols.h"

// "m->fssdp, 0, i"
static const char *key_text(struct hec_emitter *e, MlirOperation op) {
    const int64_t ahead = hec_op_is(op, HEC_OP_prefetch) ? -1
                          : hec_has_attr(op, "ahead")    ? hec_get_int(op, "ahead")
                                                         : 0;
    const char *layer = hec_layer_text(e, op, ahead);
    return HEC_TEXT(e, "m->fssdp, %d, %s", hec_set_index(e, hec_get_string(op, "set")),
                    layer ? layer : "0");
}

void hec_emit_plan(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_plan(%s);", key_text(e, op));
}

void hec_emit_materialize(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_materialize(%s, %s);", key_text(e, op),
                  hec_get_bool(op, "rematerialize") ? "true" : "false");
}

void hec_emit_prefetch(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_prefetch(%s);", key_text(e, op));
}

void hec_emit_calibrate(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_calibrate(%s);", key_text(e, op));
}

void hec_emit_await(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_await(%s);", key_text(e, op));
}

void hec_emit_reduce(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hrt_reduce(%s);", key_text(e, op));
}

void hec_emit_release(struct hec_emitter *e, MlirOperation op) {
    const bool gradients = mlirStringRefEqual(hec_get_string(op, "what"), HEC_STR("gradients"));
    hec_statement(e, "hrt_release_%s(%s);", gradients ? "grads" : "params", key_text(e, op));
}
