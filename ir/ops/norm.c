// Norms over the last `over` dimensions of x. Their statistics, one per row, are results, because
// the gradients need them.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

enum { AFFINE = 2 }; // Gain and bias, at most.

// Splits x into rows and what is normalised; false when `over` does not fit.
static bool split(MlirOperation op, MlirValue x, struct hec_tensor *rows,
                  struct hec_tensor *width) {
    if (!hec_expect_real(op, "x", x)) return false;
    const struct hec_tensor t = hec_tensor_at(x);
    const int64_t over = hec_any_over(op);
    if (over < 1 || over > t.rank)
        return hec_ir_error(op, "over is %" PRId64 ", but x has %d dimensions", over, t.rank);
    *rows = hec_slice(&t, 0, t.rank - (int)over);
    *width = hec_slice(&t, t.rank - (int)over, t.rank);
    return true;
}

// The gain, the bias: as many as the norm has; then null.
static MlirValue affine_of(MlirOperation op, int index) {
    switch (hec_op_of(op)) {
    case HEC_OP_layernorm:
        return hec_layernorm_affine(op, index);
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_NORM(id)                                                                               \
    case HEC_OP_##id:                                                                              \
        return index == 0 ? hec_##id##_gain(op) : (MlirValue){0};
#include "ir/ops.def"
#undef HEC_OP
    default:
        return (MlirValue){0};
    }
}

// Infers the types of y and of the rows' statistics.
static bool infer_norm(MlirOperation op, struct hec_tensor *rows) {
    struct hec_tensor width;
    if (!split(op, hec_norm_x(op), rows, &width)) return false;
    if (!(hec_any_eps(op) >= 0)) return hec_ir_error(op, "eps must not be negative");
    const int operands = (int)mlirOperationGetNumOperands(op);
    const int most = 1 + (hec_op_is(op, HEC_OP_layernorm) ? AFFINE : 1);
    if (operands > most)
        return hec_ir_error(op, "%d operands, expected at most %d", operands, most);
    for (int i = 0; i < operands - 1; i++) {
        if (!hec_expect(op, i == 0 ? "gain" : "bias", affine_of(op, i), &width)) return false;
    }
    return true;
}

static bool infer_plain(MlirOperation op, MlirType *result) {
    struct hec_tensor rows;
    if (!infer_norm(op, &rows)) return false;
    result[0] = mlirValueGetType(hec_norm_x(op));
    result[1] = hec_tensor_type(&rows);
    return true;
}

static bool infer_layernorm(MlirOperation op, MlirType *result) {
    struct hec_tensor rows;
    if (!infer_norm(op, &rows)) return false;
    result[0] = mlirValueGetType(hec_layernorm_x(op));
    result[1] = result[2] = hec_tensor_type(&rows);
    return true;
}

// Results: dx, then gradients of as many of gain and bias, `affine_most`, as are wanted.
static bool infer_grad(MlirOperation op, MlirType *result, MlirValue mean, MlirValue gain,
                       int affine_most) {
    struct hec_tensor rows, width;
    const MlirValue x = hec_norm_grad_x(op);
    if (!split(op, x, &rows, &width)) return false;
    const struct hec_tensor like = hec_tensor_at(x);
    if (!hec_expect(op, "dy", hec_norm_grad_dy(op), &like) ||
        (!mlirValueIsNull(mean) && !hec_expect(op, "mean", mean, &rows)) ||
        !hec_expect(op, "rstd", hec_norm_grad_rstd(op), &rows) ||
        (!mlirValueIsNull(gain) && !hec_expect(op, "gain", gain, &width)))
        return false;
    const int results = (int)mlirOperationGetNumResults(op);
    const int most = 1 + (mlirValueIsNull(gain) ? 0 : affine_most);
    if (results > most) return hec_ir_error(op, "%d results, expected at most %d", results, most);
    result[0] = mlirValueGetType(x);
    for (int i = 1; i < results; i++) result[i] = hec_tensor_type(&width);
    return true;
}

static bool infer_layernorm_grad(MlirOperation op, MlirType *result) {
    return infer_grad(op, result, hec_layernorm_grad_mean(op), hec_layernorm_grad_gain(op), AFFINE);
}

// One operation gives the gradients of x and of as many of gain and bias as are wanted, from the
// front: a wanted bias brings the gain's gradient along. `mean` may be null.
static void gradient(struct hec_gradient *g, MlirOperation op, enum hec_op id, MlirValue mean) {
    const MlirValue x = hec_norm_x(op), gain = affine_of(op, 0);
    MlirValue in[5];
    int operands = 0;
    in[operands++] = g->of(g, hec_norm_y(op), true);
    in[operands++] = g->primal(g, x);
    if (!mlirValueIsNull(mean)) in[operands++] = g->primal(g, mean);
    in[operands++] = g->primal(g, hec_norm_rstd(op));
    if (!mlirValueIsNull(gain)) in[operands++] = g->primal(g, gain);

    MlirValue to[1 + AFFINE] = {x};
    MlirType type[1 + AFFINE] = {mlirValueGetType(x)};
    int results = 1;
    for (int i = 0; i < AFFINE; i++) {
        to[1 + i] = affine_of(op, i);
        if (mlirValueIsNull(to[1 + i])) break;
        type[1 + i] = mlirValueGetType(to[1 + i]);
        if (g->wants(g, to[1 + i])) results = 2 + i;
    }
    const MlirNamedAttribute over = hec_attr_int(g->builder->context, "over", hec_any_over(op));
    const MlirOperation grad = hec_build_op(g->builder, id, operands, in, results, type, 1, &over);
    for (int i = 0; i < results; i++) hec_rule_add(g, to[i], hec_result(grad, i));
}

static void gradient_layernorm(struct hec_gradient *g, MlirOperation op) {
    gradient(g, op, HEC_OP_layernorm_grad, hec_layernorm_mean(op));
}

// Per element: square, add, scale, gain; twice that for the gradient.
static struct hec_cost cost(MlirOperation op) {
    return hec_cost_per_element(op, 4);
}

static struct hec_cost cost_grad(MlirOperation op) {
    return hec_cost_per_element(op, 8);
}

// Norms of one statistic.
#define HEC_OP(id, dialect, operands, results, attributes)
#define HEC_NORM(id)                                                                               \
    static void gradient_##id(struct hec_gradient *g, MlirOperation op) {                          \
        gradient(g, op, HEC_OP_##id##_grad, (MlirValue){0});                                       \
    }                                                                                              \
    static bool infer_##id##_grad(MlirOperation op, MlirType *result) {                            \
        return infer_grad(op, result, (MlirValue){0}, hec_##id##_grad_gain(op), 1);                \
    }                                                                                              \
    const struct hec_traits hec_traits_##id = {.pure = true,                                       \
                                               .cheap = true,                                      \
                                               .infer = infer_plain,                               \
                                               .gradient = gradient_##id,                          \
                                               .cost = cost};                                      \
    const struct hec_traits hec_traits_##id##_grad = {                                             \
        .pure = true, .adds = 3, .infer = infer_##id##_grad, .cost = cost_grad};
#include "ir/ops.def"
#undef HEC_OP

const struct hec_traits hec_traits_layernorm = {.pure = true,
                                                .cheap = true,
                                                .infer = infer_layernorm,
                                                .gradient = gradient_layernorm,
                                                .cost = cost};

const struct hec_traits hec_traits_layernorm_grad = {
    .pure = true, .adds = 7, .infer = infer_layernorm_grad, .cost = cost_grad};
