// What belongs to a route: whatever reads its rows, up to their combine; in @backward, whatever reads their
// gradients or what was saved of them.
#include "passes/distribute/find.h"

#include <stdlib.h>

#include "ir/accessors.h"
#include "passes/rewrite.h"

static bool reads(const struct hec_map *tainted, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (hec_map_find(tainted, hec_operand(op, i))) return true;
    }
    return false;
}

static void taint(struct hec_map *tainted, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        hec_map_put(tainted, hec_result(op, i), op.ptr);
    }
}

// Every use of what the region makes is in the region, or by one of the operations that end it.
static void check_uses(struct hec_routed *x, const struct hec_ops *region,
                       const MlirOperation *end) {
    struct hec_map inside = {0};
    for (int k = 0; k < region->count; k++) *hec_map_at(&inside, region->op[k].ptr) = 1;
    for (int i = 0; i < 2; i++) {
        if (end[i].ptr) *hec_map_at(&inside, end[i].ptr) = 1;
    }
    for (int k = 0; k < region->count; k++) {
        for (int i = 0; i < mlirOperationGetNumResults(region->op[k]); i++) {
            MlirOpOperand use = mlirValueGetFirstUse(hec_result(region->op[k], i));
            for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
                if (hec_map_get(&inside, mlirOpOperandGetOwner(use).ptr)) continue;
                hec_routed_fail(x, mlirOpOperandGetOwner(use),
                                "reads rows of experts outside of their waves");
            }
        }
    }
    hec_map_free(&inside);
}

// `op` moves rows by a pair and a slot: both have to be the route's.
static void check_order(struct hec_routed *x, MlirOperation op, bool pair, bool slot) {
    if (!pair || !slot) hec_routed_fail(x, op, "moves rows by two routes at once");
}

static void check_forward(struct hec_routed *x, MlirOperation op) {
    check_order(x, op, mlirValueEqual(hec_operand(op, 1), hec_route_pair(x->route)),
                mlirValueEqual(hec_operand(op, 2), hec_route_slot(x->route)));
}

void hec_find_rows_forward(struct hec_routed *x) {
    const MlirValue pair = hec_route_pair(x->route);
    x->permute = hec_routed_user(x, pair, HEC_OP_permute);
    x->gate = hec_routed_user(x, hec_route_slot(x->route), HEC_OP_gate_rows);
    if (!x->gate.ptr) x->gate = hec_routed_user(x, pair, HEC_OP_gate_rows);
    x->combine = hec_routed_user(x, pair, HEC_OP_combine);
    x->layer = hec_routed_layer(x->route);
    if (!x->permute.ptr || !x->gate.ptr || !x->combine.ptr) {
        hec_routed_fail(x, x->route, "its rows are not permuted, weighted and combined");
        return;
    }
    check_forward(x, x->permute);
    check_forward(x, x->gate);
    check_forward(x, x->combine);
    struct hec_map tainted = {0};
    hec_map_put(&tainted, hec_route_first(x->route), x->route.ptr);
    taint(&tainted, x->permute);
    taint(&tainted, x->gate);
    struct hec_ops ops = hec_ops_in(mlirOperationGetBlock(x->route));
    for (int k = 0; k < ops.count; k++) {
        if (mlirOperationEqual(ops.op[k], x->combine) || !reads(&tainted, ops.op[k])) continue;
        taint(&tainted, ops.op[k]);
        hec_ops_push(&x->region, ops.op[k]);
        if (hec_op_is(ops.op[k], HEC_OP_stash)) {
            *hec_map_at(&x->slots, hec_routed_slot_key(ops.op[k])) = (intptr_t)ops.op[k].ptr;
        }
        if (mlirOperationIsBeforeInBlock(x->combine, ops.op[k]))
            hec_routed_fail(x, ops.op[k], "reads rows of experts behind their combine");
    }
    free(ops.op);
    hec_map_free(&tainted);
    const MlirOperation end[2] = {x->combine};
    if (x->sound) check_uses(x, &x->region, end);
}

// Finds in @backward what reads the pairs and slots that `route` saved.
static void find_back_ends(struct hec_routed *x, const struct hec_ops *ops) {
    const MlirOperation saved[] = {hec_routed_stash(hec_route_pair(x->route)),
                                   hec_routed_stash(hec_route_slot(x->route))};
    for (int k = 0; k < ops->count; k++) {
        const MlirOperation op = ops->op[k];
        if (!hec_op_is(op, HEC_OP_fetch)) continue;
        for (int s = 0; s < 2; s++) {
            if (!saved[s].ptr || hec_routed_slot_key(op) != hec_routed_slot_key(saved[s])) continue;
            const MlirValue v = hec_result(op, 0);
            const MlirOperation from = hec_routed_user(x, v, HEC_OP_permute);
            const MlirOperation to = hec_routed_user(x, v, HEC_OP_combine);
            const MlirOperation to_gate = hec_routed_user(x, v, HEC_OP_gate_rows_grad);
            if (from.ptr) x->from = from;
            if (to.ptr) x->to = to;
            if (to_gate.ptr) x->to_gate = to_gate;
        }
    }
}

// Whether operand `index` of `op` is what the route has saved of its result `index`.
static bool is_saved(const struct hec_routed *x, MlirOperation op, int index) {
    const MlirOperation fetch = hec_defining(hec_operand(op, index));
    const MlirOperation stash = hec_routed_stash(hec_result(x->route, index));
    return hec_op_is(fetch, HEC_OP_fetch) && stash.ptr &&
           hec_routed_slot_key(fetch) == hec_routed_slot_key(stash);
}

void hec_find_rows_backward(struct hec_routed *x, MlirOperation backward) {
    struct hec_ops ops = hec_ops_below(backward);
    find_back_ends(x, &ops);
    free(ops.op);
    if (!x->from.ptr || !x->to.ptr || !x->to_gate.ptr) {
        hec_routed_fail(x, x->route, "not yet: experts whose gradients stop at their rows");
        return;
    }
    const MlirOperation ends[] = {x->from, x->to, x->to_gate};
    for (int i = 0; i < 3; i++)
        check_order(x, ends[i], is_saved(x, ends[i], 1), is_saved(x, ends[i], 2));
    x->layer_back = hec_routed_layer(x->from);
    struct hec_map tainted = {0};
    taint(&tainted, x->from);
    ops = hec_ops_in(mlirOperationGetBlock(x->from));
    for (int k = 0; k < ops.count; k++) {
        const MlirOperation op = ops.op[k];
        const bool saved =
            hec_op_is(op, HEC_OP_fetch) && hec_map_get(&x->slots, hec_routed_slot_key(op));
        if (mlirOperationEqual(op, x->to) || mlirOperationEqual(op, x->to_gate)) continue;
        if (!saved && !reads(&tainted, op)) continue;
        taint(&tainted, op);
        hec_ops_push(&x->back, op);
    }
    free(ops.op);
    hec_map_free(&tainted);
    const MlirOperation end[] = {x->to, x->to_gate};
    check_uses(x, &x->back, end);
}
