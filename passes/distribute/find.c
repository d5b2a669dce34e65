// Finds the operations on rows of a route's set (rows_of), and sorts them by what distribute-experts does with them.
#include "passes/distribute/find.h"

#include "ir/accessors.h"

static void keep(struct hec_routed *x, MlirOperation *place, MlirOperation op) {
    if (place->ptr && x->move) hec_routed_fail(x, op, "not yet: rows are moved twice by one route");
    if (!place->ptr) *place = op;
}

static void sort_forward(struct hec_routed *x, MlirOperation op) {
    switch (hec_op_of(op)) {
    case HEC_OP_route:
        break;
    case HEC_OP_limit:
        if (x->limit.ptr) hec_routed_fail(x, op, "not yet: rows are limited twice");
        x->limit = op;
        break;
    case HEC_OP_permute:
        keep(x, &x->permute, op);
        break;
    case HEC_OP_gate_rows:
        keep(x, &x->gate, op);
        break;
    case HEC_OP_combine:
        keep(x, &x->combine, op);
        break;
    default:
        hec_ops_push(&x->region, op);
    }
}

static void sort_backward(struct hec_routed *x, MlirOperation op) {
    switch (hec_op_of(op)) {
    case HEC_OP_permute:
        keep(x, &x->from, op);
        break;
    case HEC_OP_combine:
        keep(x, &x->to, op);
        break;
    case HEC_OP_gate_rows_grad:
        keep(x, &x->to_gate, op);
        break;
    default:
        hec_ops_push(&x->back, op);
    }
}

// The layers of the loop around `op` are those of the set.
static void check_layers(struct hec_routed *x, MlirOperation op) {
    const MlirOperation parent = mlirOperationGetParentOperation(op);
    const int64_t layers = hec_op_is(parent, HEC_OP_FOR) ? hec_for_of(parent).count : 0;
    if (layers != hec_set_layers(x->set))
        hec_routed_fail(x, op, "is not in a loop over the layers of its set");
}

void hec_find_rows(struct hec_routed *x) {
    x->layer = hec_routed_layer(x->route);
    check_layers(x, x->route);
    const MlirStringRef set = hec_rows_of(x->route);
    const MlirOperation forward = hec_func_of(x->route);
    HEC_EACH (op, hec_ops_below(x->module)) {
        if (hec_op_is(op, HEC_OP_slot) || !mlirStringRefEqual(hec_rows_of(op), set)) continue;
        const MlirOperation func = hec_func_of(op);
        if (mlirOperationEqual(func, forward)) {
            sort_forward(x, op);
        } else if (mlirOperationEqual(func, x->backward)) {
            sort_backward(x, op);
        } else {
            hec_routed_fail(x, op, "works on rows that another function routes");
        }
    }
}

// All of `ops` stand beside `anchor`, where the waves will be.
static void check_place(struct hec_routed *x, const struct hec_ops *ops, MlirOperation anchor) {
    const MlirBlock block = mlirOperationGetBlock(anchor);
    for (int k = 0; k < ops->count; k++) {
        const MlirOperation op = ops->op[k], parent = mlirOperationGetParentOperation(op);
        if (hec_op_is(op, HEC_OP_FOR)) {
            hec_routed_fail(x, op, "not yet: on several ranks, experts with a repeat");
        } else if (!mlirBlockEqual(mlirOperationGetBlock(op), block) &&
                   !(hec_op_is(parent, HEC_OP_FOR) && hec_rows_of(parent).length)) {
            hec_routed_fail(x, op, "reads rows of experts outside of their waves");
        }
    }
}

static void check_beside(struct hec_routed *x, MlirOperation op, MlirOperation anchor) {
    const struct hec_ops one = {.op = &op, .count = 1};
    check_place(x, &one, anchor);
}

// A wave has a part of a sum over rows. Gradients are added up over waves, but nothing else may read one.
static void check_sums(struct hec_routed *x, const struct hec_ops *ops) {
    for (int k = 0; k < ops->count; k++) {
        const MlirOperation op = ops->op[k];
        if (hec_op_is(op, HEC_OP_accumulate) || hec_op_is(op, HEC_OP_sum)) continue;
        for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
            const MlirValue v = hec_operand(op, i);
            const bool sum = !mlirAttributeIsNull(hec_rows_of_value(v)) &&
                             hec_type_is_real(mlirValueGetType(v)) && !hec_routed_has_rows(v);
            if (sum) hec_routed_fail(x, op, "reads a sum over rows, of which a wave has a part");
        }
    }
}

// `op` moves rows by a pair and a slot: both have to be the route's.
static void check_order(struct hec_routed *x, MlirOperation op, bool pair, bool slot) {
    if (!pair || !slot) hec_routed_fail(x, op, "moves rows by two routes at once");
}

static void check_forward(struct hec_routed *x, MlirOperation op) {
    check_beside(x, op, x->route);
    check_order(x, op, mlirValueEqual(hec_routed_pair(op), hec_route_pair(x->route)),
                mlirValueEqual(hec_routed_slot(op), hec_route_slot(x->route)));
}

void hec_check_rows_forward(struct hec_routed *x) {
    if (!x->permute.ptr || !x->gate.ptr || !x->combine.ptr) {
        hec_routed_fail(x, x->route, "its rows are not permuted, weighted and combined");
        return;
    }
    check_forward(x, x->permute);
    check_forward(x, x->gate);
    check_forward(x, x->combine);
    check_place(x, &x->region, x->route);
    check_sums(x, &x->region);
    for (int k = 0; k < x->region.count && x->sound; k++) {
        if (mlirOperationIsBeforeInBlock(x->combine, x->region.op[k]))
            hec_routed_fail(x, x->region.op[k], "reads rows of experts behind their combine");
    }
}

// Whether `v` is what has been saved of `routed`, a result of the route.
static bool is_saved(MlirValue v, MlirValue routed) {
    const MlirOperation fetch = hec_defining(v), stash = hec_routed_stash(routed);
    return hec_op_is(fetch, HEC_OP_fetch) && stash.ptr &&
           mlirStringRefEqual(hec_fetch_slot(fetch), hec_stash_slot(stash));
}

void hec_check_rows_backward(struct hec_routed *x) {
    if (!x->from.ptr) { // Nothing that is trained comes before its rows.
        if (x->back.count || x->to.ptr || x->to_gate.ptr)
            hec_routed_fail(x, x->route, "its rows have gradients, but its result has none");
        return;
    }
    const MlirOperation ends[] = {x->from, x->to, x->to_gate};
    x->layer_back = hec_routed_layer(x->from);
    check_layers(x, x->from);
    for (int i = 0; i < 3; i++) {
        if (!ends[i].ptr) continue; // Gradients stop at the rows.
        check_beside(x, ends[i], x->from);
        check_order(x, ends[i], is_saved(hec_routed_pair(ends[i]), hec_route_pair(x->route)),
                    is_saved(hec_routed_slot(ends[i]), hec_route_slot(x->route)));
    }
    check_place(x, &x->back, x->from);
    check_sums(x, &x->back);
}
