// Experts as one operation, and the operations of group-experts: rows of tokens ordered by expert,
// and the way there and back. Movement is its own gradient in the other direction.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

#include <assert.h>

// ids and weights [tokens.., picks]; x [tokens.., width..].
static bool check_picks(MlirOperation op, const char *what, const struct hec_tensor *t) {
    if (t->rank >= 2 && mlirStringRefEqual(t->dim[t->rank - 1], HEC_STR("picks"))) return true;
    return hec_ir_error(op, "%s is %s, expected the tokens' dimensions and top-k choices", what,
                        hec_type_text(hec_tensor_type(t)).text);
}

static bool infer_experts(MlirOperation op, MlirType *result) {
    const struct hec_tensor x = hec_tensor_at(hec_experts_x(op)),
                            weights = hec_tensor_at(hec_experts_weights(op));
    if (!hec_expect_real(op, "x", hec_experts_x(op)) || !check_picks(op, "weights", &weights)) {
        return false;
    }
    const struct hec_tensor tokens = hec_slice(&weights, 0, weights.rank - 1);
    const struct hec_tensor lead = hec_slice(&x, 0, x.rank < tokens.rank ? x.rank : tokens.rank);
    const struct hec_tensor real = hec_with_element(&weights, x.element);
    const struct hec_tensor ids = hec_with_element(&weights, hec_i32(op));
    if (!hec_same_dims(&lead, &tokens))
        return hec_ir_error(op, "x is %s, but the weights are for other tokens",
                            hec_type_text(hec_tensor_type(&x)).text);
    if (!hec_expect(op, "weights", hec_experts_weights(op), &real) ||
        !hec_expect(op, "ids", hec_experts_ids(op), &ids)) {
        return false;
    }
    result[0] = mlirValueGetType(hec_experts_x(op));
    return true;
}

bool hec_check_capacity(MlirOperation op) {
    const MlirStringRef drop = hec_any_drop(op);
    if (!hec_check_group(op)) return false;
    if (!(hec_any_capacity(op) > 0))
        return hec_ir_error(op, "capacity is %g", hec_any_capacity(op));
    if (mlirStringRefEqual(drop, HEC_STR("lowest")) ||
        mlirStringRefEqual(drop, HEC_STR("position"))) {
        return true;
    }
    return hec_ir_error(op, "drop is \"%.*s\"", (int)drop.length, drop.data);
}

static bool verify_experts(MlirOperation op) {
    const MlirOperation module = hec_module_of(op);
    const MlirStringRef set = hec_any_set(op), expert = hec_any_expert(op);
    const MlirOperation of_set = hec_find_symbol(module, set);
    if (!hec_op_is(of_set, HEC_OP_set))
        return hec_ir_error(op, "there is no moe.set @%.*s", (int)set.length, set.data);
    if (!hec_op_is(hec_find_symbol(module, expert), HEC_OP_FUNC))
        return hec_ir_error(op, "there is no function @%.*s", (int)expert.length, expert.data);
    const struct hec_tensor weights = hec_tensor_at(hec_experts_weights(op));
    if (weights.size[weights.rank - 1] != hec_any_topk(of_set))
        return hec_ir_error(op, "%" PRId64 " choices, but the set's topk is %" PRId64,
                            weights.size[weights.rank - 1], hec_any_topk(of_set));
    return !hec_any_has_capacity(op) || hec_check_capacity(op);
}

static void gradient_experts(struct hec_gradient *g, MlirOperation op) {
    (void)g;
    hec_ir_error(op, "has no gradient; group-experts must run before differentiate");
}

const struct hec_traits hec_traits_experts = {
    .pure = true, .infer = infer_experts, .verify = verify_experts, .gradient = gradient_experts};

static bool infer_route(MlirOperation op, MlirType *result) {
    const struct hec_tensor ids = hec_tensor_at(hec_route_ids(op)),
                            want = hec_with_element(&ids, hec_i32(op));
    if (!hec_expect(op, "ids", hec_route_ids(op), &want) || !check_picks(op, "ids", &ids) ||
        !hec_expect_int(op, "experts", 1)) {
        return false;
    }
    const int64_t rows = hec_type_elements(mlirValueGetType(hec_route_ids(op)));
    const struct hec_tensor first =
        hec_vector(hec_i32(op), HEC_STR("first"), hec_any_experts(op) + 1);
    const struct hec_tensor pair = hec_vector(hec_i32(op), HEC_STR("rows"), rows);
    result[0] = hec_tensor_type(&first);
    result[1] = hec_tensor_type(&pair);
    result[2] = mlirValueGetType(hec_route_ids(op));
    return true;
}

const struct hec_traits hec_traits_route = {.pure = true, .infer = infer_route};

bool hec_check_route(MlirOperation op, struct hec_tensor *pair, struct hec_tensor *slot) {
    const MlirValue slots = hec_routed_slot(op);
    *slot = hec_tensor_at(slots);
    const struct hec_tensor want = hec_with_element(slot, hec_i32(op));
    if (!hec_expect(op, "slot", slots, &want) || !check_picks(op, "slot", slot)) {
        return false;
    }
    *pair = hec_vector(hec_i32(op), HEC_STR("rows"), hec_type_elements(mlirValueGetType(slots)));
    return hec_expect(op, "pair", hec_routed_pair(op), pair);
}

static bool infer_limit(MlirOperation op, MlirType *result) {
    const struct hec_tensor weights = hec_tensor_at(hec_limit_weights(op)),
                            first = hec_tensor_at(hec_limit_first(op));
    const struct hec_tensor ids = hec_with_element(&weights, hec_i32(op));
    const struct hec_tensor want =
        hec_vector(hec_i32(op), HEC_STR("first"), first.rank ? first.size[0] : 0);
    const struct hec_tensor pair =
        hec_vector(hec_i32(op), HEC_STR("rows"), hec_type_elements(hec_tensor_type(&ids)));
    if (!hec_expect_real(op, "weights", hec_limit_weights(op)) ||
        !check_picks(op, "weights", &weights) ||
        !hec_expect(op, "first", hec_limit_first(op), &want) ||
        !hec_expect(op, "pair", hec_limit_pair(op), &pair) ||
        !hec_expect(op, "slot", hec_limit_slot(op), &ids) || !hec_check_capacity(op)) {
        return false;
    }
    result[0] = mlirValueGetType(hec_limit_first(op));
    result[1] = mlirValueGetType(hec_limit_pair(op));
    result[2] = mlirValueGetType(hec_limit_slot(op));
    return true;
}

const struct hec_traits hec_traits_limit = {.pure = true, .infer = infer_limit};

static bool infer_permute(MlirOperation op, MlirType *result) {
    const struct hec_tensor x = hec_tensor_at(hec_permute_x(op));
    struct hec_tensor pair, slot;
    if (!hec_expect_real(op, "x", hec_permute_x(op)) || !hec_check_route(op, &pair, &slot)) {
        return false;
    }
    const struct hec_tensor tokens = hec_slice(&slot, 0, slot.rank - 1);
    const struct hec_tensor lead = hec_slice(&x, 0, x.rank < tokens.rank ? x.rank : tokens.rank);
    if (!hec_same_dims(&lead, &tokens))
        return hec_ir_error(op, "x is %s, but the route is of other tokens",
                            hec_type_text(hec_tensor_type(&x)).text);
    const struct hec_tensor width = hec_slice(&x, tokens.rank, x.rank);
    const struct hec_tensor rows = hec_with_element(&pair, x.element);
    const struct hec_tensor r = hec_join(&rows, &width);
    result[0] = hec_tensor_type(&r);
    return true;
}

static bool infer_combine(MlirOperation op, MlirType *result) {
    const struct hec_tensor rows = hec_tensor_at(hec_combine_rows(op));
    struct hec_tensor pair, slot;
    if (!hec_expect_real(op, "rows", hec_combine_rows(op)) || !hec_check_route(op, &pair, &slot) ||
        !hec_expect_rank(op, "rows", &rows, 1)) {
        return false;
    }
    const struct hec_tensor lead = hec_slice(&rows, 0, 1);
    if (!hec_same_dims(&lead, &pair))
        return hec_ir_error(op, "rows is %s, but the route has %" PRId64 " rows",
                            hec_type_text(hec_tensor_type(&rows)).text, pair.size[0]);
    const struct hec_tensor width = hec_slice(&rows, 1, rows.rank);
    struct hec_tensor y = hec_slice(&slot, 0, slot.rank - 1);
    if (y.rank + width.rank > HEC_IR_RANK_MAX)
        return hec_ir_error(op, "the result has more than %d dimensions", HEC_IR_RANK_MAX);
    y = hec_join(&y, &width);
    y.element = rows.element;
    result[0] = hec_tensor_type(&y);
    return true;
}

static bool infer_gate_rows(MlirOperation op, MlirType *result) {
    struct hec_tensor pair, slot;
    if (!hec_expect_real(op, "weights", hec_gate_rows_weights(op)) ||
        !hec_check_route(op, &pair, &slot)) {
        return false;
    }
    const struct hec_tensor given = hec_tensor_at(hec_gate_rows_weights(op));
    const struct hec_tensor weights = hec_with_element(&slot, given.element);
    if (!hec_expect(op, "weights", hec_gate_rows_weights(op), &weights)) return false;
    const struct hec_tensor g = hec_with_element(&pair, given.element);
    result[0] = hec_tensor_type(&g);
    return true;
}

static bool infer_gate_rows_grad(MlirOperation op, MlirType *result) {
    struct hec_tensor pair, slot;
    if (!hec_expect_real(op, "dg", hec_gate_rows_grad_dg(op)) ||
        !hec_check_route(op, &pair, &slot)) {
        return false;
    }
    const struct hec_tensor given = hec_tensor_at(hec_gate_rows_grad_dg(op));
    const struct hec_tensor dg = hec_with_element(&pair, given.element);
    if (!hec_expect(op, "dg", hec_gate_rows_grad_dg(op), &dg)) return false;
    const struct hec_tensor dweights = hec_with_element(&slot, given.element);
    result[0] = hec_tensor_type(&dweights);
    return true;
}

// The gradient of an operation that moves `v` to `moved`: the operation `id` of the result's gradient, by the same
// route, so of the same rows.
static void gradient(struct hec_gradient *g, MlirOperation op, MlirValue v, MlirValue moved,
                     enum hec_op id) {
    if (!g->wants(g, v)) return;
    const MlirValue in[] = {g->of(g, moved, true), g->primal(g, hec_routed_pair(op)),
                            g->primal(g, hec_routed_slot(op))};
    MlirNamedAttribute rows;
    const int attributes = hec_rows_attr(hec_get_attr(op, HEC_ROWS_OF), &rows);
    const MlirOperation built = hec_build_inferred(g->builder, id, 3, in, attributes, &rows);
    assert(!mlirOperationIsNull(built)); // Its operands are those of `op`, or of their types.
    hec_rule_add(g, v, hec_result(built, 0));
}

static void gradient_permute(struct hec_gradient *g, MlirOperation op) {
    gradient(g, op, hec_permute_x(op), hec_permute_rows(op), HEC_OP_combine);
}

static void gradient_combine(struct hec_gradient *g, MlirOperation op) {
    gradient(g, op, hec_combine_rows(op), hec_combine_y(op), HEC_OP_permute);
}

static void gradient_gate_rows(struct hec_gradient *g, MlirOperation op) {
    gradient(g, op, hec_gate_rows_weights(op), hec_gate_rows_g(op), HEC_OP_gate_rows_grad);
}

static struct hec_cost cost_combine(MlirOperation op) {
    return hec_cost_per_element(op, 1);
}

const struct hec_traits hec_traits_permute = {
    .pure = true, .infer = infer_permute, .gradient = gradient_permute};

const struct hec_traits hec_traits_combine = {.pure = true,
                                              .adds = 1,
                                              .infer = infer_combine,
                                              .gradient = gradient_combine,
                                              .cost = cost_combine};

const struct hec_traits hec_traits_gate_rows = {
    .pure = true, .infer = infer_gate_rows, .gradient = gradient_gate_rows};

const struct hec_traits hec_traits_gate_rows_grad = {.pure = true, .infer = infer_gate_rows_grad};
