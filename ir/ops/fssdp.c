// Movement: of experts, keyed by set and layer, asynchronous, without values of their own; and of
// rows to the ranks that hold their experts, wave by wave.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

static MlirOperation set_of(MlirOperation op) {
    return hec_find_symbol(hec_module_of(op), hec_any_set(op));
}

static bool verify(MlirOperation op) {
    const MlirStringRef name = hec_any_set(op);
    if (hec_op_is(set_of(op), HEC_OP_set)) return true;
    return hec_ir_error(op, "there is no moe.set @%.*s", (int)name.length, name.data);
}

// The key names a set that exists, and one of its layers where it has any.
static bool verify_key(MlirOperation op) {
    if (!verify(op)) return false;
    const bool layered = hec_any_layers(set_of(op)) > 0;
    if (!mlirValueIsNull(hec_layer_of(op)) == layered) return true;
    return hec_ir_error(op, layered ? "the set has several layers: which one?"
                                    : "the set has no layers");
}

// ---- experts

static bool verify_scope(MlirOperation op) {
    if (!verify_key(op)) return false;
    if (!hec_any_has_scope(op)) return true;
    const MlirStringRef scope = hec_any_scope(op);
    if (mlirStringRefEqual(scope, HEC_STR("iteration")) ||
        mlirStringRefEqual(scope, HEC_STR("step")))
        return true;
    return hec_ir_error(op, "`scope` is \"%.*s\", expected iteration or step", (int)scope.length,
                        scope.data);
}

// `ahead`, of a layer that the set may have.
static bool verify_ahead(MlirOperation op) {
    if (!verify_scope(op)) return false;
    if (!hec_any_has_ahead(op)) return true;
    const int64_t ahead = hec_any_ahead(op), layers = hec_any_layers(set_of(op));
    if (ahead == 0 || (ahead > -layers && ahead < layers)) return true;
    return hec_ir_error(op, "is %" PRId64 " layers ahead, of a set of %" PRId64, ahead, layers);
}

static bool verify_release(MlirOperation op) {
    const MlirStringRef what = hec_any_what(op);
    if (!verify_ahead(op)) return false;
    if (mlirStringRefEqual(what, HEC_STR("parameters")) ||
        mlirStringRefEqual(what, HEC_STR("gradients")))
        return true;
    return hec_ir_error(op, "`what` is \"%.*s\", expected parameters or gradients",
                        (int)what.length, what.data);
}

// Not pure: their effects are keyed by set and layer, and their order is their meaning. All ranks run
// them in the same order. They take no time of their own: awaits are in the attributes.
static struct hec_cost cost_nothing(MlirOperation op) {
    (void)op;
    return (struct hec_cost){0};
}

const struct hec_traits hec_traits_plan = {.verify = verify_scope, .cost = cost_nothing};
const struct hec_traits hec_traits_materialize = {.verify = verify_ahead, .cost = cost_nothing};
const struct hec_traits hec_traits_prefetch = {.verify = verify_scope, .cost = cost_nothing};
const struct hec_traits hec_traits_calibrate = {.verify = verify_key, .cost = cost_nothing};
const struct hec_traits hec_traits_await = {.verify = verify_key, .cost = cost_nothing};
const struct hec_traits hec_traits_reduce = {.verify = verify_scope, .cost = cost_nothing};
const struct hec_traits hec_traits_release = {.verify = verify_release, .cost = cost_nothing};

// ---- gradients of what every rank has

static bool check_member(MlirOperation op, MlirAttribute name) {
    const MlirStringRef text =
        mlirAttributeIsAString(name) ? mlirStringAttrGetValue(name) : HEC_STR("");
    const MlirOperation symbol = hec_find_symbol(hec_module_of(op), text);
    if (!hec_op_is(symbol, HEC_OP_param) && !hec_op_is(symbol, HEC_OP_set))
        return hec_ir_error(op, "there is no moe.param or moe.set @%.*s", (int)text.length,
                            text.data);
    const bool layered = !mlirValueIsNull(hec_layer_of(op));
    const bool ahead = hec_any_has_ahead(op) && hec_any_ahead(op) > 0; // Once in a loop.
    if ((hec_any_layers(symbol) > 0) == layered || (layered && ahead)) return true;
    return hec_ir_error(op, "@%.*s has %s", (int)text.length, text.data,
                        layered ? "no layers" : "layers: an index is expected");
}

static bool verify_dense(MlirOperation op) {
    const MlirAttribute params = mlirOperationGetAttributeByName(op, HEC_STR("params"));
    bool sound = mlirAttributeIsAArray(params);
    for (intptr_t i = 0; sound && i < mlirArrayAttrGetNumElements(params); i++)
        sound = check_member(op, mlirArrayAttrGetElement(params, i));
    return sound;
}

const struct hec_traits hec_traits_all_reduce = {.verify = verify_dense, .cost = cost_nothing};
const struct hec_traits hec_traits_reduce_scatter = {.verify = verify_dense, .cost = cost_nothing};
const struct hec_traits hec_traits_all_gather = {.verify = verify_dense, .cost = cost_nothing};
const struct hec_traits hec_traits_await_gather = {.verify = verify_dense, .cost = cost_nothing};
const struct hec_traits hec_traits_forget = {.verify = verify_dense, .cost = cost_nothing};

// ---- rows

// `first` has an entry for each expert, and one more.
static bool check_first(MlirOperation op, MlirValue first) {
    const struct hec_tensor want =
        hec_vector(hec_i32(op), HEC_STR("first"), hec_any_experts(set_of(op)) + 1);
    return hec_expect(op, "first", first, &want);
}

// [rows, width..] of reals.
static bool check_rows(MlirOperation op, const char *what, MlirValue rows) {
    if (!hec_expect_real(op, what, rows)) return false;
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(rows));
    if (t.rank >= 1 && mlirStringRefEqual(t.dim[0], HEC_STR("rows"))) return true;
    return hec_ir_error(op, "%s is %s, expected rows first", what,
                        hec_type_text(mlirValueGetType(rows)).text);
}

// [rows], as many as `rows` has.
static bool check_gate(MlirOperation op, const char *what, MlirValue gate, MlirValue rows) {
    const struct hec_tensor t = hec_tensor_at(rows), want = hec_slice(&t, 0, 1);
    return hec_expect(op, what, gate, &want);
}

// [tokens.., picks], the set's topk of them.
static bool check_picks(MlirOperation op, const char *what, MlirValue v) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(v));
    const bool picks = t.rank >= 2 && mlirStringRefEqual(t.dim[t.rank - 1], HEC_STR("picks"));
    if (picks && t.size[t.rank - 1] == hec_any_topk(set_of(op))) return true;
    return hec_ir_error(op, "%s is %s, expected the tokens' dimensions and the set's top-k choices",
                        what, hec_type_text(mlirValueGetType(v)).text);
}

// ids [tokens.., picks] and what stays of them; weights, one for each.
static bool verify_drop(MlirOperation op) {
    const struct hec_tensor weights = hec_tensor_at(hec_drop_weights(op));
    const struct hec_tensor ids = hec_with_element(&weights, hec_i32(op));
    return verify_key(op) && hec_expect_real(op, "weights", hec_drop_weights(op)) &&
           check_picks(op, "weights", hec_drop_weights(op)) &&
           hec_expect(op, "ids", hec_drop_ids(op), &ids) &&
           hec_expect(op, "kept", hec_drop_kept(op), &ids) && hec_check_capacity(op);
}

static bool verify_exchange(MlirOperation op) {
    return verify_key(op) && check_picks(op, "ids", hec_exchange_ids(op));
}

static bool verify_dispatch(MlirOperation op) {
    if (!verify_key(op) || !hec_expect_real(op, "x", hec_dispatch_x(op)) ||
        !check_picks(op, "weights", hec_dispatch_weights(op)) ||
        !check_rows(op, "rows", hec_dispatch_rows(op)) ||
        !check_gate(op, "gate", hec_dispatch_gate(op), hec_dispatch_rows(op)) ||
        !check_first(op, hec_dispatch_first(op)))
        return false;
    const struct hec_tensor x = hec_tensor_at(hec_dispatch_x(op)),
                            weights = hec_tensor_at(hec_dispatch_weights(op)),
                            rows = hec_tensor_at(hec_dispatch_rows(op));
    const int tokens = weights.rank - 1;
    const struct hec_tensor width = hec_slice(&rows, 1, rows.rank);
    if (x.rank >= tokens) {
        const struct hec_tensor lead = hec_slice(&x, 0, tokens),
                                rest = hec_slice(&x, tokens, x.rank);
        const struct hec_tensor want = hec_slice(&weights, 0, tokens);
        if (hec_same_dims(&lead, &want) && hec_same_dims(&rest, &width)) return true;
    }
    return hec_ir_error(op, "x is %s: its rows are not those that are sent",
                        hec_type_text(hec_tensor_type(&x)).text);
}

static bool verify_give_back(MlirOperation op) {
    return verify_key(op) && check_rows(op, "rows", hec_give_back_rows(op));
}

static bool verify_collect(MlirOperation op) {
    return verify_key(op) && hec_expect_real(op, "y", hec_collect_y(op));
}

static bool verify_dispatch_grad(MlirOperation op) {
    return verify_key(op) && hec_expect_real(op, "dy", hec_dispatch_grad_dy(op)) &&
           check_first(op, hec_dispatch_grad_first(op)) &&
           check_rows(op, "drows", hec_dispatch_grad_drows(op));
}

static bool verify_give_back_grad(MlirOperation op) {
    return verify_key(op) && check_rows(op, "drows", hec_give_back_grad_drows(op)) &&
           check_gate(op, "dgate", hec_give_back_grad_dgate(op), hec_give_back_grad_drows(op));
}

static bool verify_collect_grad(MlirOperation op) {
    return verify_key(op) && hec_expect_real(op, "dx", hec_collect_grad_dx(op)) &&
           check_picks(op, "dweights", hec_collect_grad_dweights(op));
}

// Not pure: they talk to other ranks, and their results depend on the route of the layer.
const struct hec_traits hec_traits_drop = {.verify = verify_drop};
const struct hec_traits hec_traits_exchange = {.verify = verify_exchange};
const struct hec_traits hec_traits_await_counts = {.verify = verify_key};
const struct hec_traits hec_traits_waves = {.verify = verify_key};
const struct hec_traits hec_traits_overwritten = {.verify = verify_key};
const struct hec_traits hec_traits_dispatch = {.verify = verify_dispatch};
const struct hec_traits hec_traits_give_back = {.verify = verify_give_back};
const struct hec_traits hec_traits_collect = {.verify = verify_collect};
const struct hec_traits hec_traits_dispatch_grad = {.verify = verify_dispatch_grad};
const struct hec_traits hec_traits_give_back_grad = {.verify = verify_give_back_grad};
const struct hec_traits hec_traits_collect_grad = {.verify = verify_collect_grad};
