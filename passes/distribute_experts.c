// distribute-experts: rows go to the ranks that hold their experts, in waves.
//
//   before   %first, %pair, %slot = moe.route(%ids) {set = @sparse}
//            %r = moe.permute(%x, %pair, %slot); %g = moe.gate_rows(%weights, %pair, %slot)
//            ... the experts' operations on rows, what backward needs of them stashed
//            %y = moe.combine(%rows, %pair, %slot)
//            With a capacity, %first, %pair and %slot are those of a moe.limit.
//   after    fssdp.exchange(%ids, %i)
//            %n = fssdp.waves(%i)
//            scf.for %w = 0 to %n {
//                %r, %g, %first = fssdp.dispatch(%x, %weights, %w, %i)
//                ... the same operations, on the rows of one wave
//                fssdp.give_back(%rows, %w, %i)
//            }
//            %y = fssdp.collect(%i)
//            @backward: the waves in descending order. Slots hold what the last wave saved; for the
//            others, fssdp.overwritten says 1, and the rows are sent and computed once more.
//            With a capacity, %kept = fssdp.drop(%ids, %weights, %i) comes first, over the
//            tokens of all ranks, and the route is that of %kept.
//
// Why      An expert's computation is the same wherever its rows come from. So everything before
//          this pass sees the rows of one rank, and only here they become rows of all ranks. Waves
//          bound the memory whatever the router does.
// Needs    hecate.world of the module (without it, nothing is done); values of rows stashed and
//          computed again at will, but not moe.permute and moe.gate_rows.
// Leaves   `rows` has room for the rows of a wave: hecate.rows_max of them, or one and a quarter times
//          those that a rank sends.
//          Auxiliary losses are this rank's share of the whole.
//          With hecate.experts = "replicate", nothing else changes: every rank computes its rows.
// Reports  experts of which a value is used outside of their waves; mixtures whose result nothing uses.
#include "ir/accessors.h"
#include "passes/pass.h"

#include <stdio.h>
#include <stdlib.h>

#include "passes/distribute.h"
#include "passes/movement.h"
#include "passes/rewrite.h"

enum { OPERANDS_MAX = 8 };

// The rows of one route, in @forward and in @backward.
struct exchange {
    MlirOperation module, route, set;
    MlirOperation permute, gate, combine; // @forward.
    MlirValue layer;                      // Null: the set has no layers.
    struct hec_ops region;                // Operations on rows, in their order.
    struct hec_map slots;                 // Attribute `slot` -> a stash of the region.
    MlirOperation from, to, to_gate;      // @backward: permute of dy, combine, gate_rows_grad.
    MlirValue layer_back;
    struct hec_ops back;
    bool move; // Rows go to the ranks of their experts; else every rank has all experts.
    bool sound;
};

static void fail(struct exchange *x, MlirOperation op, const char *text) {
    hec_ir_error(op, "%s", text);
    x->sound = false;
}

static const void *slot_key(MlirOperation op) { // Attributes are unique in a context.
    return mlirOperationGetAttributeByName(op, HEC_STR("slot")).ptr;
}

static void push(struct hec_ops *ops, MlirOperation op) {
    if (ops->count == ops->capacity) {
        ops->capacity = ops->capacity ? 2 * ops->capacity : 64;
        ops->op = realloc(ops->op, sizeof *ops->op * (size_t)ops->capacity);
        if (!ops->op) abort();
    }
    ops->op[ops->count++] = op;
}

static MlirValue layer_around(MlirOperation op) {
    const MlirOperation parent = mlirOperationGetParentOperation(op);
    return hec_op_is(parent, HEC_OP_FOR) ? hec_for_of(parent).layer : (MlirValue){0};
}

// Builds an operation on the set: `operand`, the wave where there is one, the layer.
static MlirOperation build(struct hec_builder *b, struct exchange *x, int id, int operands,
                           const MlirValue *operand, MlirValue wave, MlirValue layer, int results,
                           const MlirType *result) {
    MlirValue all[OPERANDS_MAX];
    int count = 0;
    for (int i = 0; i < operands; i++) all[count++] = operand[i];
    if (wave.ptr) all[count++] = wave;
    if (layer.ptr) all[count++] = layer;
    const MlirNamedAttribute set = hec_attr_symbol(b->context, "set", hec_set_sym_name(x->set));
    return hec_build_op(b, id, count, all, results, result, 1, &set);
}

static MlirValue build_count(struct hec_builder *b, struct exchange *x, int id, MlirValue wave,
                             MlirValue layer) {
    const MlirType index = mlirIndexTypeGet(b->context);
    return hec_result(build(b, x, id, 0, NULL, wave, layer, 1, &index), 0);
}

// The stash of `v`; null when it has none.
static MlirOperation stash_of(MlirValue v) {
    MlirOpOperand use = mlirValueGetFirstUse(v);
    for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (hec_op_is(user, HEC_OP_stash)) return user;
    }
    return (MlirOperation){0};
}

// Makes the slot `set.what` for `v` and keeps it there, right behind `after`.
static MlirOperation make_slot(struct exchange *x, MlirValue v, const char *what,
                               MlirOperation after) {
    const MlirContext c = mlirOperationGetContext(x->module);
    const MlirStringRef set = hec_set_sym_name(x->set);
    char name[256];
    snprintf(name, sizeof name, "%.*s.%s", (int)set.length, set.data, what);
    struct hec_builder b = hec_builder_before(x->set);
    b.at = hec_loc_strip(hec_value_location(v));
    const MlirNamedAttribute attribute[] = {
        hec_attr_string(c, "sym_name", name),
        hec_attr_type(c, "type", mlirValueGetType(v)),
        hec_attr_int(c, "layers", hec_set_layers(x->set)),
    };
    hec_build_op(&b, HEC_OP_slot, 0, NULL, 0, NULL, 3, attribute);
    b = hec_builder_before(mlirOperationGetNextInBlock(after));
    hec_builder_for_value(&b, v);
    b.at = hec_loc_strip(b.at);
    const MlirNamedAttribute slot = hec_attr_symbol(c, "slot", HEC_STR(name));
    const MlirValue operand[] = {v, x->layer};
    return hec_build_op(&b, HEC_OP_stash, x->layer.ptr ? 2 : 1, operand, 0, NULL, 1, &slot);
}

static MlirValue fetch(struct hec_builder *b, struct exchange *x, MlirOperation stash) {
    const MlirNamedAttribute slot = hec_attr_symbol(b->context, "slot", hec_any_slot(stash));
    struct hec_builder at = *b;
    hec_builder_for_value(&at, hec_operand(stash, 0));
    const bool layered =
        mlirOperationGetNumOperands(stash) > 1; // What a loop reads may be made before it.
    return hec_build_value(&at, HEC_OP_fetch, layered ? 1 : 0, &x->layer_back,
                           mlirValueGetType(hec_operand(stash, 0)), 1, &slot);
}

// ---- what belongs to a route

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

// The one user of `v` that is an `id`; null when there is none, or more than one.
static MlirOperation user_of(struct exchange *x, MlirValue v, enum hec_op id) {
    MlirOperation found = {0};
    MlirOpOperand use = mlirValueGetFirstUse(v);
    for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (!hec_op_is(user, id) || mlirOperationEqual(user, found)) continue;
        if (found.ptr) fail(x, user, "not yet: rows are moved twice by one route");
        found = user;
    }
    return found;
}

// Every use of what the region makes is in the region, or by one of the operations that end it.
static void check_uses(struct exchange *x, const struct hec_ops *region, const MlirOperation *end) {
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
                fail(x, mlirOpOperandGetOwner(use), "reads rows of experts outside of their waves");
            }
        }
    }
    hec_map_free(&inside);
}

static void find_forward(struct exchange *x) {
    const MlirValue pair = hec_result(x->route, 1);
    x->permute = user_of(x, pair, HEC_OP_permute);
    x->gate = user_of(x, hec_result(x->route, 2), HEC_OP_gate_rows);
    if (!x->gate.ptr) x->gate = user_of(x, pair, HEC_OP_gate_rows);
    x->combine = user_of(x, pair, HEC_OP_combine);
    x->layer = layer_around(x->route);
    if (!x->permute.ptr || !x->gate.ptr || !x->combine.ptr) {
        fail(x, x->route, "its rows are not permuted, weighted and combined");
        return;
    }
    struct hec_map tainted = {0};
    hec_map_put(&tainted, hec_result(x->route, 0), x->route.ptr);
    taint(&tainted, x->permute);
    taint(&tainted, x->gate);
    struct hec_ops ops = hec_ops_in(mlirOperationGetBlock(x->route));
    for (int k = 0; k < ops.count; k++) {
        if (mlirOperationEqual(ops.op[k], x->combine) || !reads(&tainted, ops.op[k])) continue;
        taint(&tainted, ops.op[k]);
        push(&x->region, ops.op[k]);
        if (hec_op_is(ops.op[k], HEC_OP_stash)) {
            *hec_map_at(&x->slots, slot_key(ops.op[k])) = (intptr_t)ops.op[k].ptr;
        }
        if (mlirOperationIsBeforeInBlock(x->combine, ops.op[k]))
            fail(x, ops.op[k], "reads rows of experts behind their combine");
    }
    free(ops.op);
    hec_map_free(&tainted);
    const MlirOperation end[2] = {x->combine};
    if (x->sound) check_uses(x, &x->region, end);
}

// Finds in @backward what reads the pairs and slots that `route` saved.
static void find_back_ends(struct exchange *x, const struct hec_ops *ops) {
    const MlirOperation saved[] = {stash_of(hec_result(x->route, 1)),
                                   stash_of(hec_result(x->route, 2))};
    for (int k = 0; k < ops->count; k++) {
        const MlirOperation op = ops->op[k];
        if (!hec_op_is(op, HEC_OP_fetch)) continue;
        for (int s = 0; s < 2; s++) {
            if (!saved[s].ptr || slot_key(op) != slot_key(saved[s])) continue;
            const MlirValue v = hec_result(op, 0);
            const MlirOperation from = user_of(x, v, HEC_OP_permute);
            const MlirOperation to = user_of(x, v, HEC_OP_combine);
            const MlirOperation to_gate = user_of(x, v, HEC_OP_gate_rows_grad);
            if (from.ptr) x->from = from;
            if (to.ptr) x->to = to;
            if (to_gate.ptr) x->to_gate = to_gate;
        }
    }
}

static void find_backward(struct exchange *x, MlirOperation backward) {
    struct hec_ops ops = hec_ops_below(backward);
    find_back_ends(x, &ops);
    free(ops.op);
    if (!x->from.ptr || !x->to.ptr || !x->to_gate.ptr) {
        fail(x, x->route, "not yet: experts whose gradients stop at their rows");
        return;
    }
    x->layer_back = layer_around(x->from);
    struct hec_map tainted = {0};
    taint(&tainted, x->from);
    ops = hec_ops_in(mlirOperationGetBlock(x->from));
    for (int k = 0; k < ops.count; k++) {
        const MlirOperation op = ops.op[k];
        const bool saved = hec_op_is(op, HEC_OP_fetch) && hec_map_get(&x->slots, slot_key(op));
        if (mlirOperationEqual(op, x->to) || mlirOperationEqual(op, x->to_gate)) continue;
        if (!saved && !reads(&tainted, op)) continue;
        taint(&tainted, op);
        push(&x->back, op);
    }
    free(ops.op);
    hec_map_free(&tainted);
    const MlirOperation end[] = {x->to, x->to_gate};
    check_uses(x, &x->back, end);
}

// ---- forward

// The waves of @forward, in place of the region; `combine` goes.
static void distribute_forward(struct exchange *x) {
    struct hec_builder b = hec_builder_before(x->combine);
    hec_builder_for(&b, x->permute);
    b.at = hec_loc_strip(b.at);
    const MlirValue waves = build_count(&b, x, HEC_OP_waves, (MlirValue){0}, x->layer);
    struct hec_for loop = hec_build_repeat(&b, waves, false);
    hec_for_yield(&loop, b.at, NULL);

    const MlirOperation yield = mlirBlockGetTerminator(loop.body);
    struct hec_builder in = hec_builder_before(yield);
    hec_builder_for(&in, x->permute);
    const MlirValue operand[] = {hec_operand(x->permute, 0), hec_operand(x->gate, 0)};
    const MlirValue replaced[] = {hec_result(x->permute, 0), hec_result(x->gate, 0),
                                  hec_result(x->route, 0)};
    MlirType type[3];
    for (int i = 0; i < 3; i++) type[i] = mlirValueGetType(replaced[i]);
    const MlirOperation dispatch =
        build(&in, x, HEC_OP_dispatch, 2, operand, loop.layer, x->layer, 3, type);
    for (int k = 0; k < x->region.count; k++) mlirOperationMoveBefore(x->region.op[k], yield);
    for (int i = 0; i < 3; i++) {
        mlirValueReplaceAllUsesOfWith(replaced[i], hec_result(dispatch, i));
    }
    in.at = b.at;
    in.unit = b.unit;
    const MlirValue rows = hec_operand(x->combine, 0);
    build(&in, x, HEC_OP_give_back, 1, &rows, loop.layer, x->layer, 0, NULL);
    hec_builder_for(&b, x->combine);
    const MlirType y = mlirValueGetType(hec_result(x->combine, 0));
    const MlirOperation collect =
        build(&b, x, HEC_OP_collect, 0, NULL, (MlirValue){0}, x->layer, 1, &y);
    mlirValueReplaceAllUsesOfWith(hec_result(x->combine, 0), hec_result(collect, 0));
    mlirOperationDestroy(x->combine);
    mlirOperationDestroy(x->permute);
    mlirOperationDestroy(x->gate);
    x->permute = dispatch;
}

// ---- backward

// What `op` reads and the region does not make: parameters and constants, made again here.
static bool bring(struct exchange *x, struct hec_builder *b, MlirOperation op,
                  struct hec_map *map) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue v = hec_operand(op, i);
        if (hec_map_find(map, v)) continue;
        const MlirOperation made = hec_defining(v);
        const bool cheap = hec_op_is(made, HEC_OP_get) || hec_op_is(made, HEC_OP_fill) ||
                           hec_op_is(made, HEC_OP_CONSTANT);
        if (!cheap) {
            fail(x, op, "not yet: experts that read more than their rows and parameters");
            return false;
        }
        if (!bring(x, b, made, map)) return false;
        hec_clone_mapped(b, made, map);
    }
    return true;
}

// `wave` once more, up to what it saves: its slots hold the values of a later wave.
static void compute_again(struct exchange *x, struct hec_builder *b, MlirValue wave,
                          const MlirValue sent[2]) {
    const MlirValue times = build_count(b, x, HEC_OP_overwritten, wave, x->layer_back);
    struct hec_for once = hec_build_repeat(b, times, false);
    hec_for_yield(&once, b->at, NULL);
    struct hec_builder in = hec_builder_before(mlirBlockGetTerminator(once.body));
    hec_builder_for(&in, x->permute);
    MlirType type[3];
    for (int i = 0; i < 3; i++) type[i] = mlirValueGetType(hec_result(x->permute, i));
    const MlirOperation dispatch =
        build(&in, x, HEC_OP_dispatch, 2, sent, wave, x->layer_back, 3, type);
    struct hec_map map = {0};
    if (x->layer.ptr) hec_map_put(&map, x->layer, x->layer_back.ptr);
    for (int i = 0; i < 3; i++) {
        hec_map_put(&map, hec_result(x->permute, i), hec_result(dispatch, i).ptr);
    }
    for (int k = 0; k < x->region.count && x->sound; k++) {
        if (bring(x, &in, x->region.op[k], &map)) hec_clone_mapped(&in, x->region.op[k], &map);
    }
    hec_map_free(&map);
}

// Moves what the region reads, and `anchor` does not see, in front of it.
static void hoist(struct exchange *x, MlirOperation op, MlirOperation anchor,
                  const struct hec_map *inside) {
    const MlirBlock block = mlirOperationGetBlock(anchor);
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (mlirOperationIsNull(made) || !mlirBlockEqual(mlirOperationGetBlock(made), block) ||
            hec_map_get(inside, made.ptr) || mlirOperationIsBeforeInBlock(made, anchor))
            continue;
        if (mlirOperationEqual(made, x->to) || mlirOperationEqual(made, x->to_gate)) {
            fail(x, op, "reads the gradient of what its own rows are");
            return;
        }
        hoist(x, made, anchor, inside);
        mlirOperationMoveBefore(made, anchor);
    }
}

static MlirOperation find_anchor(struct exchange *x) {
    const bool gate_first = mlirOperationIsBeforeInBlock(x->to_gate, x->to);
    const MlirOperation anchor = gate_first ? x->to_gate : x->to;
    struct hec_map inside = {0};
    for (int k = 0; k < x->back.count; k++) *hec_map_at(&inside, x->back.op[k].ptr) = 1;
    for (int k = 0; k < x->back.count; k++) hoist(x, x->back.op[k], anchor, &inside);
    hoist(x, x->from, anchor, &inside);
    hec_map_free(&inside);
    return anchor;
}

// What was sent in @forward, to be sent again.
static void find_sent(struct exchange *x, struct hec_builder *b, MlirValue sent[2]) {
    static const char *const what[] = {"sent", "sent_weights"};
    for (int i = 0; i < 2; i++) {
        const MlirValue v = hec_operand(x->permute, i);
        MlirOperation stash = stash_of(v);
        if (!stash.ptr) {
            const MlirOperation made = hec_defining(v);
            if (!made.ptr || hec_op_is(made, HEC_OP_get) || hec_op_is(made, HEC_OP_FOR)) {
                fail(x, x->permute, "not yet: experts of what a block was given");
                return;
            }
            stash = make_slot(x, v, what[i], made);
        }
        sent[i] = fetch(b, x, stash);
    }
}

static void distribute_backward(struct exchange *x) {
    const MlirOperation anchor = find_anchor(x);
    struct hec_builder b = hec_builder_before(anchor);
    hec_builder_for(&b, x->from);
    b.at = hec_loc_strip(b.at);
    MlirValue sent[2] = {{0}};
    find_sent(x, &b, sent);
    const MlirOperation first = stash_of(hec_result(x->permute, 2));
    if (!first.ptr) fail(x, x->route, "not yet: experts without products");
    if (!x->sound) return;
    const MlirValue waves = build_count(&b, x, HEC_OP_waves, (MlirValue){0}, x->layer_back);
    struct hec_for loop = hec_build_repeat(&b, waves, true);
    hec_for_yield(&loop, b.at, NULL);

    const MlirOperation yield = mlirBlockGetTerminator(loop.body);
    struct hec_builder in = hec_builder_before(yield);
    in.at = b.at;
    in.unit = b.unit;
    compute_again(x, &in, loop.layer, sent);
    const MlirValue operand[] = {hec_operand(x->from, 0), fetch(&in, x, first)};
    const MlirType rows = mlirValueGetType(hec_result(x->from, 0));
    hec_builder_for(&in, x->from);
    const MlirOperation dispatch =
        build(&in, x, HEC_OP_dispatch_grad, 2, operand, loop.layer, x->layer_back, 1, &rows);
    for (int k = 0; k < x->back.count; k++) mlirOperationMoveBefore(x->back.op[k], yield);
    mlirValueReplaceAllUsesOfWith(hec_result(x->from, 0), hec_result(dispatch, 0));
    in.at = b.at;
    in.unit = b.unit;
    const MlirValue given[] = {hec_operand(x->to, 0), hec_operand(x->to_gate, 0)};
    build(&in, x, HEC_OP_give_back_grad, 2, given, loop.layer, x->layer_back, 0, NULL);

    hec_builder_for(&b, x->to);
    const MlirType type[] = {mlirValueGetType(hec_result(x->to, 0)),
                             mlirValueGetType(hec_result(x->to_gate, 0))};
    const MlirOperation collect =
        build(&b, x, HEC_OP_collect_grad, 0, NULL, (MlirValue){0}, x->layer_back, 2, type);
    mlirValueReplaceAllUsesOfWith(hec_result(x->to, 0), hec_result(collect, 0));
    mlirValueReplaceAllUsesOfWith(hec_result(x->to_gate, 0), hec_result(collect, 1));
    mlirOperationDestroy(x->to);
    mlirOperationDestroy(x->to_gate);
    mlirOperationDestroy(x->from);
}

// ---- loads

// A capacity is one over the tokens of all ranks: behind the router they drop picks together, in place
// of `limit`, and the route is that of the others.
static MlirOperation drop_together(struct exchange *x, struct hec_builder *b, MlirOperation router,
                                   MlirOperation limit) {
    const MlirValue in[] = {hec_result(router, 2), hec_result(router, 1)};
    if (!mlirValueEqual(hec_operand(limit, 0), in[1]))
        fail(x, limit, "not yet: drops by weights that are not the router's");
    const MlirType type = mlirValueGetType(in[0]);
    const MlirOperation drop = build(b, x, HEC_OP_drop, 2, in, (MlirValue){0}, x->layer, 1, &type);
    hec_any_put_capacity(drop, hec_limit_capacity(limit));
    hec_set_attr(drop, hec_attr(b->context, "drop", hec_get_attr(limit, "drop")));
    if (hec_limit_has_group(limit)) hec_drop_put_group(drop, hec_limit_group(limit));
    hec_set_put_limited(x->set, true);
    mlirOperationSetOperand(x->route, 0, hec_result(drop, 0));
    for (int i = 0; i < 3; i++)
        mlirValueReplaceAllUsesOfWith(hec_result(limit, i), hec_result(x->route, i));
    mlirOperationDestroy(limit);
    return drop;
}

// What all ranks do together right behind the router: drop picks, and route the others.
static void exchange_ids(struct exchange *x, MlirOperation router) {
    struct hec_builder b = hec_builder_before(mlirOperationGetNextInBlock(router));
    hec_builder_for(&b, router);
    b.at = hec_loc_strip(b.at);
    const MlirOperation limit = user_of(x, hec_result(x->route, 1), HEC_OP_limit);
    MlirValue ids = hec_result(router, 2);
    if (limit.ptr) ids = hec_result(drop_together(x, &b, router, limit), 0);
    if (x->move) build(&b, x, HEC_OP_exchange, 1, &ids, (MlirValue){0}, x->layer, 0, NULL);
}

// ---- the pass

static bool distribute(MlirOperation module, MlirOperation route, bool move) {
    const MlirOperation backward = hec_find_symbol(module, HEC_STR("backward"));
    struct exchange x = {.module = module, .route = route, .move = move, .sound = true};
    x.set = hec_find_symbol(module, hec_any_set(route));
    x.layer = layer_around(route);
    const MlirOperation router = hec_defining(hec_operand(route, 0));
    if (!hec_op_is(x.set, HEC_OP_set)) {
        fail(&x, route, "belongs to no set");
    } else if (!hec_op_is(router, HEC_OP_router)) {
        fail(&x, route, "the ids come from no moe.router");
    }
    if (x.sound) exchange_ids(&x, router);
    if (x.sound && move) find_forward(&x);
    if (x.sound && move && backward.ptr) find_backward(&x, backward);
    if (x.sound && move) distribute_forward(&x);
    if (x.sound && move && backward.ptr) distribute_backward(&x);
    free(x.region.op);
    free(x.back.op);
    hec_map_free(&x.slots);
    return x.sound;
}

// A mixture whose result nothing uses has lost its route, but not its router: loads and losses are left, which
// would have to be those of all ranks.
static bool all_routed(MlirOperation module, const struct hec_ops *routes) {
    bool sound = true;
    struct hec_ops ops = hec_ops_in(hec_module_body(module));
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_set)) continue;
        bool routed = false;
        for (int i = 0; i < routes->count && !routed; i++) {
            routed = mlirStringRefEqual(hec_any_set(routes->op[i]), hec_any_sym_name(ops.op[k]));
        }
        if (!routed)
            hec_ir_error(ops.op[k],
                         "not yet: on several ranks, a mixture whose result nothing uses");
        sound &= routed;
    }
    free(ops.op);
    return sound;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    const MlirStringRef experts = hec_module_experts(module);
    const bool move = !mlirStringRefEqual(experts, HEC_STR("replicate"));
    struct hec_ops ops = hec_ops_below(module), routes = {0};
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_route)) push(&routes, ops.op[k]);
    }
    free(ops.op); // Much of it will be gone after the first route.
    bool sound = all_routed(module, &routes);
    for (int k = 0; k < routes.count; k++) sound &= distribute(module, routes.op[k], move);
    free(routes.op);
    if (!sound) return HEC_PASS_REFUSED;
    hec_divide_losses(module, (double)hec_module_world(module));
    hec_simplify(module); // Routes and what was kept of them are no longer used.
    if (move) hec_resize_rows(module);
    return HEC_PASS_DONE;
}

const struct hec_pass hec_pass_distribute_experts = {
    .flag = "distribute-experts",
    .summary = "Send rows to the ranks of their experts, in waves",
    .applies = hec_has_ranks,
    .run = run,
};
