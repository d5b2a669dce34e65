// gather-dense: dense parameters, which ranks have parts of, come before they are read and go behind.
//
//   before   @forward: a loop over layers %i whose body reads @wq, @norm; then a head reads @head
//   after    fssdp.all_gather(0) {params = ["wq", "norm"]}, in front of all
//            the loop: fssdp.all_gather(%i) {ahead = -1}; fssdp.await_gather(%i), reads, fssdp.forget(%i)
//            in the last layer but one: fssdp.all_gather(%i) {params = ["head"], ahead = layers - 2}
//            fssdp.await_gather(), the head, fssdp.forget() {kept = true} where logits come in blocks
//            The same in @backward, whose loops go down: {ahead = 1}.
//
// Why      A rank keeps its part alone. A unit comes together: all that the body of a loop over layers
//          reads, or all that operations between two such loops read. A unit starts while the layer before it
//          computes, one behind a loop two layers before: it may be large. Operations that need nothing of a
//          unit, as the gradient of the head, are computed before its await.
//          Where all operations read a parameter as rounded to bf16, its copy comes alone, which its owners round: half
//          of the bytes.
// Needs    distribute-dense, use-bf16.
// Leaves   `copy_alone` on such parameters. Two layers of a loop's unit at most are here at a time: verify-dense
//          proves it.
// Reports  a module that it has been through before.
#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/values.h"
#include "lang/base/arena.h"
#include "lang/base/vec.h"
#include "passes/base/movement.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"

// Reads of some parameters that come together.
struct unit {
    MlirBlock block; // The loop's, or the function's.
    MlirValue layer; // Null: the parameters have none.
    int64_t number;  // The layer, where it is a constant; else -1.
    int segment; // Outside of loops: 2 for each loop over layers before, and 1 where a loop reads.
    MlirOperation first, last;
    bool kept; // It is read behind @forward, too, which keeps logits of one block alone.
    HEC_VEC(MlirStringRef) names;
};

struct units {
    struct hec_arena arena;
    MlirOperation module;
    MlirOperation front; // The first operation of the function, before anything is built.
    HEC_VEC(struct unit *) all;
    struct hec_map stored; // Slots that the function stashes to.
};

static bool is_loop(MlirOperation op) {
    return hec_op_is(op, HEC_OP_FOR) && hec_for_of(op).count != HEC_COUNT_AT_RUN_TIME;
}

// ---- finding units

static bool is_constant(MlirValue layer) {
    return layer.ptr && hec_op_is(hec_defining(layer), HEC_OP_CONSTANT);
}

static int segment_of(MlirOperation op) {
    int segment = is_loop(op);
    for (MlirOperation at = mlirBlockGetFirstOperation(mlirOperationGetBlock(op));
         !mlirOperationEqual(at, op); at = mlirOperationGetNextInBlock(at))
        segment += is_loop(at) ? 2 : 0;
    return segment;
}

static struct unit *find(struct units *units, const struct unit *like) {
    for (int i = 0; i < units->all.count; i++) {
        struct unit *u = units->all.item[i];
        const bool same = like->number >= 0 ? u->number == like->number
                                            : u->number < 0 && u->layer.ptr == like->layer.ptr;
        if (same && mlirBlockEqual(u->block, like->block) && u->segment == like->segment) return u;
    }
    struct unit *u = HEC_NEW(&units->arena, struct unit);
    *u = *like;
    HEC_PUSH(&units->arena, &units->all, u);
    return u;
}

static bool has(const struct unit *unit, MlirStringRef name) {
    for (int i = 0; i < unit->names.count; i++) {
        if (mlirStringRefEqual(unit->names.item[i], name)) return true;
    }
    return false;
}

static void add_use(struct units *units, MlirBlock body, MlirOperation get, MlirOperation symbol,
                    MlirOperation user) {
    const MlirValue layer = hec_get_layer(get);
    struct unit like = {.block = body, .layer = layer, .number = -1};
    if (is_constant(layer))
        like.number = hec_get_int(hec_defining(layer), "value");
    else if (layer.ptr)
        like.block = hec_block_of(layer);
    const MlirOperation at = hec_ancestor_in(like.block, user);
    like.first = like.last = at;
    if (mlirBlockEqual(like.block, body)) like.segment = segment_of(at);
    struct unit *unit = find(units, &like);
    const MlirStringRef name = hec_any_sym_name(symbol);
    if (mlirOperationIsBeforeInBlock(at, unit->first)) unit->first = at;
    if (mlirOperationIsBeforeInBlock(unit->last, at)) unit->last = at;
    if (!has(unit, name)) HEC_PUSH(&units->arena, &unit->names, name);
    unit->kept = unit->kept || hec_op_is(user, HEC_OP_linear_cross_entropy);
}

static void collect(struct units *units, MlirOperation func) {
    HEC_EACH_OF (op, hec_ops_below(func), HEC_OP_get) {
        const MlirOperation symbol = hec_dense_symbol(units->module, hec_any_param(op));
        MlirOpOperand use = mlirValueGetFirstUse(hec_result(op, 0));
        if (!symbol.ptr) continue;
        for (; !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use))
            add_use(units, hec_func_body(func), op, symbol, mlirOpOperandGetOwner(use));
    }
}

// ---- building

static MlirOperation build(struct hec_builder b, const struct unit *unit, enum hec_op id,
                           MlirValue layer, int64_t ahead) {
    MlirAttribute *name = malloc(sizeof *name * (size_t)unit->names.count);
    if (!name) abort();
    for (int i = 0; i < unit->names.count; i++)
        name[i] = mlirStringAttrGet(b.context, unit->names.item[i]);
    const MlirNamedAttribute attribute[] = {
        hec_attr(b.context, "params", mlirArrayAttrGet(b.context, unit->names.count, name)),
        hec_attr_int(b.context, "ahead", ahead)};
    b.at = hec_loc_strip(b.at);
    if (unit->number >= 0) layer = hec_build_index(&b, unit->number);
    const MlirOperation built =
        hec_build_op(&b, id, layer.ptr ? 1 : 0, &layer, 0, NULL, ahead ? 2 : 1, attribute);
    free(name);
    return built;
}

static struct hec_builder behind(MlirOperation op) {
    return hec_builder_before(mlirOperationGetNextInBlock(op));
}

// The loop over layers before `op` in its block; null: there is none.
static MlirOperation loop_before(MlirOperation op) {
    MlirOperation found = {0};
    for (MlirOperation at = mlirBlockGetFirstOperation(mlirOperationGetBlock(op));
         !mlirOperationEqual(at, op); at = mlirOperationGetNextInBlock(at)) {
        if (is_loop(at)) found = at;
    }
    return found;
}

// Whether a parameter of `unit` is still here, for an earlier unit, at `start`.
static bool is_taken(const struct units *units, const struct unit *unit, MlirOperation start) {
    for (int i = 0; i < units->all.count; i++) {
        const struct unit *u = units->all.item[i];
        if (u == unit || !mlirBlockEqual(u->block, unit->block) || u->segment > unit->segment)
            continue;
        bool shared = false;
        for (int k = 0; k < unit->names.count; k++) shared = shared || has(u, unit->names.item[k]);
        if (shared && !mlirOperationIsBeforeInBlock(u->last, start)) return true;
    }
    return false;
}

// Where a unit that `first` of a function's block waits for may start.
static MlirOperation start_of(const struct units *units, const struct unit *unit,
                              MlirOperation first) {
    MlirOperation start = loop_before(first);
    if (!start.ptr) start = units->front;
    return is_taken(units, unit, start) ? first : start;
}

// The first operation of a loop's body that may use the layer.
static MlirOperation begin_of(const struct unit *unit) {
    const MlirOperation index = hec_defining(unit->layer);
    return index.ptr ? mlirOperationGetNextInBlock(index) : mlirBlockGetFirstOperation(unit->block);
}

static void bring_layers(const struct units *units, const struct unit *unit) {
    const MlirOperation op = mlirBlockGetParentOperation(unit->block);
    const struct hec_for loop = hec_for_of(op);
    const MlirOperation begin = begin_of(unit);
    struct hec_builder b = hec_builder_before(start_of(units, unit, op));
    b.at = hec_loc_strip(b.at);
    build(b, unit, HEC_OP_all_gather, hec_build_index(&b, loop.down ? loop.count - 1 : 0), 0);
    build(hec_builder_before(unit->first), unit, HEC_OP_await_gather, unit->layer, 0);
    if (loop.count > 1)
        build(hec_builder_before(begin), unit, HEC_OP_all_gather, unit->layer, loop.down ? 1 : -1);
    build(behind(unit->last), unit, HEC_OP_forget, unit->layer, 0);
}

// Whether `op` reads a parameter that ranks have parts of.
static bool reads_parts(const struct units *units, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation get = hec_defining(hec_operand(op, i));
        if (get.ptr && hec_op_is(get, HEC_OP_get) &&
            hec_dense_symbol(units->module, hec_any_param(get)).ptr)
            return true;
    }
    return false;
}

// Computes operations that need nothing of the unit before its await, up to the next loop. Additions to gradients keep
// their order.
static void delay(const struct units *units, const struct unit *unit) {
    struct hec_map behind = {0};
    bool added = false;
    for (MlirOperation op = unit->first, next; op.ptr && !hec_op_is(op, HEC_OP_FOR); op = next) {
        next = mlirOperationGetNextInBlock(op);
        const bool adds = hec_op_is(op, HEC_OP_accumulate);
        bool stays = reads_parts(units, op) || (adds && added) ||
                     !(adds || hec_may_rise(&units->stored, op) || hec_op_traits(op)->pure);
        for (int i = 0; i < mlirOperationGetNumOperands(op) && !stays; i++)
            stays = hec_map_get(&behind, hec_operand(op, i).ptr);
        if (!stays) mlirOperationMoveBefore(op, unit->first);
        for (int i = 0; i < mlirOperationGetNumResults(op) && stays; i++)
            *hec_map_at(&behind, hec_result(op, i).ptr) = 1;
        added = added || (stays && adds);
    }
    hec_map_free(&behind);
}

// The unit of the layers of `start` where this is a loop of three layers or more; NULL otherwise.
static const struct unit *unit_around(const struct units *units, MlirOperation start) {
    if (!is_loop(start) || hec_for_of(start).count < 3) return NULL;
    for (int i = 0; i < units->all.count; i++) {
        const struct unit *u = units->all.item[i];
        if (mlirOperationEqual(mlirBlockGetParentOperation(u->block), start)) return u;
    }
    return NULL;
}

// A unit behind a loop starts in its last layer but one, where the index less `ahead` is 0.
static void start(const struct units *units, const struct unit *unit) {
    const MlirValue none = {0};
    const MlirOperation at = start_of(units, unit, unit->first);
    const struct unit *around = unit_around(units, at);
    if (around) {
        const struct hec_for loop = hec_for_of(at);
        build(hec_builder_before(begin_of(around)), unit, HEC_OP_all_gather, around->layer,
              loop.down ? 1 : loop.count - 2);
    } else {
        build(hec_builder_before(at), unit, HEC_OP_all_gather, none, 0);
    }
}

static void bring(const struct units *units, const struct unit *unit) {
    const MlirValue none = {0};
    start(units, unit);
    delay(units, unit);
    build(hec_builder_before(unit->first), unit, HEC_OP_await_gather, none, 0);
    const MlirOperation forget = build(behind(unit->last), unit, HEC_OP_forget, none, 0);
    if (unit->kept) hec_forget_put_kept(forget, true);
}

static int turn_of(const struct units *units, const struct unit *unit, bool of_loop) {
    if (of_loop) return 2;
    return unit_around(units, start_of(units, unit, unit->first)) ? 1 : 0;
}

static void run_func(MlirOperation module, const char *name) {
    const MlirOperation func = hec_find_symbol(module, HEC_STR(name));
    struct units units = {.module = module};
    if (!hec_op_is(func, HEC_OP_FUNC)) return;
    units.front = mlirBlockGetFirstOperation(hec_func_body(func));
    collect(&units, func);
    hec_find_stored(func, &units.stored);
    // Units outside of loops, which the first layer waits for, come first. In a loop's body the unit of its own layers
    // is the last to be put in, and so stands first.
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < units.all.count; i++) {
            const struct unit *unit = units.all.item[i];
            const bool of_loop = !mlirBlockEqual(unit->block, hec_func_body(func));
            if (turn_of(&units, unit, of_loop) == turn)
                (of_loop ? bring_layers : bring)(&units, unit);
        }
    }
    hec_map_free(&units.stored);
    hec_arena_free(&units.arena);
}

// Marks the parameters whose copies come alone. Experts' are cut with their chunk, in which others stand, too.
static void mark_copies(MlirOperation module) {
    const struct hec_ops gets = hec_ops_below(module);
    HEC_EACH_OF (param, hec_ops_in(hec_module_body(module)), HEC_OP_param) {
        bool rounded = false, plain = hec_param_has_set(param);
        for (int i = 0; i < gets.count; i++) {
            if (!hec_op_is(gets.op[i], HEC_OP_get) ||
                !mlirStringRefEqual(hec_any_param(gets.op[i]), hec_any_sym_name(param)))
                continue;
            const bool copy = hec_type_is_rounded(mlirValueGetType(hec_get_value(gets.op[i])));
            *(copy ? &rounded : &plain) = true;
        }
        if (rounded && !plain && hec_dense_symbol(module, hec_any_sym_name(param)).ptr)
            hec_param_put_copy_alone(param, true);
    }
    free(gets.op);
}

static bool is_new(MlirOperation module) {
    bool new = true;
    HEC_EACH_OF (op, hec_ops_below(module), HEC_OP_all_gather) new = false;
    return new || hec_ir_error(module, "has been through gather-dense before");
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    if (!is_new(module)) return HEC_PASS_REFUSED;
    mark_copies(module);
    run_func(module, "forward");
    run_func(module, "backward");
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_gather_dense = {
    .applies = hec_shards_dense,
    .run = run,
};
