// Homes: which values live where, and which share a buffer of the arena.
//
// In this order, so that what is fixed from outside comes first:
//   get, fetch and arguments live where they are read from;
//   a stashed value is computed in its slot;
//   a stashed value that a loop carries gets a slot with one row more: layer i reads row i, makes row i + 1;
//   a GEMM's result lies where its epilogue writes, if nothing else reads it;
//   an accumulated value is added straight to the gradient when its kernel can;
//   the four values of a carried one (initial, argument, yielded, result) share a buffer;
//   what a kernel adds to shares a buffer with the sum;
//   an elementwise result takes the buffer of an operand that dies there, or its slot.
// Values share a buffer only when no two of them are live at once.
#include <assert.h>

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "passes/base/rewrite.h"
#include "passes/homes/homes.h"

enum { BOUNDS = 3 }; // Operands of scf.for before the initial values.

struct hec_slot *hec_homes_slot(struct hec_homes *p, MlirStringRef name) {
    for (int i = 0; i < p->slots.count; i++) {
        if (mlirStringRefEqual(p->slots.item[i].name, name)) return &p->slots.item[i];
    }
    return NULL;
}

// ---- homes fixed from outside

static void pin(struct hec_homes *p, MlirValue v, struct hec_home home) {
    struct hec_homes_value *placed = &p->placed[hec_homes_index(p, v)];
    assert(!placed->pinned);
    placed->home = home;
    placed->pinned = true;
}

// Whether `layer` is that of a loop around; loops over waves may lie between.
static bool is_layer_around(MlirOperation op, MlirValue layer) {
    MlirOperation parent = mlirOperationGetParentOperation(op);
    for (; hec_op_is(parent, HEC_OP_FOR); parent = mlirOperationGetParentOperation(parent)) {
        const struct hec_for loop = hec_for_of(parent);
        if (mlirValueEqual(layer, loop.layer)) return loop.count != HEC_COUNT_AT_RUN_TIME;
    }
    return false;
}

// The home in `symbol` that `op` names: no layer, a constant one, the loop's.
static struct hec_home home_at(struct hec_homes *p, enum hec_home_kind kind, MlirStringRef symbol,
                               MlirOperation op) {
    struct hec_home home = {.kind = kind, .symbol = symbol};
    const MlirValue layer = hec_layer_of(op);
    if (mlirValueIsNull(layer)) return home;
    if (hec_op_is(hec_defining(layer), HEC_OP_CONSTANT)) {
        home.row = HEC_ROW_FIXED;
        home.at = hec_get_int(hec_defining(layer), "value");
    } else if (is_layer_around(op, layer)) {
        home.row = HEC_ROW_LAYER;
    } else {
        p->sound = hec_ir_error(op, "the layer is neither a constant nor that of the loop around");
    }
    return home;
}

static void ask_copy(struct hec_homes *p, MlirOperation user, int index, MlirOperation before) {
    HEC_PUSH(&p->arena, &p->repairs,
             (struct hec_repair){.user = user, .index = index, .before = before});
}

static bool is_free_result(const struct hec_homes *p, MlirValue v) {
    const MlirOperation op = hec_defining(v);
    return op.ptr && !hec_op_is(op, HEC_OP_FOR) && !p->placed[hec_homes_index(p, v)].pinned;
}

// A carried value that is stashed at its layer: rows 0 .. layers of the slot hold its whole
// history.
static void pin_history(struct hec_homes *p, MlirOperation stash, const struct hec_for *loop,
                        int index) {
    struct hec_home home = {.kind = HEC_HOME_SLOT, .symbol = hec_any_slot(stash)};
    const MlirValue init = hec_for_init(loop, index), yielded = hec_for_yielded(loop, index);
    hec_homes_slot(p, home.symbol)->rows = loop->count + 1;

    home.row = HEC_ROW_LAYER;
    pin(p, hec_stash_value(stash), home);
    home.row = HEC_ROW_NEXT;
    const bool inside = mlirBlockEqual(hec_block_of(yielded), loop->body);
    if (inside && is_free_result(p, yielded)) {
        pin(p, yielded, home);
    } else {
        const MlirOperation yield = mlirBlockGetTerminator(loop->body);
        ask_copy(p, yield, index, yield);
    }
    home.row = HEC_ROW_FIXED;
    if (is_free_result(p, init)) {
        pin(p, init, home);
    } else {
        ask_copy(p, loop->op, BOUNDS + index, loop->op);
    }
    home.at = loop->count;
    pin(p, hec_result(loop->op, index), home);
}

// Whether nothing but `op` stashes in its slot.
static bool is_only_stash(const struct hec_homes *p, MlirOperation op) {
    const MlirStringRef slot = hec_any_slot(op);
    for (int k = 1; k < p->live.ops.count; k++) {
        const MlirOperation other = p->live.ops.item[k];
        if (hec_op_is(other, HEC_OP_stash) && !mlirOperationEqual(other, op) &&
            mlirStringRefEqual(hec_any_slot(other), slot))
            return false;
    }
    return true;
}

static void pin_stash(struct hec_homes *p, MlirOperation op) {
    const MlirValue v = hec_stash_value(op);
    const MlirOperation parent = mlirOperationGetParentOperation(op);
    const struct hec_home home = home_at(p, HEC_HOME_SLOT, hec_stash_slot(op), op);
    const struct hec_homes_value *placed = &p->placed[hec_homes_index(p, v)];
    if (is_free_result(p, v)) {
        pin(p, v, home);
        return;
    }
    if (placed->pinned && hec_home_equal(&placed->home, &home)) return; // Stashed there before.
    if (mlirValueIsABlockArgument(v) && hec_op_is(parent, HEC_OP_FOR) && !placed->pinned) {
        const struct hec_for loop = hec_for_of(parent);
        const int index = (int)mlirBlockArgumentGetArgNumber(v) - 1;
        if (mlirBlockEqual(hec_block_of(v), loop.body) && home.row == HEC_ROW_LAYER && !loop.down &&
            hec_homes_slot(p, home.symbol)->rows == loop.count) {
            pin_history(p, op, &loop, index);
            return;
        }
    }
    const bool last_row = placed->pinned && placed->home.kind == HEC_HOME_SLOT &&
                          placed->home.row == HEC_ROW_FIXED && home.row == HEC_ROW_ONLY;
    if (last_row && !hec_homes_slot(p, home.symbol)->observed && is_only_stash(p, op)) {
        HEC_PUSH(&p->arena, &p->repairs,
                 (struct hec_repair){.user = op, .alias = true, .home = placed->home});
    } else {
        ask_copy(p, op, 0, op);
    }
}

static void pin_gradient(struct hec_homes *p, MlirOperation op) {
    const MlirValue v = hec_accumulate_value(op);
    const MlirOperation made_by = hec_defining(v);
    if (!is_free_result(p, v) || !hec_is_used_once(v) ||
        !mlirBlockEqual(mlirOperationGetBlock(made_by), mlirOperationGetBlock(op)))
        return;
    const int result = (int)mlirOpResultGetResultNumber(v);
    if (!(hec_op_traits(made_by)->adds >> result & 1)) return;
    if (result == 0 && !mlirValueIsNull(hec_call_of(made_by).onto)) return; // It adds already.
    pin(p, v, home_at(p, HEC_HOME_GRAD, hec_accumulate_param(op), op));
    p->placed[hec_homes_index(p, v)].adds = true;
}

// A GEMM whose result only its epilogue reads is computed where the epilogue's result will be.
static void pin_products(struct hec_homes *p) {
    for (int k = 1; k < p->live.ops.count; k++) {
        const MlirOperation op = p->live.ops.item[k];
        const struct hec_call call = hec_call_of(op);
        if (call.outputs == 0) continue;
        const MlirValue made = hec_result(op, 0);
        const struct hec_homes_value *placed =
            &p->placed[hec_homes_index(p, hec_result(op, call.results))];
        if (!hec_is_unused(made) || p->placed[hec_homes_index(p, made)].pinned || !placed->pinned ||
            placed->home.kind != HEC_HOME_SLOT)
            continue;
        pin(p, made, placed->home);
    }
}

static void pin_arguments(struct hec_homes *p, const char *name) {
    const MlirOperation func = hec_find_symbol(p->module, HEC_STR(name));
    if (mlirOperationIsNull(func)) return;
    const MlirBlock body = hec_func_body(func);
    if (mlirBlockGetNumArguments(body) > HEC_ARGUMENTS) {
        p->sound = hec_ir_error(
            func, "has more than the arguments ids, targets, scale and auxiliary_scale");
        return;
    }
    for (int i = 0; i < mlirBlockGetNumArguments(body); i++) {
        pin(p, mlirBlockGetArgument(body, i),
            (struct hec_home){.kind = HEC_HOME_ARGUMENT, .at = i});
    }
}

static void pin_all(struct hec_homes *p) {
    const struct hec_live *live = &p->live;
    pin_arguments(p, "forward");
    pin_arguments(p, "backward");
    for (int k = 1; k < live->ops.count; k++) {
        const MlirOperation op = live->ops.item[k];
        switch (hec_op_of(op)) {
        case HEC_OP_get:
            pin(p, hec_get_value(op), home_at(p, HEC_HOME_PARAM, hec_get_param(op), op));
            break;
        case HEC_OP_fetch:
            pin(p, hec_fetch_value(op), home_at(p, HEC_HOME_SLOT, hec_fetch_slot(op), op));
            break;
        default:
            break;
        }
    }
    for (int k = 1; k < live->ops.count; k++) {
        if (hec_op_is(live->ops.item[k], HEC_OP_stash)) pin_stash(p, live->ops.item[k]);
    }
    for (int k = 1; k < live->ops.count; k++) {
        if (hec_op_is(live->ops.item[k], HEC_OP_accumulate)) pin_gradient(p, live->ops.item[k]);
    }
    pin_products(p);
}

// ---- classes of the arena

static void join_carried(struct hec_homes *p, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    const MlirOperation yield = mlirBlockGetTerminator(loop.body);
    for (int i = 0; i < loop.carried; i++) {
        const MlirValue argument = hec_for_argument(&loop, i);
        if (p->placed[hec_homes_index(p, argument)].pinned) continue;
        if (!hec_homes_join(p, argument, hec_for_init(&loop, i))) ask_copy(p, op, BOUNDS + i, op);
        if (!hec_homes_join(p, argument, hec_for_yielded(&loop, i))) {
            ask_copy(p, yield, i, yield);
        } else if (!hec_homes_join(p, argument, hec_result(op, i))) {
            assert(!"the result of a loop follows its yielded value");
        }
    }
}

// The last read of a slot outside loops.
static int last_read(const struct hec_homes *p, MlirStringRef slot) {
    int last = 0;
    for (int i = 0; i < p->live.values.count; i++) {
        const struct hec_homes_value *placed = &p->placed[i];
        if (!placed->pinned || placed->home.kind != HEC_HOME_SLOT ||
            !mlirStringRefEqual(placed->home.symbol, slot))
            continue;
        if (p->live.values.item[i].last > last) last = p->live.values.item[i].last;
    }
    return last;
}

// A saved value of the top level that is read for the last time gives its slot to the result: the
// gradient of the logits lies where the logits were.
static bool take_slot(struct hec_homes *p, int k, MlirValue operand, MlirValue result) {
    const int r = hec_homes_index(p, result);
    const struct hec_homes_value *from = &p->placed[hec_homes_index(p, operand)];
    if (from->home.kind != HEC_HOME_SLOT || from->home.row != HEC_ROW_ONLY ||
        k < p->live.backward || p->placed[r].next != r || p->live.outermost.item[k] >= 0 ||
        last_read(p, from->home.symbol) != k)
        return false;
    pin(p, result, from->home);
    return true;
}

// The operand that a call adds to lies where its result does. Where both cannot, it is copied.
static void join_sum(struct hec_homes *p, MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    if (mlirValueIsNull(call.onto)) return;
    const struct hec_homes_value *to = &p->placed[hec_homes_index(p, hec_result(op, 0))];
    if (hec_homes_join(p, call.onto, hec_result(op, 0))) return;
    const bool copied = hec_op_is(hec_defining(call.onto), HEC_OP_copy) &&
                        hec_is_used_once(call.onto) && is_free_result(p, call.onto);
    if (copied && to->pinned) {
        pin(p, call.onto, to->home);
    } else {
        ask_copy(p, op, call.operands, op);
    }
}

// Lets `result` of operation k take the buffer of `operand`, which is read there for the last time.
static bool take(struct hec_homes *p, int k, MlirValue operand, MlirValue result) {
    const int v = hec_homes_index(p, operand);
    if (p->live.values.item[v].last != k || !hec_may_reuse(p->live.ops.item[k], operand, result))
        return false;
    return p->placed[v].pinned ? take_slot(p, k, operand, result)
                               : hec_homes_join(p, operand, result);
}

static void join_in_place(struct hec_homes *p, int k) {
    const MlirOperation op = p->live.ops.item[k];
    const struct hec_call call = hec_call_of(op);
    if ((!hec_op_traits(op)->in_place && !call.outputs) || p->new_homes) return;
    for (int r = 0; r < mlirOperationGetNumResults(op); r++) {
        const MlirValue result = hec_result(op, r);
        if (p->placed[hec_homes_index(p, result)].pinned) continue;
        if (hec_may_lie_together(op, 0, r) && hec_homes_join(p, hec_result(op, 0), result))
            continue;
        for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
            if (take(p, k, hec_operand(op, i), result)) break;
        }
    }
}

void hec_homes_find_slots(struct hec_homes *p) {
    p->slots.count = 0;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(p->module)), HEC_OP_slot) {
        const int64_t layers = hec_any_layers(op);
        const int64_t bytes = hec_type_bytes(hec_any_type(op));
        HEC_PUSH(&p->arena, &p->slots,
                 (struct hec_slot){.op = op,
                                   .name = hec_any_sym_name(op),
                                   .stride = hec_aligned(p->target, bytes),
                                   .rows = layers ? layers : 1,
                                   .last = -1,
                                   .observed = hec_any_observed(op),
                                   .kept = hec_any_kept(op)});
    }
}

void hec_homes_decide(struct hec_homes *p) {
    const struct hec_live *live = &p->live;
    p->placed = hec_arena_alloc(&p->arena, (size_t)live->values.count, sizeof *p->placed);
    p->repairs.count = 0;
    for (int i = 0; i < live->values.count; i++) {
        const bool tensor = mlirTypeIsARankedTensor(mlirValueGetType(live->values.item[i].value));
        p->placed[i] =
            (struct hec_homes_value){.home.kind = tensor ? HEC_HOME_ARENA : HEC_HOME_NONE,
                                     .pinned = !tensor,
                                     .root = i,
                                     .next = i};
    }
    hec_homes_find_slots(p);
    pin_all(p);
    if (!p->sound) return;
    for (int i = 0; i < live->loops.count; i++) join_carried(p, live->loops.item[i].op);
    for (int k = 1; k < live->ops.count; k++) join_sum(p, live->ops.item[k]);
    for (int k = 1; k < live->ops.count; k++) join_in_place(p, k);
}
