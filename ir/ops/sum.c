// moe.sum and moe.copy.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

static bool verify_sum(MlirOperation op) {
    const struct hec_tensor a = hec_tensor_at(hec_sum_a(op)), r = hec_tensor_at(hec_sum_r(op));
    if (!hec_expect_real(op, "the operand", hec_sum_a(op))) return false;
    if (!mlirTypeEqual(a.element, r.element))
        return hec_ir_error(op, "operand and result differ in their element type");
    int previous = -1;
    for (int i = 0; i < r.rank; i++) {
        const int at = hec_tensor_find(&a, r.dim[i]);
        if (at <= previous || a.size[at] != r.size[i])
            return hec_ir_error(op,
                                "the result's dimension %.*s is not in its place in the operand",
                                (int)r.dim[i].length, r.dim[i].data);
        previous = at;
    }
    return true;
}

// Every summand gets the gradient of the sum.
static void gradient_sum(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_sum_a(op);
    const MlirValue zero = hec_build_fill(g->builder, mlirValueGetType(a), 0);
    const MlirValue in[] = {zero, g->of(g, hec_sum_r(op), true)};
    hec_rule_add(g, a, hec_rule_build(g, HEC_OP_add, 2, in));
}

static struct hec_cost cost_sum(MlirOperation op) {
    return hec_cost_per_element(op, 1);
}

const struct hec_traits hec_traits_sum = {
    .pure = true, .adds = 1, .verify = verify_sum, .gradient = gradient_sum, .cost = cost_sum};

static bool infer_copy(MlirOperation op, MlirType *result) {
    result[0] = mlirValueGetType(hec_copy_a(op));
    return true;
}

// Not pure: a copy exists to be another buffer, so it must not be merged with its operand's.
const struct hec_traits hec_traits_copy = {.infer = infer_copy};
