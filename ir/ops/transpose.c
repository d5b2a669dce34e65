// moe.transpose: the same elements with the dimensions in another order.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

static bool verify(MlirOperation op) {
    const struct hec_tensor a = hec_tensor_at(hec_transpose_a(op));
    const struct hec_tensor r = hec_tensor_at(hec_transpose_r(op));
    if (!hec_expect_real(op, "the operand", hec_transpose_a(op))) return false;
    bool same = mlirTypeEqual(a.element, r.element) && a.rank == r.rank;
    for (int i = 0; same && i < a.rank; i++) {
        const int at = hec_tensor_find(&r, a.dim[i]);
        same = at >= 0 && r.size[at] == a.size[i];
    }
    if (same) return true;
    return hec_ir_error(op, "%s does not have the dimensions of %s",
                        hec_type_text(hec_tensor_type(&r)).text,
                        hec_type_text(hec_tensor_type(&a)).text);
}

// A rounded copy of a parameter has a gradient of f32.
static void gradient(struct hec_gradient *g, MlirOperation op) {
    const MlirValue a = hec_transpose_a(op), dr = g->of(g, hec_transpose_r(op), true);
    g->add(g, a,
           hec_build_value(g->builder, HEC_OP_transpose, 1, &dr,
                           hec_type_unrounded(mlirValueGetType(a)), 0, NULL));
}

const struct hec_traits hec_traits_transpose = {
    .pure = true, .cheap = true, .adds = 1, .verify = verify, .gradient = gradient};
