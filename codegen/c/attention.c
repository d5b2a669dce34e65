// Attention and the rotary embedding.
#include "codegen/c/ops.h"

// Heads of [batch, T, heads, width]; a tensor without that dimension has one.
static const char *heads_of(struct hec_emitter *e, const struct hec_tensor *t) {
    return t->rank == 4 ? hec_dim(e, t, 2) : "1";
}

static bool is_heads(struct hec_emitter *e, MlirOperation op, const struct hec_tensor *t) {
    if (t->rank == 4 || t->rank == 3) return true;
    hec_emit_fault(e, op, "needs [batch, T, heads, width], got %d dimensions", t->rank);
    return false;
}

static const char *rope_dims(struct hec_emitter *e, MlirOperation op) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(hec_operand(op, 0)));
    if (!is_heads(e, op, &t)) return "";
    return HEC_TEXT(e,
                    "(struct hk_rope_dims)"
                    "{.batch = %s, .positions = %s, .heads = %s, .width = %s}",
                    hec_dim(e, &t, 0), hec_dim(e, &t, 1), heads_of(e, &t),
                    hec_dim(e, &t, t.rank - 1));
}

void hec_emit_rope(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hk_rope_%s(%s, %s, %s, %s);", e->suffix, hec_ref(e, hec_result(op, 0)),
                  hec_ref(e, hec_operand(op, 0)), hec_ref(e, hec_operand(op, 1)), rope_dims(e, op));
}

void hec_emit_rope_grad(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hk_rope_grad_%s(%s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, hec_operand(op, 0)),
                  hec_ref(e, hec_operand(op, 1)), rope_dims(e, op), hec_write_mode(e, op, 0));
}

static const char *sdpa_dims(struct hec_emitter *e, MlirOperation op, int q) {
    const struct hec_tensor tq = hec_tensor_of(mlirValueGetType(hec_operand(op, q)));
    const struct hec_tensor tk = hec_tensor_of(mlirValueGetType(hec_operand(op, q + 1)));
    const struct hec_tensor tv = hec_tensor_of(mlirValueGetType(hec_operand(op, q + 2)));
    if (!is_heads(e, op, &tq) || !is_heads(e, op, &tk) || !is_heads(e, op, &tv)) return "";
    const double scale = hec_get_float(op, "scale");
    const char *text =
        HEC_TEXT(e,
                 "(struct hk_sdpa_dims){.batch = %s, .positions = %s, .heads = %s, "
                 ".groups = %s, .width = %s, .vwidth = %s",
                 hec_dim(e, &tq, 0), hec_dim(e, &tq, 1), heads_of(e, &tq), heads_of(e, &tk),
                 hec_dim(e, &tq, tq.rank - 1), hec_dim(e, &tv, tv.rank - 1));
    if (hec_get_int(op, "window") > 0) {
        text = HEC_TEXT(e, "%s, .window = %" PRId64, text, hec_get_int(op, "window"));
    }
    return HEC_TEXT(e, "%s, .causal = %s, .scale = %s}", text,
                    hec_get_bool(op, "causal") ? "true" : "false", hec_number(e, scale));
}

void hec_emit_sdpa(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "hk_sdpa_%s(%s, %s, %s, %s, %s, %s);", hec_kernel_suffix(e, op),
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, hec_result(op, 1)),
                  hec_ref(e, hec_operand(op, 0)), hec_ref(e, hec_operand(op, 1)),
                  hec_ref(e, hec_operand(op, 2)), sdpa_dims(e, op, 0));
}

void hec_emit_sdpa_grad(struct hec_emitter *e, MlirOperation op) {
    const char *dq = hec_ref(e, hec_result(op, 0)), *dk = hec_ref(e, hec_result(op, 1));
    const char *dv = hec_ref(e, hec_result(op, 2)), *dout = hec_ref(e, hec_operand(op, 0));
    hec_statement(e, "hk_sdpa_grad_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s);",
                  hec_kernel_suffix(e, op), dq, dk, dv, dout, hec_ref(e, hec_operand(op, 1)),
                  hec_ref(e, hec_operand(op, 2)), hec_ref(e, hec_operand(op, 3)),
                  hec_ref(e, hec_operand(op, 4)), hec_ref(e, hec_operand(op, 5)),
                  sdpa_dims(e, op, 1));
}
