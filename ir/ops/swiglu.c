// moe.swiglu and moe.gathered_swiglu: two GEMMs of an expert's rows, silu of one times the other, times a number for
// each row.
#include "ir/accessors.h"
#include "ir/ops/contract.h"
#include "ir/ops/rule.h"

static bool check_first(MlirOperation op, const struct hec_tensor *b) {
    const struct hec_tensor first = hec_vector(hec_i32(op), HEC_STR("first"), b->size[0] + 1);
    return hec_expect(op, "first", hec_gated_product_first(op), &first);
}

// a [rows, K..], b and c [E, K.., N..], scale [rows], results [rows, N..].
static bool verify(MlirOperation op) {
    const struct hec_tensor a = hec_rows_at(op, hec_gated_product_a(op)),
                            b = hec_tensor_at(hec_gated_product_b(op)),
                            r = hec_tensor_at(hec_gated_product_gated(op));
    if (!hec_expect_real(op, "a", hec_gated_product_a(op)) || !hec_expect_rank(op, "a", &a, 1) ||
        !hec_expect_rank(op, "gated", &r, 1))
        return false;
    if (b.rank != a.rank + r.rank - 1)
        return hec_ir_error(
            op, "b is %s, expected the experts' dimension, a's columns and those of gated",
            hec_type_text(hec_tensor_type(&b)).text);
    const struct hec_tensor k = hec_slice(&a, 1, a.rank), n = hec_slice(&r, 1, r.rank);
    struct hec_tensor weights = hec_slice(&b, 0, 1);
    weights.element = a.element;
    weights = hec_join(&weights, &k);
    weights = hec_join(&weights, &n);
    const struct hec_tensor rows = hec_vector(a.element, HEC_STR("rows"), a.size[0]);
    const struct hec_tensor result = hec_join(&rows, &n);
    if (!mlirStringRefEqual(a.dim[0], rows.dim[0]))
        return hec_ir_error(op, "a must start with rows, or be of the route's tokens");
    return hec_expect(op, "b", hec_gated_product_b(op), &weights) &&
           hec_expect(op, "c", hec_gated_product_c(op), &weights) &&
           hec_expect(op, "ab", hec_gated_product_ab(op), &result) &&
           hec_expect(op, "ac", hec_gated_product_ac(op), &result) &&
           hec_expect(op, "gated", hec_gated_product_gated(op), &result) &&
           hec_expect(op, "scale", hec_gated_product_scale(op), &rows) && check_first(op, &b);
}

static bool verify_gathered(MlirOperation op) {
    struct hec_tensor pair, slot;
    return hec_check_route(op, &pair, &slot) && verify(op);
}

static void gradient(struct hec_gradient *g, MlirOperation op) {
    (void)g;
    hec_ir_error(op, "has no gradient; fuse-swiglu must run behind differentiate");
}

// Beside two GEMMs, elementwise work costs nothing.
static struct hec_cost cost(MlirOperation op) {
    const struct hec_tensor b = hec_tensor_at(hec_gated_product_b(op)),
                            a = hec_rows_at(op, hec_gated_product_a(op));
    const double weights = (double)hec_type_elements(hec_tensor_type(&b)) / (double)b.size[0];
    return (struct hec_cost){.flops = 4 * (double)a.size[0] * weights, .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_swiglu = {
    .pure = true, .verify = verify, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_gathered_swiglu = {
    .pure = true, .verify = verify_gathered, .gradient = gradient, .cost = cost};
