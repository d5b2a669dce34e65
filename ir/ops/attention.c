// Rotary embedding and attention. Sequences are [batch, T, heads, width].
#include "ir/accessors.h"
#include "ir/ops/rule.h"

#include <math.h>

// x [.., T, .., A] and the table [T, A]: T is x's second dimension, A its last.
static bool infer_by_table(MlirOperation op, MlirValue rotated, MlirType *result) {
    if (!hec_expect_real(op, "x", rotated)) return false;
    const struct hec_tensor x = hec_tensor_at(rotated);
    if (!hec_expect_rank(op, "x", &x, 3)) return false;
    const struct hec_tensor position = hec_slice(&x, 1, 2),
                            width = hec_slice(&x, x.rank - 1, x.rank);
    const struct hec_tensor table = hec_join(&position, &width);
    if (!hec_expect(op, "table", hec_rotation_table(op), &table)) return false;
    if (width.size[0] % 2 != 0)
        return hec_ir_error(op, "the width %" PRId64 " is odd", width.size[0]);
    result[0] = mlirValueGetType(rotated);
    return true;
}

static bool infer_rope(MlirOperation op, MlirType *result) {
    return infer_by_table(op, hec_rope_x(op), result);
}

static bool infer_rope_grad(MlirOperation op, MlirType *result) {
    return infer_by_table(op, hec_rope_grad_dy(op), result);
}

static void gradient_rope(struct hec_gradient *g, MlirOperation op) {
    static const char *const keys[] = {"interleaved", NULL};
    const MlirValue in[] = {g->of(g, hec_rope_y(op), true), g->primal(g, hec_rope_table(op))};
    MlirNamedAttribute attribute[1];
    const int attributes = hec_rule_attributes(op, keys, attribute);
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_rope_grad, 2, in, attributes, attribute);
    hec_rule_add(g, hec_rope_x(op), hec_rope_grad_dx(grad));
}

static struct hec_cost cost_rope(MlirOperation op) {
    return hec_cost_per_element(op, 3);
}

const struct hec_traits hec_traits_rope = {
    .pure = true, .in_place = 1, .infer = infer_rope, .gradient = gradient_rope, .cost = cost_rope};

const struct hec_traits hec_traits_rope_grad = {
    .pure = true, .adds = 1, .infer = infer_rope_grad, .cost = cost_rope};

// Checks q [batch, T, H, A], k [batch, T, G, A], v [batch, T, G, U] and gives out [batch, T, H, U]
// and lse [batch, H, T].
static bool check_heads(MlirOperation op, struct hec_tensor *out, struct hec_tensor *lse) {
    static const char *const name[] = {"q", "k", "v"};
    const MlirValue value[] = {hec_attention_q(op), hec_attention_k(op), hec_attention_v(op)};
    struct hec_tensor t[3];
    for (int i = 0; i < 3; i++) {
        if (!hec_expect_real(op, name[i], value[i])) return false;
        t[i] = hec_tensor_at(value[i]);
        if (t[i].rank != 4)
            return hec_ir_error(op, "%s is %s, expected [batch, T, heads, width]", name[i],
                                hec_type_text(hec_tensor_type(&t[i])).text);
    }
    const struct hec_tensor sequence = hec_slice(&t[0], 0, 2), heads = hec_slice(&t[0], 2, 3);
    const struct hec_tensor groups = hec_slice(&t[1], 2, 3), width = hec_slice(&t[0], 3, 4);
    const struct hec_tensor value_width = hec_slice(&t[2], 3, 4);
    const struct hec_tensor grouped = hec_join(&sequence, &groups);
    const struct hec_tensor k = hec_join(&grouped, &width), v = hec_join(&grouped, &value_width);
    if (!hec_expect(op, "k", value[1], &k) || !hec_expect(op, "v", value[2], &v)) {
        return false;
    }
    if (groups.size[0] < 1 || heads.size[0] % groups.size[0] != 0)
        return hec_ir_error(op,
                            "%" PRId64 " heads cannot share %" PRId64 " key and value heads evenly",
                            heads.size[0], groups.size[0]);
    const struct hec_tensor headed = hec_join(&sequence, &heads);
    *out = hec_join(&headed, &value_width);
    const struct hec_tensor batch = hec_slice(&sequence, 0, 1),
                            position = hec_slice(&sequence, 1, 2);
    const struct hec_tensor batch_heads = hec_join(&batch, &heads);
    *lse = hec_join(&batch_heads, &position);
    return true;
}

// 0: not there.
static int64_t chunk_of(MlirOperation op) {
    return hec_any_has_chunk(op) ? hec_any_chunk(op) : 0;
}

static bool check_mask(MlirOperation op) {
    if (!hec_expect_int(op, "window", 0)) return false;
    if (hec_any_has_chunk(op) && !hec_expect_int(op, "chunk", 1)) return false;
    if ((hec_any_window(op) > 0 || chunk_of(op) > 0) && !hec_any_causal(op))
        return hec_ir_error(op, "a %s needs causal attention",
                            hec_any_window(op) > 0 ? "window" : "chunk");
    return true;
}

static bool check_scores(MlirOperation op) {
    if (!isfinite(hec_any_scale(op))) return hec_ir_error(op, "scale is not finite");
    if (hec_any_has_cap(op) && (!isfinite(hec_any_cap(op)) || hec_any_cap(op) <= 0))
        return hec_ir_error(op, "cap is %g, expected a positive number", hec_any_cap(op));
    const struct hec_tensor q = hec_tensor_at(hec_attention_q(op));
    if (!hec_any_rounds(op) || mlirTypeIsAF32(q.element)) return true;
    return hec_ir_error(op, "rounds is for operands of f32");
}

// Where the documents begin that attention stays in, if there are any: [batch, T].
static bool check_begins(MlirOperation op, MlirValue begins, const struct hec_tensor *out) {
    if (mlirValueIsNull(begins)) return true;
    const struct hec_tensor sequence = hec_slice(out, 0, 2);
    const struct hec_tensor wanted = hec_with_element(&sequence, hec_i32(op));
    return hec_expect(op, "begins", begins, &wanted);
}

static bool infer_sdpa(MlirOperation op, MlirType *result) {
    struct hec_tensor out, lse;
    if (!check_heads(op, &out, &lse) || !check_mask(op) || !check_scores(op) ||
        !check_begins(op, hec_sdpa_begins(op), &out))
        return false;
    const MlirValue sinks = hec_sdpa_sinks(op);
    const struct hec_tensor heads = hec_slice(&lse, 1, 2);
    if (!mlirValueIsNull(sinks) && !hec_expect(op, "sinks", sinks, &heads)) return false;
    result[0] = hec_tensor_type(&out);
    result[1] = hec_tensor_type(&lse);
    return true;
}

static bool infer_sdpa_grad(MlirOperation op, MlirType *result) {
    struct hec_tensor out, lse;
    if (!check_heads(op, &out, &lse) || !check_mask(op) || !check_scores(op) ||
        !hec_expect(op, "dout", hec_sdpa_grad_dout(op), &out) ||
        !hec_expect(op, "out", hec_sdpa_grad_out(op), &out) ||
        !hec_expect(op, "lse", hec_sdpa_grad_lse(op), &lse) ||
        !check_begins(op, hec_sdpa_grad_begins(op), &out)) {
        return false;
    }
    result[0] = mlirValueGetType(hec_sdpa_grad_q(op));
    result[1] = mlirValueGetType(hec_sdpa_grad_k(op));
    result[2] = mlirValueGetType(hec_sdpa_grad_v(op));
    return true;
}

static bool infer_sinks_grad(MlirOperation op, MlirType *result) {
    const MlirValue value = hec_sinks_grad_out(op);
    if (!hec_expect_real(op, "out", value)) return false;
    const struct hec_tensor out = hec_tensor_at(value);
    if (out.rank != 4)
        return hec_ir_error(op, "out is %s, expected [batch, T, heads, width]",
                            hec_type_text(hec_tensor_type(&out)).text);
    const struct hec_tensor batch = hec_slice(&out, 0, 1), position = hec_slice(&out, 1, 2),
                            heads = hec_slice(&out, 2, 3);
    const struct hec_tensor headed = hec_join(&batch, &heads), lse = hec_join(&headed, &position);
    if (!hec_expect(op, "dout", hec_sinks_grad_dout(op), &out) ||
        !hec_expect(op, "lse", hec_sinks_grad_lse(op), &lse) ||
        !hec_expect(op, "sinks", hec_sinks_grad_sinks(op), &heads))
        return false;
    result[0] = hec_tensor_type(&heads);
    return true;
}

static void gradient_sdpa(struct hec_gradient *g, MlirOperation op) {
    static const char *const keys[] = {"causal", "window", "chunk", "scale", "cap", NULL};
    MlirNamedAttribute attribute[6];
    int attributes = hec_rule_attributes(op, keys, attribute);
    if (hec_any_rounds(op))
        attribute[attributes++] = hec_attr_bool(g->builder->context, "rounds", true);
    const MlirValue q = hec_sdpa_q(op), k = hec_sdpa_k(op), v = hec_sdpa_v(op);
    MlirValue in[] = {g->of(g, hec_sdpa_out(op), true),
                      q,
                      k,
                      v,
                      hec_sdpa_out(op),
                      hec_sdpa_lse(op),
                      hec_sdpa_begins(op)};
    const int operands = mlirValueIsNull(in[6]) ? 6 : 7;
    for (int i = 1; i < operands; i++) in[i] = g->primal(g, in[i]);
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_sdpa_grad, operands, in, attributes, attribute);
    hec_rule_add(g, q, hec_sdpa_grad_dq(grad));
    hec_rule_add(g, k, hec_sdpa_grad_dk(grad));
    hec_rule_add(g, v, hec_sdpa_grad_dv(grad));
    const MlirValue sinks = hec_sdpa_sinks(op);
    if (mlirValueIsNull(sinks) || !g->wants(g, sinks)) return;
    const MlirValue of_sinks[] = {in[0], in[4], in[5], g->primal(g, sinks)};
    hec_rule_add(g, sinks, hec_rule_build(g, HEC_OP_sinks_grad, 4, of_sinks));
}

// Two GEMMs, scores and values, over the keys each query sees: half of them on average when
// causal, of a chunk where there are chunks, at most `window`.
static double flops_sdpa(MlirOperation op) {
    const struct hec_tensor q = hec_tensor_at(hec_attention_q(op)),
                            v = hec_tensor_at(hec_attention_v(op));
    const double positions = (double)q.size[1], window = (double)hec_any_window(op);
    const double chunk = chunk_of(op) > 0 ? fmin((double)chunk_of(op), positions) : positions;
    double pairs = positions * chunk;
    if (hec_any_causal(op)) pairs /= 2;
    if (window > 0 && window * positions < pairs) pairs = window * positions;
    const double heads = (double)(q.size[0] * q.size[2]);
    return 2 * heads * pairs * (double)(q.size[3] + v.size[3]);
}

static struct hec_cost cost_sdpa(MlirOperation op) {
    return (struct hec_cost){.flops = flops_sdpa(op), .bytes = hec_io_bytes(op)};
}

static struct hec_cost cost_sdpa_grad(MlirOperation op) {
    return (struct hec_cost){.flops = 2 * flops_sdpa(op), .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_sdpa = {
    .pure = true, .infer = infer_sdpa, .gradient = gradient_sdpa, .cost = cost_sdpa};

const struct hec_traits hec_traits_sdpa_grad = {
    .pure = true, .infer = infer_sdpa_grad, .cost = cost_sdpa_grad};

static bool infer_documents(MlirOperation op, MlirType *result) {
    const MlirValue ids = hec_documents_ids(op);
    const struct hec_tensor t = hec_tensor_at(ids), want = hec_with_element(&t, hec_i32(op));
    if (!hec_expect(op, "ids", ids, &want)) return false;
    if (t.rank != 2) return hec_ir_error(op, "finds documents of tokens [batch, T]");
    result[0] = mlirValueGetType(ids);
    return true;
}

const struct hec_traits hec_traits_documents = {.pure = true, .infer = infer_documents};

// A product for each element of out, and an exp for each of its rows.
static struct hec_cost cost_sinks_grad(MlirOperation op) {
    const struct hec_tensor out = hec_tensor_at(hec_sinks_grad_out(op));
    const double rows = (double)(out.size[0] * out.size[1] * out.size[2]);
    return (struct hec_cost){.flops = rows * (2 * (double)out.size[3] + 4),
                             .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_sinks_grad = {
    .pure = true, .adds = 1, .infer = infer_sinks_grad, .cost = cost_sinks_grad};
