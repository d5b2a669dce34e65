// Elementwise operations. Dimensions are matched by name: the result has the dimensions of the
// operand with the most of them (the first of those), and the others are broadcast along what they
// lack. The gradient of a broadcast operand is summed back.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

// Every dimension of `t` must be one of `widest`, in the same order.
static bool check_within(MlirOperation op, const struct hec_tensor *t,
                         const struct hec_tensor *widest) {
    int previous = -1;
    for (int i = 0; i < t->rank; i++) {
        const int at = hec_tensor_find(widest, t->dim[i]);
        const int length = (int)t->dim[i].length;
        const char *dim = t->dim[i].data;
        if (at < 0)
            return hec_ir_error(op, "no operand has all dimensions: %s lacks %.*s",
                                hec_type_text(hec_tensor_type(widest)).text, length, dim);
        if (widest->size[at] != t->size[i])
            return hec_ir_error(op, "dimension %.*s has the sizes %" PRId64 " and %" PRId64, length,
                                dim, widest->size[at], t->size[i]);
        if (at < previous)
            return hec_ir_error(op,
                                "not yet: the operands have their dimensions in another order: "
                                "%s and %s",
                                hec_type_text(hec_tensor_type(widest)).text,
                                hec_type_text(hec_tensor_type(t)).text);
        previous = at;
    }
    return true;
}

static bool infer(MlirOperation op, MlirType *result) {
    const int operands = (int)mlirOperationGetNumOperands(op);
    struct hec_tensor widest = {0};
    for (int i = 0; i < operands; i++) {
        if (!hec_expect_real(op, "an operand", hec_operand(op, i))) return false;
        const struct hec_tensor t = hec_tensor_at(hec_operand(op, i));
        if (i == 0 || t.rank > widest.rank) widest = t;
    }
    for (int i = 0; i < operands; i++) {
        const struct hec_tensor t = hec_tensor_at(hec_operand(op, i));
        if (!mlirTypeEqual(t.element, widest.element))
            return hec_ir_error(op, "operands of f32 and f64");
        if (!check_within(op, &t, &widest)) return false;
    }
    result[0] = hec_tensor_type(&widest);
    return true;
}

static struct hec_cost cost(MlirOperation op) {
    const MlirType type = mlirValueGetType(hec_result(op, 0));
    return (struct hec_cost){.flops = (double)hec_type_elements(type), .bytes = hec_io_bytes(op)};
}

static MlirValue result_gradient(struct hec_gradient *g, MlirOperation op) {
    return g->of(g, hec_result(op, 0), true);
}

static MlirValue build2(struct hec_gradient *g, enum hec_op id, MlirValue a, MlirValue b) {
    return hec_rule_build(g, id, 2, (MlirValue[]){a, b});
}

static MlirValue build_neg(struct hec_gradient *g, MlirValue a) {
    return hec_rule_build(g, HEC_OP_neg, 1, &a);
}

static void gradient_add(struct hec_gradient *g, MlirOperation op) {
    const MlirValue dr = result_gradient(g, op);
    hec_rule_add(g, hec_add_a(op), dr);
    hec_rule_add(g, hec_add_b(op), dr);
}

static void gradient_sub(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_sub_a(op), b = hec_sub_b(op), dr = result_gradient(g, op);
    hec_rule_add(g, a, dr);
    if (g->wants(g, b)) hec_rule_add(g, b, build_neg(g, dr));
}

static void gradient_mul(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_mul_a(op), b = hec_mul_b(op), dr = result_gradient(g, op);
    if (g->wants(g, a)) hec_rule_add(g, a, build2(g, HEC_OP_mul, dr, g->primal(g, b)));
    if (g->wants(g, b)) hec_rule_add(g, b, build2(g, HEC_OP_mul, dr, g->primal(g, a)));
}

// r = a / b: da = dr / b, db = -da r.
static void gradient_div(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_div_a(op), b = hec_div_b(op);
    const MlirValue da = build2(g, HEC_OP_div, result_gradient(g, op), g->primal(g, b));
    hec_rule_add(g, a, da);
    if (!g->wants(g, b)) return;
    const MlirValue r = g->primal(g, hec_div_r(op));
    hec_rule_add(g, b, build_neg(g, build2(g, HEC_OP_mul, da, r)));
}

// The gradient that reaches `v` where it is less than `other` (or, where larger wins, more): all of it; half of ties.
static void choose(struct hec_gradient *g, MlirValue dr, MlirValue v, MlirValue other,
                   bool smaller) {
    if (!g->wants(g, v)) return;
    const MlirValue own = g->primal(g, v), rival = g->primal(g, other);
    const MlirValue in[] = {smaller ? own : rival, smaller ? rival : own, dr};
    hec_rule_add(g, v, hec_rule_build(g, HEC_OP_select_less, 3, in));
}

// The gradient goes to the operand that was chosen; to both, halved, where they are equal.
static void gradient_choice(struct hec_gradient *g, MlirOperation op, bool smaller) {
    const MlirValue a = hec_arithmetic_a(op), b = hec_arithmetic_b(op);
    const MlirValue dr = result_gradient(g, op);
    choose(g, dr, a, b, smaller);
    choose(g, dr, b, a, smaller);
}

static void gradient_minimum(struct hec_gradient *g, MlirOperation op) {
    gradient_choice(g, op, true);
}

static void gradient_maximum(struct hec_gradient *g, MlirOperation op) {
    gradient_choice(g, op, false);
}

static void gradient_neg(struct hec_gradient *g, MlirOperation op) {
    hec_rule_add(g, hec_neg_a(op), build_neg(g, result_gradient(g, op)));
}

static void gradient_exp(struct hec_gradient *g, MlirOperation op) {
    const MlirValue r = g->primal(g, hec_exp_r(op));
    hec_rule_add(g, hec_exp_a(op), build2(g, HEC_OP_mul, result_gradient(g, op), r));
}

// r = sqrt(a): da = dr / (r + r).
static void gradient_sqrt(struct hec_gradient *g, MlirOperation op) {
    const MlirValue r = g->primal(g, hec_sqrt_r(op));
    const MlirValue twice = build2(g, HEC_OP_add, r, r);
    hec_rule_add(g, hec_sqrt_a(op), build2(g, HEC_OP_div, result_gradient(g, op), twice));
}

// r = b tanh(a / b): da = dr (1 - tanh(a / b)^2), db = (dr r - da a) / b.
static void gradient_softcap(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_softcap_a(op), b = hec_softcap_b(op), dr = result_gradient(g, op);
    const MlirValue in[] = {dr, g->primal(g, a), g->primal(g, b)};
    const MlirValue da = hec_rule_build(g, HEC_OP_softcap_grad, 3, in);
    hec_rule_add(g, a, da);
    if (!g->wants(g, b)) return;
    const MlirValue r = build2(g, HEC_OP_mul, dr, g->primal(g, hec_softcap_r(op)));
    const MlirValue db = build2(g, HEC_OP_sub, r, build2(g, HEC_OP_mul, da, in[1]));
    hec_rule_add(g, b, build2(g, HEC_OP_div, db, in[2]));
}

#define BINARY(id)                                                                                 \
    const struct hec_traits hec_traits_##id = {.pure = true,                                       \
                                               .elementwise = true,                                \
                                               .in_place = 3,                                      \
                                               .infer = infer,                                     \
                                               .gradient = gradient_##id,                          \
                                               .cost = cost}
BINARY(add);
BINARY(sub);
BINARY(mul);
BINARY(div);
BINARY(minimum);
BINARY(maximum);
BINARY(softcap);

#define UNARY(id)                                                                                  \
    const struct hec_traits hec_traits_##id = {.pure = true,                                       \
                                               .elementwise = true,                                \
                                               .in_place = 1,                                      \
                                               .infer = infer,                                     \
                                               .gradient = gradient_##id,                          \
                                               .cost = cost}
UNARY(neg);
UNARY(exp);
UNARY(sqrt);

// Activations: the gradient is an operation of its own, of the result's gradient and the operand.
#define ACTIVATION(id)                                                                             \
    static void gradient_##id(struct hec_gradient *g, MlirOperation op) {                          \
        const MlirValue a = hec_##id##_a(op), dr = result_gradient(g, op);                         \
        hec_rule_add(g, a, build2(g, HEC_OP_##id##_grad, dr, g->primal(g, a)));                    \
    }                                                                                              \
    UNARY(id);                                                                                     \
    const struct hec_traits hec_traits_##id##_grad = {                                             \
        .pure = true, .elementwise = true, .in_place = 3, .infer = infer, .cost = cost}
ACTIVATION(silu);
ACTIVATION(gelu);
ACTIVATION(gelu_erf);
ACTIVATION(relu);
ACTIVATION(softplus);
ACTIVATION(sigmoid);
ACTIVATION(tanh);

#define OF_THREE(id)                                                                               \
    const struct hec_traits hec_traits_##id = {                                                    \
        .pure = true, .elementwise = true, .in_place = 7, .infer = infer, .cost = cost}
OF_THREE(select_less);
OF_THREE(softcap_grad);

static bool verify_fill(MlirOperation op) {
    return hec_expect_real(op, "the result", hec_fill_r(op));
}

const struct hec_traits hec_traits_fill = {
    .pure = true, .elementwise = true, .verify = verify_fill};
