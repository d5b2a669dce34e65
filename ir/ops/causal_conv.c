// moe.causal_conv: a short convolution over the positions of a sequence, each channel by itself.
// x and y are [batch, T, channels..], w is [channels.., taps].
#include "ir/accessors.h"
#include "ir/ops/rule.h"

static bool check(MlirOperation op, MlirValue begins) {
    const MlirValue x = hec_convolution_x(op), w = hec_convolution_w(op);
    if (!hec_expect_real(op, "x", x) || !hec_expect_real(op, "w", w)) return false;
    const struct hec_tensor t = hec_tensor_at(x), weights = hec_tensor_at(w);
    if (!hec_expect_rank(op, "x", &t, 3) || !hec_expect_rank(op, "w", &weights, 1)) return false;
    const struct hec_tensor channels = hec_slice(&t, 2, t.rank);
    const struct hec_tensor taps = hec_slice(&weights, weights.rank - 1, weights.rank);
    const struct hec_tensor wanted = hec_join(&channels, &taps);
    if (!hec_expect(op, "w", w, &wanted)) return false;
    if (taps.size[0] < 1 || taps.size[0] > t.size[1])
        return hec_ir_error(op, "%" PRId64 " taps, expected 1 to %" PRId64, taps.size[0],
                            t.size[1]);
    if (mlirValueIsNull(begins)) return true;
    const struct hec_tensor sequence = hec_slice(&t, 0, 2);
    const struct hec_tensor places = hec_with_element(&sequence, hec_i32(op));
    return hec_expect(op, "begins", begins, &places);
}

static bool infer_causal_conv(MlirOperation op, MlirType *result) {
    if (!check(op, hec_causal_conv_begins(op))) return false;
    result[0] = mlirValueGetType(hec_causal_conv_x(op));
    return true;
}

static bool infer_causal_conv_grad(MlirOperation op, MlirType *result) {
    if (!check(op, hec_causal_conv_grad_begins(op))) return false;
    const MlirValue x = hec_causal_conv_grad_x(op);
    const struct hec_tensor like = hec_tensor_at(x), w = hec_tensor_at(hec_causal_conv_grad_w(op));
    if (!hec_expect(op, "dy", hec_causal_conv_grad_dy(op), &like)) return false;
    result[0] = mlirValueGetType(x);
    result[1] = hec_tensor_type(&w);
    return true;
}

static void gradient(struct hec_gradient *g, MlirOperation op) {
    const MlirValue x = hec_causal_conv_x(op), w = hec_causal_conv_w(op);
    const MlirValue begins = hec_causal_conv_begins(op);
    MlirValue in[4] = {g->of(g, hec_causal_conv_y(op), true), g->primal(g, x), g->primal(g, w)};
    int operands = 3;
    if (!mlirValueIsNull(begins)) in[operands++] = g->primal(g, begins);
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_causal_conv_grad, operands, in, 0, NULL);
    hec_rule_add(g, x, hec_causal_conv_grad_dx(grad));
    hec_rule_add(g, w, hec_causal_conv_grad_dw(grad));
}

// A multiplication and an addition for each tap.
static double flops(MlirOperation op) {
    const struct hec_tensor x = hec_tensor_at(hec_convolution_x(op)),
                            w = hec_tensor_at(hec_convolution_w(op));
    double elements = 2 * (double)w.size[w.rank - 1];
    for (int i = 0; i < x.rank; i++) elements *= (double)x.size[i];
    return elements;
}

static struct hec_cost cost(MlirOperation op) {
    return (struct hec_cost){.flops = flops(op), .bytes = hec_io_bytes(op)};
}

static struct hec_cost cost_grad(MlirOperation op) {
    return (struct hec_cost){.flops = 2 * flops(op), .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_causal_conv = {
    .pure = true, .cheap = true, .infer = infer_causal_conv, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_causal_conv_grad = {
    .pure = true, .adds = 3, .infer = infer_causal_conv_grad, .cost = cost_grad};
