// Norms over the last `over` dimensions of x. Their statistics, one per row, are results, because
// the gradients need them.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

// Splits x into rows and what is normalised; false when `over` does not fit.
static bool split(MlirOperation op, int x_operand, struct hec_tensor *rows,
                  struct hec_tensor *width) {
    const struct hec_tensor x = hec_in(op, x_operand);
    const int64_t over = hec_any_over(op);
    if (!hec_expect_real(op, "x", hec_operand(op, x_operand))) return false;
    if (over < 1 || over > x.rank) {
        hec_ir_error(op, "over is %" PRId64 ", but x has %d dimensions", over, x.rank);
        return false;
    }
    *rows = hec_slice(&x, 0, x.rank - (int)over);
    *width = hec_slice(&x, x.rank - (int)over, x.rank);
    return true;
}

// Results: y like x, then `statistics` of them per row. Operands from 1 on are like the width.
static bool infer_norm(MlirOperation op, MlirType *result, int statistics, int affine_most) {
    struct hec_tensor rows, width;
    if (!split(op, 0, &rows, &width)) return false;
    if (!(hec_any_eps(op) >= 0)) {
        hec_ir_error(op, "eps must not be negative");
        return false;
    }
    const int operands = (int)mlirOperationGetNumOperands(op);
    if (operands > 1 + affine_most) {
        hec_ir_error(op, "%d operands, expected at most %d", operands, 1 + affine_most);
        return false;
    }
    for (int i = 1; i < operands; i++) {
        if (!hec_expect(op, i == 1 ? "gain" : "bias", hec_operand(op, i), &width)) return false;
    }
    result[0] = mlirValueGetType(hec_operand(op, 0));
    for (int i = 0; i < statistics; i++) result[1 + i] = hec_tensor_type(&rows);
    return true;
}

static bool infer_rmsnorm(MlirOperation op, MlirType *result) {
    return infer_norm(op, result, 1, 1);
}

static bool infer_layernorm(MlirOperation op, MlirType *result) {
    return infer_norm(op, result, 2, 2);
}

// Operands dy, x, statistics per row, gain?; results dx, then gradients of gain (and bias).
static bool infer_grad(MlirOperation op, MlirType *result, int statistics, int affine_most) {
    struct hec_tensor rows, width;
    if (!split(op, 1, &rows, &width)) return false;
    const struct hec_tensor x = hec_in(op, 1);
    if (!hec_expect(op, "dy", hec_operand(op, 0), &x)) return false;
    for (int i = 0; i < statistics; i++) {
        if (!hec_expect(op, statistics == 2 && i == 0 ? "mean" : "rstd", hec_operand(op, 2 + i),
                        &rows)) {
            return false;
        }
    }
    const bool gain = mlirOperationGetNumOperands(op) > 2 + statistics;
    if (gain && !hec_expect(op, "gain", hec_operand(op, 2 + statistics), &width)) return false;
    const int results = (int)mlirOperationGetNumResults(op);
    if (results > 1 + (gain ? affine_most : 0)) {
        hec_ir_error(op, "%d results, expected at most %d", results, 1 + (gain ? affine_most : 0));
        return false;
    }
    result[0] = mlirValueGetType(hec_operand(op, 1));
    for (int i = 1; i < results; i++) result[i] = hec_tensor_type(&width);
    return true;
}

static bool infer_rmsnorm_grad(MlirOperation op, MlirType *result) {
    return infer_grad(op, result, 1, 1);
}

static bool infer_layernorm_grad(MlirOperation op, MlirType *result) {
    return infer_grad(op, result, 2, 2);
}

// One operation gives the gradients of x and of as many of gain and bias as are wanted, from the
// front: a wanted bias brings the gain's gradient along.
static void gradient(struct hec_gradient *g, MlirOperation op, enum hec_op id, int statistics) {
    const int affine = (int)mlirOperationGetNumOperands(op) - 1;
    const MlirValue x = hec_operand(op, 0);
    MlirValue in[5];
    int operands = 0, results = 1;
    in[operands++] = g->of_result(g, op, 0, true);
    in[operands++] = g->primal(g, x);
    for (int i = 0; i < statistics; i++) in[operands++] = g->primal(g, hec_result(op, 1 + i));
    if (affine > 0) in[operands++] = g->primal(g, hec_operand(op, 1));

    MlirType type[3] = {mlirValueGetType(x)};
    for (int i = 1; i <= affine; i++) {
        type[i] = mlirValueGetType(hec_operand(op, i));
        if (g->wants(g, hec_operand(op, i))) results = i + 1;
    }
    const MlirNamedAttribute over = hec_attr_int(g->builder->context, "over", hec_any_over(op));
    const MlirOperation grad = hec_build_op(g->builder, id, operands, in, results, type, 1, &over);
    for (int i = 0; i < results; i++) {
        hec_rule_add(g, hec_operand(op, i), hec_result(grad, i));
    }
}

static void gradient_rmsnorm(struct hec_gradient *g, MlirOperation op) {
    gradient(g, op, HEC_OP_rmsnorm_grad, 1);
}

static void gradient_layernorm(struct hec_gradient *g, MlirOperation op) {
    gradient(g, op, HEC_OP_layernorm_grad, 2);
}

// Per element: square, add, scale, gain; twice that for the gradient.
static struct hec_cost cost(MlirOperation op) {
    return hec_cost_per_element(op, 4);
}

static struct hec_cost cost_grad(MlirOperation op) {
    return hec_cost_per_element(op, 8);
}

const struct hec_traits hec_traits_rmsnorm = {
    .pure = true, .infer = infer_rmsnorm, .gradient = gradient_rmsnorm, .cost = cost};

const struct hec_traits hec_traits_layernorm = {
    .pure = true, .infer = infer_layernorm, .gradient = gradient_layernorm, .cost = cost};

const struct hec_traits hec_traits_rmsnorm_grad = {
    .pure = true, .adds = 3, .infer = infer_rmsnorm_grad, .cost = cost_grad};

const struct hec_traits hec_traits_layernorm_grad = {
    .pure = true, .adds = 7, .infer = infer_layernorm_grad, .cost = cost_grad};
