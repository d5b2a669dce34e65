// fuse-elementwise: elementwise operations over one iteration space become one loop.
//
//   before   %s = moe.silu(%a); %b = moe.contract(%x, %w); %h = moe.mul(%s, %b)
//   after    %b = moe.contract(%x, %w)
//            %h = moe.fused(%a, %b) { ^(%p, %q): %s = moe.silu(%p); %h = moe.mul(%s, %q) }
//
// Why      Such operations take the time of moving their operands. In one loop each input is read
//          once, each output written once, and a value used only inside has no memory at all.
// Needs    only a module that verifies. Runs before place-buffers: values are still immutable, so
//          moving an operation without effects past another changes nothing.
// Leaves   moe.fused regions of elementwise operations whose results have all one type; inputs may
//          be broadcast (gain[D], gate[rows]). Operations need not have been neighbours: the
//          earlier ones sink, or the later ones rise together with the reads of parameters and
//          slots that they wait for. A stash or an accumulate of a result follows it. No fused loop
//          has more than 16 arrays. Scalars are left alone.
// Reports  nothing.
#include "passes/base/pass.h"

#include <stdlib.h>

#include "ir/ops/fused.h"
#include "lang/base/vec.h"
#include "passes/base/rewrite.h"
#include "passes/sums.h"

enum { ARRAYS_MAX = 16, OPERATIONS_MAX = 256, ROUNDS_MAX = 8 };

// Operations that become one; they stand next to each other in their block, in order.
struct group {
    HEC_VEC(MlirOperation) ops;
    MlirType space;
    bool merged; // Into another group: no longer of use.
};

struct fusion {
    struct hec_arena arena;
    struct hec_map group;        // Elementwise operation -> its group.
    struct hec_map stored, read; // Slot symbols that this function stashes, and fetches.
    HEC_VEC(struct group *) groups;
};

static const void *slot_key(MlirOperation op) {
    return mlirOperationGetAttributeByName(op, HEC_STR("slot")).ptr;
}

static struct group *group_of(const struct fusion *f, MlirOperation op) {
    return (struct group *)hec_map_get(&f->group, op.ptr);
}

static MlirOperation first_of(const struct group *g) {
    return g->ops.item[0];
}

static MlirOperation last_of(const struct group *g) {
    return g->ops.item[g->ops.count - 1];
}

static bool is_candidate(MlirOperation op) {
    return hec_op_traits(op)->elementwise && !hec_op_is(op, HEC_OP_fill) &&
           mlirOperationGetNumResults(op) == 1 &&
           mlirShapedTypeGetRank(mlirValueGetType(hec_result(op, 0))) > 0 &&
           hec_sum_operand(op) < 0;
}

// A stash or accumulate of a fused value can wait for it.
static bool may_wait(const struct fusion *f, MlirOperation op) {
    if (hec_op_is(op, HEC_OP_stash)) return !hec_map_get(&f->read, slot_key(op));
    return hec_op_is(op, HEC_OP_accumulate);
}

// ---- may two groups stand together?

// `early` can move down to `late`: all operations in between that read it can wait.
static bool can_sink(const struct fusion *f, const struct group *early, const struct group *late) {
    const MlirBlock block = mlirOperationGetBlock(first_of(late));
    for (int i = 0; i < early->ops.count; i++) {
        HEC_EACH_USE (use, hec_result(early->ops.item[i], 0)) {
            const MlirOperation owner = mlirOpOperandGetOwner(use);
            const MlirOperation user = hec_ancestor_in(block, owner);
            if (group_of(f, user) == early || !mlirOperationIsBeforeInBlock(user, first_of(late)))
                continue;
            if (!may_wait(f, user)) return false;
        }
    }
    return true;
}

static bool operands_can_rise(const struct fusion *f, MlirOperation op, const struct group *to,
                              const struct group *with) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (mlirOperationIsNull(made) ||
            !mlirBlockEqual(mlirOperationGetBlock(made), mlirOperationGetBlock(op)))
            continue;
        const struct group *own = group_of(f, made);
        if (own && (own == to || own == with)) continue;
        if (mlirOperationIsBeforeInBlock(made, first_of(to))) continue;
        if (!hec_may_rise(&f->stored, made) || !operands_can_rise(f, made, to, with)) return false;
    }
    return true;
}

// `late` can move up to `early`: all it reads is there, or can be read earlier.
static bool can_rise(const struct fusion *f, const struct group *early, const struct group *late) {
    for (int i = 0; i < late->ops.count; i++) {
        if (!operands_can_rise(f, late->ops.item[i], early, late)) return false;
    }
    return true;
}

// ---- moving

// Moves `op` so that `second` follows `first`; one of the two is `op`. After a move MLIR numbers the
// whole block anew, so that only what is elsewhere moves.
static void put_behind(MlirOperation first, MlirOperation second, MlirOperation op) {
    if (mlirOperationEqual(mlirOperationGetNextInBlock(first), second)) return;
    if (mlirOperationEqual(op, first))
        mlirOperationMoveBefore(op, second);
    else
        mlirOperationMoveAfter(op, first);
}

static void sink(const struct fusion *f, struct group *early, const struct group *late) {
    MlirOperation to = first_of(late);
    for (int i = early->ops.count - 1; i >= 0; i--) {
        put_behind(early->ops.item[i], to, early->ops.item[i]);
        to = early->ops.item[i];
    }
    for (int i = early->ops.count - 1; i >= 0; i--) {
        const MlirValue v = hec_result(early->ops.item[i], 0);
        HEC_EACH_USE (use, v) {
            const MlirOperation user = mlirOpOperandGetOwner(use);
            if (may_wait(f, user) && mlirOperationIsBeforeInBlock(user, last_of(late)))
                mlirOperationMoveAfter(user, last_of(late));
        }
    }
}

static void raise_operands(const struct fusion *f, MlirOperation op, MlirOperation to) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (mlirOperationIsNull(made) || group_of(f, made) ||
            !mlirBlockEqual(mlirOperationGetBlock(made), mlirOperationGetBlock(op)) ||
            mlirOperationIsBeforeInBlock(made, to))
            continue;
        raise_operands(f, made, to);
        mlirOperationMoveBefore(made, to);
    }
}

static void rise(const struct fusion *f, const struct group *early, struct group *late) {
    MlirOperation after = last_of(early);
    for (int i = 0; i < late->ops.count; i++) {
        raise_operands(f, late->ops.item[i], first_of(early));
        put_behind(after, late->ops.item[i], late->ops.item[i]);
        after = late->ops.item[i];
    }
}

// ---- what goes in and out

static bool is_inside(const struct fusion *f, MlirOperation op, const struct group *a,
                      const struct group *b) {
    const struct group *own = mlirOperationIsNull(op) ? NULL : group_of(f, op);
    return own && (own == a || own == b);
}

static bool is_output(const struct fusion *f, MlirValue v, const struct group *a,
                      const struct group *b) {
    HEC_EACH_USE (use, v) {
        if (!is_inside(f, mlirOpOperandGetOwner(use), a, b)) return true;
    }
    return false;
}

// Adds the inputs of `g` to `input`, each once; constants are made inside. Stops when there are
// many.
static int collect_inputs(const struct fusion *f, const struct group *g, const struct group *other,
                          MlirValue input[ARRAYS_MAX], int count) {
    for (int k = 0; k < g->ops.count; k++) {
        for (int i = 0; i < mlirOperationGetNumOperands(g->ops.item[k]); i++) {
            const MlirValue v = hec_operand(g->ops.item[k], i);
            const MlirOperation made = hec_defining(v);
            bool skip = is_inside(f, made, g, other) || hec_op_is(made, HEC_OP_fill);
            for (int j = 0; j < count && !skip; j++) skip = mlirValueEqual(input[j], v);
            if (skip) continue;
            if (count == ARRAYS_MAX) return count;
            input[count++] = v;
        }
    }
    return count;
}

static int count_outputs(const struct fusion *f, const struct group *g, const struct group *other) {
    int count = 0;
    for (int k = 0; k < g->ops.count; k++) {
        count += is_output(f, hec_result(g->ops.item[k], 0), g, other);
    }
    return count;
}

// A loop of more operations than fit into registers gains nothing, and deciding about it takes long.
static bool is_small(const struct fusion *f, const struct group *a, const struct group *b) {
    MlirValue input[ARRAYS_MAX];
    if (a->ops.count + b->ops.count > OPERATIONS_MAX) return false;
    const int inputs = collect_inputs(f, b, a, input, collect_inputs(f, a, b, input, 0));
    return inputs + count_outputs(f, a, b) + count_outputs(f, b, a) <= ARRAYS_MAX;
}

// ---- merging

static bool merge(struct fusion *f, struct group *a, struct group *b) {
    if (a == b || !mlirTypeEqual(a->space, b->space) || !is_small(f, a, b)) return false;
    struct group *early = a, *late = b;
    if (mlirOperationIsBeforeInBlock(first_of(b), first_of(a))) early = b, late = a;
    if (can_sink(f, early, late)) {
        sink(f, early, late);
    } else if (can_rise(f, early, late)) {
        rise(f, early, late);
    } else {
        return false;
    }
    for (int k = 0; k < late->ops.count; k++) {
        const MlirOperation op = late->ops.item[k];
        *hec_map_at(&f->group, op.ptr) = (intptr_t)early;
        HEC_PUSH(&f->arena, &early->ops, op);
    }
    late->merged = true;
    return true;
}

// Groups beside `op`: those that make its operands, and those that read one of full size too.
static bool merge_around(struct fusion *f, MlirOperation op) {
    const MlirBlock block = mlirOperationGetBlock(op);
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue v = hec_operand(op, i);
        const MlirOperation made = hec_defining(v);
        struct group *own = group_of(f, op);
        struct group *other = mlirOperationIsNull(made) ? NULL : group_of(f, made);
        if (other && mlirBlockEqual(mlirOperationGetBlock(made), block) && merge(f, other, own))
            return true;
        if (!mlirTypeEqual(mlirValueGetType(v), own->space)) continue;
        HEC_EACH_USE (use, v) {
            const MlirOperation user = mlirOpOperandGetOwner(use);
            other = group_of(f, user);
            if (other && mlirBlockEqual(mlirOperationGetBlock(user), block) && merge(f, other, own))
                return true;
        }
    }
    return false;
}

// ---- building

// Clones the group's operations into `body`, whose arguments stand for the inputs, and yields.
static void fill_body(const struct group *g, MlirBlock body, const MlirValue *input, int outputs,
                      const MlirValue *output) {
    struct hec_map map = {0};
    for (int i = 0; i < mlirBlockGetNumArguments(body); i++) {
        hec_map_put(&map, input[i], mlirBlockGetArgument(body, i).ptr);
    }
    struct hec_builder b = hec_builder_end(body, mlirOperationGetLocation(last_of(g)));
    for (int k = 0; k < g->ops.count; k++) {
        for (int i = 0; i < mlirOperationGetNumOperands(g->ops.item[k]); i++) {
            const MlirValue v = hec_operand(g->ops.item[k], i);
            const bool constant = hec_op_is(hec_defining(v), HEC_OP_fill);
            if (constant && !hec_map_find(&map, v)) hec_clone_mapped(&b, hec_defining(v), &map);
        }
        hec_clone_mapped(&b, g->ops.item[k], &map);
    }
    MlirValue yielded[ARRAYS_MAX];
    for (int i = 0; i < outputs; i++) yielded[i].ptr = hec_map_find(&map, output[i]);
    b.at = hec_loc_strip(b.at);
    hec_build_op(&b, HEC_OP_YIELD, outputs, yielded, 0, NULL, 0, NULL);
    hec_map_free(&map);
}

static void build_fused(const struct fusion *f, const struct group *g) {
    MlirValue input[ARRAYS_MAX], output[ARRAYS_MAX];
    MlirType type[ARRAYS_MAX];
    const int inputs = collect_inputs(f, g, g, input, 0);
    int outputs = 0;
    for (int k = 0; k < g->ops.count; k++) {
        const MlirValue v = hec_result(g->ops.item[k], 0);
        if (!is_output(f, v, g, g)) continue;
        type[outputs] = g->space;
        output[outputs++] = v;
    }
    if (outputs == 0) return; // Nothing of it is used.
    struct hec_builder b = hec_builder_before(first_of(g));
    hec_builder_for(&b, hec_defining(output[outputs - 1]));
    MlirBlock body;
    const MlirOperation fused = hec_build_fused(&b, inputs, input, outputs, type, &body);
    fill_body(g, body, input, outputs, output);
    for (int i = 0; i < outputs; i++) {
        mlirValueReplaceAllUsesOfWith(output[i], hec_result(fused, i));
    }
    for (int k = g->ops.count - 1; k >= 0; k--) mlirOperationDestroy(g->ops.item[k]);
}

static void find_groups(struct fusion *f, const struct hec_ops *ops) {
    for (int k = 0; k < ops->count; k++) {
        const MlirOperation op = ops->op[k];
        if (hec_op_is(op, HEC_OP_fetch)) *hec_map_at(&f->read, slot_key(op)) = 1;
        if (!is_candidate(op) || hec_op_is(mlirOperationGetParentOperation(op), HEC_OP_fused))
            continue;
        struct group *g = HEC_NEW(&f->arena, struct group);
        g->space = mlirValueGetType(hec_result(op, 0));
        HEC_PUSH(&f->arena, &g->ops, op);
        HEC_PUSH(&f->arena, &f->groups, g);
        *hec_map_at(&f->group, op.ptr) = (intptr_t)g;
    }
}

static void fuse(MlirOperation func) {
    struct fusion f = {0};
    struct hec_ops ops = hec_ops_below(func);
    hec_find_stored(func, &f.stored);
    find_groups(&f, &ops);
    for (int round = 0, merged = 1; merged && round < ROUNDS_MAX; round++) {
        merged = 0;
        for (int k = 0; k < ops.count; k++) {
            while (group_of(&f, ops.op[k]) && merge_around(&f, ops.op[k])) merged++;
        }
    }
    for (int i = 0; i < f.groups.count; i++) {
        const struct group *g = f.groups.item[i];
        if (!g->merged && g->ops.count > 1) build_fused(&f, g);
    }
    free(ops.op);
    hec_map_free(&f.group);
    hec_map_free(&f.stored);
    hec_map_free(&f.read);
    hec_arena_free(&f.arena);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_FUNC) fuse(op);
    hec_simplify(module); // Constants that moved inside are no longer used outside.
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_fuse_elementwise = {
    .run = run,
};
