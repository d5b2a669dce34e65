// distribute-dense: says where the gradients of what every rank has are complete.
//
//   before   @backward: ... moe.accumulate %dwq, %i @wq; moe.accumulate %dgain, %i @norm ...
//   after    the same, and behind the last of them
//            fssdp.all_reduce(%i) {params = ["wq", "norm"], bytes = 1050624}
//            With parallel.dense = states, fssdp.reduce_scatter.
//
// Why      The ranks' gradients are summed in the background of the rest of backward: a layer's while
//          those of the layers below are computed. Only the compiler knows when they are complete.
// Needs    hecate.world of the module (without it, nothing is done); distribute-experts.
// Leaves   each trainable parameter that is no owned expert's in one operation, per layer: those of a
//          loop's body behind the last accumulate of the body; the others behind the last one before
//          and after each loop over layers. Sets of which every rank has all experts are in it as a
//          whole, by the set's name. The order is the same on every rank, as the program is.
// Reports  a parameter that two loops over layers accumulate.
#include "ir/accessors.h"
#include "passes/base/pass.h"

#include <stdlib.h>

#include "passes/base/movement.h"
#include "passes/base/rewrite.h"

// `layer` of the parameter or set `symbol` is complete behind operation `last` of `block`.
struct entry {
    MlirBlock block;
    MlirOperation last;
    MlirValue layer; // Null: it has no layers.
    MlirOperation symbol;
};

struct entries {
    struct entry *entry;
    int count, capacity;
};

static struct entry *find(struct entries *all, MlirOperation symbol, MlirValue layer) {
    for (int i = 0; i < all->count; i++) {
        struct entry *e = &all->entry[i];
        if (e->symbol.ptr == symbol.ptr && e->layer.ptr == layer.ptr) return e;
    }
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 64;
        all->entry = realloc(all->entry, sizeof *all->entry * (size_t)all->capacity);
        if (!all->entry) abort();
    }
    all->entry[all->count] = (struct entry){.symbol = symbol, .layer = layer};
    return &all->entry[all->count++];
}

// The parameter that `op` accumulates, its set where every rank has all experts; null: an expert's
// that has an owner.
static MlirOperation symbol_of(MlirOperation module, MlirOperation op) {
    const MlirOperation param = hec_find_symbol(module, hec_any_param(op));
    if (!hec_param_has_set(param)) return param;
    const MlirOperation set = hec_find_symbol(module, hec_param_set(param));
    return hec_set_owned(set) ? (MlirOperation){0} : set;
}

// Whether `v` is made in the body of a loop: the layer of that loop.
static bool is_of_loop(MlirValue v) {
    return v.ptr && hec_op_is(mlirBlockGetParentOperation(hec_block_of(v)), HEC_OP_FOR) &&
           !hec_op_is(hec_defining(v), HEC_OP_CONSTANT);
}

// All accumulates of @backward, in order: the last one of each parameter and layer stays.
static bool collect(struct entries *all, MlirOperation module, MlirOperation backward) {
    bool sound = true;
    HEC_EACH_OF (op, hec_ops_below(backward), HEC_OP_accumulate) {
        const MlirOperation symbol = symbol_of(module, op);
        if (!symbol.ptr) continue;
        const MlirValue layer = hec_accumulate_layer(op);
        const MlirBlock block = is_of_loop(layer) ? hec_block_of(layer) : hec_func_body(backward);
        struct entry *e = find(all, symbol, layer);
        e->block = block;
        e->last = hec_ancestor_in(block, op);
        for (int i = 0; i < all->count; i++) {
            const struct entry *other = &all->entry[i];
            if (other == e || other->symbol.ptr != symbol.ptr || !is_of_loop(other->layer))
                continue;
            sound = hec_ir_error(op, "not yet: two loops accumulate the gradient of one parameter");
        }
    }
    return sound;
}

// Whether a loop over layers stands behind `from`, up to `to`; both are in one block.
static bool loop_between(MlirOperation from, MlirOperation to) {
    while (!mlirOperationEqual(from, to)) {
        from = mlirOperationGetNextInBlock(from);
        if (mlirOperationIsNull(from)) return false;
        if (hec_op_is(from, HEC_OP_FOR) && hec_for_of(from).count != HEC_COUNT_AT_RUN_TIME)
            return true;
    }
    return false;
}

// Whether two entries are announced together.
static bool belong_together(const struct entry *a, const struct entry *b) {
    if (!mlirBlockEqual(a->block, b->block) || a->layer.ptr != b->layer.ptr) return false;
    if (mlirOperationEqual(a->last, b->last)) return true;
    return mlirOperationIsBeforeInBlock(a->last, b->last) ? !loop_between(a->last, b->last)
                                                          : !loop_between(b->last, a->last);
}

// Builds the operation for entry `first` and all that belong to it, which are taken out.
static void announce(struct entries *all, int first, enum hec_op id) {
    const struct entry lead = all->entry[first];
    const MlirContext c = mlirOperationGetContext(lead.last);
    MlirAttribute *name = malloc(sizeof *name * (size_t)all->count);
    if (!name) abort();
    MlirOperation last = lead.last;
    intptr_t names = 0;
    int64_t bytes = 0;
    for (int i = first; i < all->count; i++) {
        struct entry *e = &all->entry[i];
        if (!e->symbol.ptr || !belong_together(&lead, e)) continue;
        name[names++] = mlirStringAttrGet(c, hec_any_sym_name(e->symbol));
        if (mlirOperationIsBeforeInBlock(last, e->last)) last = e->last;
        bytes += hec_dense_bytes(e->symbol);
        e->symbol.ptr = NULL;
    }
    struct hec_builder b = hec_builder_before(mlirOperationGetNextInBlock(last));
    hec_builder_for(&b, last);
    b.at = hec_loc_strip(b.at);
    const MlirNamedAttribute attribute[] = {hec_attr(c, "params", mlirArrayAttrGet(c, names, name)),
                                            hec_attr_int(c, "bytes", bytes)};
    hec_build_op(&b, id, lead.layer.ptr ? 1 : 0, &lead.layer, 0, NULL, 2, attribute);
    free(name);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    const MlirOperation backward = hec_find_symbol(module, HEC_STR("backward"));
    if (!backward.ptr) return HEC_PASS_DONE;
    const bool states = hec_shares_states(module);
    struct entries all = {0};
    const bool sound = collect(&all, module, backward);
    for (int i = 0; sound && i < all.count; i++) {
        if (all.entry[i].symbol.ptr)
            announce(&all, i, states ? HEC_OP_reduce_scatter : HEC_OP_all_reduce);
    }
    free(all.entry);
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_distribute_dense = {
    .applies = hec_has_ranks,
    .run = run,
};
