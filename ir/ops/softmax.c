// moe.softmax over the last `over` dimensions, and its gradient, which is made of the result.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

static bool check(MlirOperation op, const char *what, MlirValue value) {
    if (!hec_expect_real(op, what, value)) return false;
    const int rank = hec_tensor_at(value).rank;
    const int64_t over = hec_any_over(op);
    if (over >= 1 && over <= rank) return true;
    return hec_ir_error(op, "over is %" PRId64 ", but %s has %d dimensions", over, what, rank);
}

static bool infer_softmax(MlirOperation op, MlirType *result) {
    const MlirValue a = hec_softmax_a(op);
    if (!check(op, "a", a)) return false;
    result[0] = mlirValueGetType(a);
    return true;
}

static bool infer_softmax_grad(MlirOperation op, MlirType *result) {
    const MlirValue r = hec_softmax_grad_r(op);
    if (!check(op, "r", r)) return false;
    const struct hec_tensor like = hec_tensor_at(r);
    if (!hec_expect(op, "dr", hec_softmax_grad_dr(op), &like)) return false;
    result[0] = mlirValueGetType(r);
    return true;
}

static void gradient(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_softmax_a(op), r = hec_softmax_r(op);
    const MlirValue in[] = {g->of(g, r, true), g->primal(g, r)};
    const MlirNamedAttribute over = hec_attr_int(g->builder->context, "over", hec_any_over(op));
    g->add(g, a,
           hec_build_value(g->builder, HEC_OP_softmax_grad, 2, in, mlirValueGetType(a), 1, &over));
}

// Per element: maximum, difference, exponential, sum, factor.
static struct hec_cost cost(MlirOperation op) {
    return hec_cost_per_element(op, 5);
}

// Product, sum, difference, product.
static struct hec_cost cost_grad(MlirOperation op) {
    return hec_cost_per_element(op, 4);
}

const struct hec_traits hec_traits_softmax = {
    .pure = true, .cheap = true, .infer = infer_softmax, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_softmax_grad = {
    .pure = true, .adds = 1, .infer = infer_softmax_grad, .cost = cost_grad};
