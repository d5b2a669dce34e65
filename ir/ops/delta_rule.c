// moe.delta_rule: linear attention whose state is corrected by the delta rule and decays. kernels/delta_rule has the
// definition. q and k are [batch, T, G, A], v and out [batch, T, H, U], decay and beta [batch, T, H].
#include "ir/accessors.h"
#include "ir/ops/rule.h"

#include <math.h>

// Types of the operation, from its operands.
struct shapes {
    struct hec_tensor q, v, scalars, states, state;
};

static bool check(MlirOperation op, MlirValue begins, struct shapes *s) {
    const MlirValue q = hec_delta_q(op), v = hec_delta_v(op);
    if (!hec_expect_int(op, "chunk", 1)) return false;
    if (hec_any_chunk(op) > HEC_DELTA_CHUNK)
        return hec_ir_error(op, "chunk is %" PRId64 ", expected at most %d", hec_any_chunk(op),
                            HEC_DELTA_CHUNK);
    if (!hec_expect_real(op, "q", q) || !hec_expect_real(op, "v", v)) return false;
    s->q = hec_tensor_at(q), s->v = hec_tensor_at(v);
    if (s->q.rank != 4 || s->v.rank != 4)
        return hec_ir_error(op, "q and v are %s and %s, expected [batch, T, heads, width]",
                            hec_type_text(hec_tensor_type(&s->q)).text,
                            hec_type_text(hec_tensor_type(&s->v)).text);
    const struct hec_tensor sequence = hec_slice(&s->q, 0, 2), batch = hec_slice(&s->q, 0, 1);
    const struct hec_tensor heads = hec_slice(&s->v, 2, 3), vwidth = hec_slice(&s->v, 3, 4);
    const struct hec_tensor width = hec_slice(&s->q, 3, 4);
    s->scalars = hec_join(&sequence, &heads);
    const struct hec_tensor v_wanted = hec_join(&s->scalars, &vwidth);
    const struct hec_tensor headed = hec_join(&batch, &heads), key = hec_join(&headed, &width);
    // Keys and values may have the same dimension: here it has another name.
    const struct hec_tensor columns = hec_vector(batch.element, HEC_STR("columns"), vwidth.size[0]);
    s->state = hec_join(&key, &columns);
    const int64_t chunks = (sequence.size[1] + hec_any_chunk(op) - 1) / hec_any_chunk(op);
    const struct hec_tensor chunked = hec_vector(batch.element, HEC_STR("chunks"), chunks);
    const struct hec_tensor front = hec_join(&batch, &chunked), rest = hec_slice(&s->state, 1, 4);
    s->states = hec_join(&front, &rest);
    if (!hec_expect(op, "k", hec_delta_k(op), &s->q) || !hec_expect(op, "v", v, &v_wanted) ||
        !hec_expect(op, "decay", hec_delta_decay(op), &s->scalars) ||
        !hec_expect(op, "beta", hec_delta_beta(op), &s->scalars))
        return false;
    if (s->q.size[2] < 1 || heads.size[0] % s->q.size[2] != 0)
        return hec_ir_error(op, "%" PRId64 " value heads cannot share %" PRId64 " key heads evenly",
                            heads.size[0], s->q.size[2]);
    if (!isfinite(hec_any_scale(op))) return hec_ir_error(op, "scale is not finite");
    if (mlirValueIsNull(begins)) return true;
    const struct hec_tensor places = hec_with_element(&sequence, hec_i32(op));
    return hec_expect(op, "begins", begins, &places);
}

static bool infer_delta_rule(MlirOperation op, MlirType *result) {
    struct shapes s;
    if (!check(op, hec_delta_rule_begins(op), &s)) return false;
    result[0] = hec_tensor_type(&s.v);
    result[1] = hec_tensor_type(&s.states);
    return true;
}

static bool infer_delta_rule_grad(MlirOperation op, MlirType *result) {
    struct shapes s;
    if (!check(op, hec_delta_rule_grad_begins(op), &s) ||
        !hec_expect(op, "dout", hec_delta_rule_grad_dout(op), &s.v) ||
        !hec_expect(op, "states", hec_delta_rule_grad_states(op), &s.states))
        return false;
    result[0] = result[1] = hec_tensor_type(&s.q);
    result[2] = hec_tensor_type(&s.v);
    result[3] = result[4] = hec_tensor_type(&s.scalars);
    result[5] = hec_tensor_type(&s.state);
    return true;
}

static void gradient(struct hec_gradient *g, MlirOperation op) {
    const MlirValue to[] = {hec_delta_q(op), hec_delta_k(op), hec_delta_v(op), hec_delta_decay(op),
                            hec_delta_beta(op)};
    MlirValue in[8] = {g->of(g, hec_delta_rule_out(op), true)};
    int operands = 1;
    for (int i = 0; i < 5; i++) in[operands++] = g->primal(g, to[i]);
    in[operands++] = g->primal(g, hec_delta_rule_states(op));
    const MlirValue begins = hec_delta_rule_begins(op);
    if (!mlirValueIsNull(begins)) in[operands++] = g->primal(g, begins);
    const MlirNamedAttribute attribute[] = {
        hec_attr_float(g->builder->context, "scale", hec_any_scale(op)),
        hec_attr_int(g->builder->context, "chunk", hec_any_chunk(op)),
    };
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_delta_rule_grad, operands, in, 2, attribute);
    for (int i = 0; i < 5; i++) hec_rule_add(g, to[i], hec_result(grad, i));
}

// GEMMs of a chunk of c tokens and a head: keys with keys and with queries, half of each; the state by keys and by
// queries, and keys by what is stored into it; the triangular system, and scores by what it gives, half of each.
static double flops(MlirOperation op) {
    const struct hec_tensor q = hec_tensor_at(hec_delta_q(op)), v = hec_tensor_at(hec_delta_v(op));
    const double width = (double)q.size[3], vwidth = (double)v.size[3];
    const double tokens = (double)(v.size[0] * v.size[1] * v.size[2]);
    const double chunk = fmin((double)hec_any_chunk(op), (double)v.size[1]);
    return tokens * (6 * width * vwidth + 2 * chunk * (width + vwidth));
}

static struct hec_cost cost(MlirOperation op) {
    return (struct hec_cost){.flops = flops(op), .bytes = hec_io_bytes(op)};
}

// Backward computes u once more, and two GEMMs for each of forward's.
static struct hec_cost cost_grad(MlirOperation op) {
    return (struct hec_cost){.flops = 2.5 * flops(op), .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_delta_rule = {
    .pure = true, .infer = infer_delta_rule, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_delta_rule_grad = {
    .pure = true, .infer = infer_delta_rule_grad, .cost = cost_grad};
