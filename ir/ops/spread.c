// moe.spread and moe.spread_grad: a vector per expert, to and from the rows of that expert.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

// `experts` [E, F...] and `rows` [rows, F...] must fit, and `first` be [first] with E + 1 entries.
static bool check(MlirOperation op, const struct hec_tensor *experts, const struct hec_tensor *rows,
                  MlirValue first) {
    if (!hec_expect_rank(op, "the tensor by expert", experts, 1) ||
        !hec_expect_rank(op, "the tensor by rows", rows, 1)) {
        return false;
    }
    const struct hec_tensor tail = hec_slice(experts, 1, experts->rank);
    const struct hec_tensor row_tail = hec_slice(rows, 1, rows->rank);
    if (!mlirStringRefEqual(rows->dim[0], HEC_STR("rows")) || !hec_same_dims(&tail, &row_tail) ||
        !mlirTypeEqual(tail.element, row_tail.element))
        return hec_ir_error(op, "%s and %s are not a vector per expert and per row",
                            hec_type_text(hec_tensor_type(experts)).text,
                            hec_type_text(hec_tensor_type(rows)).text);
    const struct hec_tensor want = hec_vector(hec_i32(op), HEC_STR("first"), experts->size[0] + 1);
    return hec_expect(op, "first", first, &want);
}

static bool verify_spread(MlirOperation op) {
    const struct hec_tensor a = hec_tensor_at(hec_spread_a(op)),
                            r = hec_tensor_at(hec_spread_r(op));
    return hec_expect_real(op, "a", hec_spread_a(op)) && check(op, &a, &r, hec_spread_first(op));
}

static bool verify_spread_grad(MlirOperation op) {
    const struct hec_tensor dr = hec_tensor_at(hec_spread_grad_dr(op)),
                            da = hec_tensor_at(hec_spread_grad_da(op));
    return hec_expect_real(op, "dr", hec_spread_grad_dr(op)) &&
           check(op, &da, &dr, hec_spread_grad_first(op));
}

static void gradient(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_spread_a(op);
    if (!g->wants(g, a)) return;
    const MlirValue in[] = {g->of(g, hec_spread_r(op), true), g->primal(g, hec_spread_first(op))};
    g->add(g, a,
           hec_build_value(g->builder, HEC_OP_spread_grad, 2, in, mlirValueGetType(a), 0, NULL));
}

static struct hec_cost cost_grad(MlirOperation op) {
    return hec_cost_per_element(op, 1);
}

const struct hec_traits hec_traits_spread = {
    .pure = true, .cheap = true, .adds = 1, .verify = verify_spread, .gradient = gradient};

const struct hec_traits hec_traits_spread_grad = {
    .pure = true, .adds = 1, .verify = verify_spread_grad, .cost = cost_grad};
