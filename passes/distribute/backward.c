#include "passes/distribute/backward.h"

#include <stdio.h>

#include "ir/accessors.h"
#include "passes/base/again.h"
#include "passes/base/rewrite.h"

// Makes the slot `set.what` for `v` and keeps it there, right behind `after`.
static MlirOperation make_slot(struct hec_routed *x, MlirValue v, const char *what,
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

static MlirValue fetch(struct hec_builder *b, struct hec_routed *x, MlirOperation stash) {
    const MlirValue layer = hec_stash_layer(stash); // A loop may read values made before it.
    return hec_build_fetch(b, hec_stash_value(stash), hec_stash_slot(stash),
                           layer.ptr ? x->layer_back : layer);
}

// Rebuilds the values that `op` reads and the region does not make: parameters and constants.
static bool bring(struct hec_routed *x, struct hec_builder *b, MlirOperation op,
                  struct hec_map *map) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue v = hec_operand(op, i);
        if (hec_map_find(map, v)) continue;
        const MlirOperation made = hec_defining(v);
        const bool cheap = hec_op_is(made, HEC_OP_get) || hec_op_is(made, HEC_OP_fill) ||
                           hec_op_is(made, HEC_OP_CONSTANT);
        if (!cheap) {
            hec_routed_fail(x, op,
                            "not yet: experts that read more than their rows and parameters");
            return false;
        }
        if (!bring(x, b, made, map)) return false;
        hec_clone_mapped(b, made, map);
    }
    return true;
}

// The rows of `wave` are sent once more. `map` gets what stands for the results of the dispatch in @forward.
static void dispatch_again(struct hec_routed *x, struct hec_builder *b, MlirValue wave,
                           const MlirValue sent[2], struct hec_map *map) {
    const MlirValue made[] = {hec_dispatch_rows(x->dispatch), hec_dispatch_gate(x->dispatch),
                              hec_dispatch_first(x->dispatch)};
    MlirType type[3];
    for (int i = 0; i < 3; i++) type[i] = mlirValueGetType(made[i]);
    hec_builder_for(b, x->dispatch);
    const MlirOperation dispatch =
        hec_routed_build(b, x, HEC_OP_dispatch, 2, sent, wave, x->layer_back, 3, type);
    if (x->layer.ptr) hec_map_put(map, x->layer, x->layer_back.ptr);
    for (int i = 0; i < 3; i++) hec_map_put(map, made[i], hec_result(dispatch, i).ptr);
}

// `wave` once more, up to what it saves, where its slots hold the values of a later wave.
static void compute_again(struct hec_routed *x, struct hec_builder *b, MlirValue wave,
                          const MlirValue sent[2]) {
    const MlirValue times = hec_routed_count(b, x, HEC_OP_overwritten, wave, x->layer_back);
    struct hec_for once = hec_build_repeat(b, times, false);
    hec_for_yield(&once, b->at, NULL);
    struct hec_builder in = hec_builder_before(mlirBlockGetTerminator(once.body));
    struct hec_map map = {0};
    dispatch_again(x, &in, wave, sent, &map);
    for (int k = 0; k < x->region.count && x->sound; k++) {
        if (bring(x, &in, x->region.op[k], &map)) hec_clone_mapped(&in, x->region.op[k], &map);
    }
    hec_map_free(&map);
}

// The operation among x->back that fetches what `stash` keeps; null where backward does not read it.
static MlirOperation fetch_of(const struct hec_routed *x, MlirOperation stash) {
    for (int k = 0; k < x->back.count; k++) {
        const MlirOperation op = x->back.op[k];
        if (hec_op_is(op, HEC_OP_fetch) &&
            mlirStringRefEqual(hec_fetch_slot(op), hec_stash_slot(stash)))
            return op;
    }
    return (MlirOperation){0};
}

// Computes every wave once more, and saves nothing: the results replace backward's fetches. Returns the value that
// stands for the dispatch's `first`.
static MlirValue have_again(struct hec_routed *x, struct hec_builder *b, MlirValue wave,
                            const MlirValue sent[2]) {
    struct hec_map map = {0};
    dispatch_again(x, b, wave, sent, &map);
    for (int k = 0; k < x->region.count && x->sound; k++) {
        const MlirOperation op = x->region.op[k];
        if (!bring(x, b, op, &map)) break;
        if (!hec_op_is(op, HEC_OP_stash)) {
            hec_clone_mapped(b, op, &map);
            continue;
        }
        const MlirOperation fetch = fetch_of(x, op);
        if (!fetch.ptr) continue;
        const MlirValue again = {hec_map_find(&map, hec_stash_value(op))};
        mlirValueReplaceAllUsesOfWith(hec_fetch_value(fetch), again);
    }
    const MlirValue first = {hec_map_find(&map, hec_dispatch_first(x->dispatch))};
    hec_map_free(&map);
    return first;
}

// Moves what the region reads, and `anchor` does not see, in front of it.
static void hoist(struct hec_routed *x, MlirOperation op, MlirOperation anchor,
                  const struct hec_map *inside) {
    const MlirBlock block = mlirOperationGetBlock(anchor);
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (mlirOperationIsNull(made) || !mlirBlockEqual(mlirOperationGetBlock(made), block) ||
            hec_map_get(inside, made.ptr) || mlirOperationIsBeforeInBlock(made, anchor))
            continue;
        if (mlirOperationEqual(made, x->to) || mlirOperationEqual(made, x->to_gate)) {
            hec_routed_fail(x, op, "reads the gradient of what its own rows are");
            return;
        }
        hoist(x, made, anchor, inside);
        mlirOperationMoveBefore(made, anchor);
    }
}

// Where the rows' gradients are wanted first; where they are not, behind all that works on rows.
static MlirOperation first_end(const struct hec_routed *x) {
    if (x->to.ptr && x->to_gate.ptr)
        return mlirOperationIsBeforeInBlock(x->to_gate, x->to) ? x->to_gate : x->to;
    if (x->to.ptr || x->to_gate.ptr) return x->to.ptr ? x->to : x->to_gate;
    MlirOperation last = x->from;
    const MlirBlock block = mlirOperationGetBlock(last);
    for (int k = 0; k < x->back.count; k++) {
        const MlirOperation op = x->back.op[k];
        if (mlirBlockEqual(mlirOperationGetBlock(op), block) &&
            mlirOperationIsBeforeInBlock(last, op))
            last = op;
    }
    return mlirOperationGetNextInBlock(last);
}

static MlirOperation find_anchor(struct hec_routed *x) {
    const MlirOperation anchor = first_end(x);
    struct hec_map inside = {0};
    for (int k = 0; k < x->back.count; k++) *hec_map_at(&inside, x->back.op[k].ptr) = 1;
    for (int k = 0; k < x->back.count; k++) hoist(x, x->back.op[k], anchor, &inside);
    hoist(x, x->from, anchor, &inside);
    hec_map_free(&inside);
    return anchor;
}

// Whether what is stashed can be fetched where the rows go back: not if another loop keeps it by its layers.
static bool is_within_reach(const struct hec_routed *x, MlirOperation stash) {
    const MlirValue layer = hec_stash_layer(stash);
    return mlirValueIsNull(layer) || mlirValueEqual(layer, x->layer);
}

// Whether an operation stands where the rows' route does, not around or before a loop around it.
static bool is_beside(const struct hec_routed *x, MlirOperation op) {
    return mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(x->route));
}

// Finds the values that @forward sent, to send them again.
static void find_sent(struct hec_routed *x, struct hec_builder *b, MlirValue sent[2]) {
    static const char *const what[] = {"sent", "sent_weights"};
    for (int i = 0; i < 2; i++) {
        const MlirValue v =
            i == 0 ? hec_dispatch_x(x->dispatch) : hec_dispatch_weights(x->dispatch);
        MlirOperation stash = hec_routed_stash(v);
        if (!stash.ptr || !is_within_reach(x, stash)) {
            const MlirOperation made = hec_defining(v);
            const bool loop = hec_op_is(made, HEC_OP_FOR);
            if (!made.ptr || hec_op_is(made, HEC_OP_get) || (loop && !is_beside(x, made))) {
                hec_routed_fail(x, x->dispatch, "not yet: experts of what a block was given");
                return;
            }
            stash = make_slot(x, v, what[i], made);
        }
        sent[i] = fetch(b, x, stash);
    }
}

// The gradient where gradients stop at the rows: zeros, like `like`.
static MlirValue nothing(struct hec_builder *b, MlirValue like) {
    return hec_build_fill(b, mlirValueGetType(like), 0);
}

static bool feeds(MlirOperation op, const struct hec_map *needed) {
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        HEC_EACH_USE (use, hec_result(op, i)) {
            if (hec_map_get(needed, mlirOpOperandGetOwner(use).ptr)) return true;
        }
    }
    return false;
}

// Moves operations that `give` does not need behind it: they are computed while the rows travel.
static void put_off(const struct hec_routed *x, MlirOperation give) {
    struct hec_map needed = {0};
    *hec_map_at(&needed, give.ptr) = 1;
    MlirOperation behind = mlirOperationGetNextInBlock(give);
    for (int k = x->back.count - 1; k >= 0; k--) {
        const MlirOperation op = x->back.op[k];
        if (feeds(op, &needed)) {
            *hec_map_at(&needed, op.ptr) = 1;
        } else {
            mlirOperationMoveBefore(op, behind);
            behind = op;
        }
    }
    hec_map_free(&needed);
}

// Replaces `end`, if there is one, by what is collected.
static void replace(MlirOperation end, MlirValue collected) {
    if (!end.ptr) return;
    mlirValueReplaceAllUsesOfWith(hec_result(end, 0), collected);
    mlirOperationDestroy(end);
}

void hec_distribute_backward(struct hec_routed *x) {
    if (!x->from.ptr) return;
    const MlirOperation anchor = find_anchor(x);
    struct hec_builder b = hec_builder_before(anchor);
    hec_builder_for(&b, x->from);
    b.at = hec_loc_strip(b.at);
    MlirValue sent[2] = {{0}};
    find_sent(x, &b, sent);
    const MlirOperation first = hec_routed_stash(hec_dispatch_first(x->dispatch));
    if (!first.ptr) hec_routed_fail(x, x->route, "not yet: experts without GEMMs");
    if (!x->sound) return;
    const MlirValue waves = hec_routed_count(&b, x, HEC_OP_waves, (MlirValue){0}, x->layer_back);
    struct hec_for loop = hec_build_repeat(&b, waves, true);
    hec_for_yield(&loop, b.at, NULL);

    const MlirOperation yield = mlirBlockGetTerminator(loop.body);
    struct hec_builder in = hec_builder_before(yield);
    in.at = b.at;
    in.unit = b.unit;
    const bool all = hec_again_of(x->dispatch) == HEC_AGAIN_ALL;
    if (!all) compute_again(x, &in, loop.layer, sent);
    const MlirValue starts = all ? have_again(x, &in, loop.layer, sent) : fetch(&in, x, first);
    const MlirValue operand[] = {hec_permute_x(x->from), starts};
    const MlirType rows = mlirValueGetType(hec_permute_rows(x->from));
    hec_builder_for(&in, x->from);
    const MlirOperation dispatch = hec_routed_build(&in, x, HEC_OP_dispatch_grad, 2, operand,
                                                    loop.layer, x->layer_back, 1, &rows);
    for (int k = 0; k < x->back.count; k++) mlirOperationMoveBefore(x->back.op[k], yield);
    mlirValueReplaceAllUsesOfWith(hec_permute_rows(x->from), hec_dispatch_grad_drows(dispatch));
    in.at = b.at;
    in.unit = b.unit;
    const MlirValue given[] = {
        x->to.ptr ? hec_combine_rows(x->to) : nothing(&in, hec_dispatch_rows(x->dispatch)),
        x->to_gate.ptr ? hec_gate_rows_grad_dg(x->to_gate)
                       : nothing(&in, hec_dispatch_gate(x->dispatch)),
    };
    put_off(x, hec_routed_build(&in, x, HEC_OP_give_back_grad, 2, given, loop.layer, x->layer_back,
                                0, NULL));

    hec_builder_for(&b, x->to.ptr ? x->to : x->from);
    const MlirType type[] = {mlirValueGetType(sent[0]), mlirValueGetType(sent[1])};
    const MlirOperation collect = hec_routed_build(&b, x, HEC_OP_collect_grad, 0, NULL,
                                                   (MlirValue){0}, x->layer_back, 2, type);
    replace(x->to, hec_collect_grad_dx(collect));
    replace(x->to_gate, hec_collect_grad_dweights(collect));
    mlirOperationDestroy(x->from);
}
