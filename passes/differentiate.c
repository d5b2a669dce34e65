// differentiate: reverse mode, the whole model at once.
//
//   before   func @forward(%ids, ...) -> (%loss, ...)
//   after    the same, with moe.stash behind every value that the backward pass reads, a moe.slot
//            for each, and func @backward(%ids, ...) that fetches them and accumulates gradients
//
// Why      One rule per operation (ir/ops) gives the gradient of everything, loops and experts
//          included. Saved values are keyed by slot and layer, so that no loop has to carry them.
// Needs    @forward without calls; the derivative taken is that of its first result.
// Leaves   @backward reads only parameters, its arguments, constants and fetches. Every loop of
//          @forward became one that counts down and carries the gradients of what that one carried
//          and of what its body took from outside. moe.accumulate stands where its value was made.
//          The gradient of %h is called %dh. Parameters with trainable = false get none.
// Reports  no @forward, one that returns no scalar, a call, an operation of an unknown dialect that
//          a gradient would have to pass.
#include "ir/accessors.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"

#include "ir/core/gradient.h"
#include "passes/active.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CARRIED_MAX = 16, ARGUMENTS_MAX = 16, NAME_MAX_BYTES = 256 };

struct differentiation {
    struct hec_gradient rules; // First: gradient rules hand this pointer back.
    struct hec_builder builder;
    MlirOperation module, forward;
    struct hec_map active;  // Forward values that depend on a trainable parameter.
    struct hec_map adjoint; // Forward value -> its gradient so far, in the current block.
    struct hec_map primal;  // Forward value -> the value that stands for it in @backward.
    struct hec_map slot;    // Forward value -> its moe.slot.
    struct hec_map taken;   // Names of symbols -> 1.
    bool sound, broken;
};

// ---- names

static bool is_parameter(MlirValue v) {
    return hec_op_is(hec_defining(v), HEC_OP_get);
}

// The result of a loop is called as what it carries.
static MlirStringRef name_of(MlirValue v) {
    const MlirStringRef name = hec_value_name(v);
    const MlirOperation op = hec_defining(v);
    if (name.length || !hec_op_is(op, HEC_OP_FOR)) return name;
    const struct hec_for loop = hec_for_of(op);
    return name_of(hec_for_init(&loop, (int)mlirOpResultGetResultNumber(v)));
}

// A gradient without a name is called after its value; the name reaches the emitted program.
static void name_gradient(MlirValue v, MlirValue gradient) {
    const MlirStringRef name = name_of(v);
    const MlirOperation op = hec_defining(gradient);
    if (!name.length || mlirOperationIsNull(op) || hec_value_name(gradient).length) return;
    char text[NAME_MAX_BYTES];
    snprintf(text, sizeof text, "d%.*s", (int)name.length, name.data);
    mlirOperationSetLocation(op, hec_loc_named(text, mlirOperationGetLocation(op)));
}

// The word of a row's operands or results at `index`: "rstd" of "y rstd".
static MlirStringRef word_at(const char *words, int index) {
    while (index-- > 0) {
        words += strcspn(words, " ");
        words += strspn(words, " ");
    }
    return mlirStringRefCreate(words, strcspn(words, " ?*:"));
}

// The value's own name, with the word of its result where one operation has several: "n.rstd";
// after the operation when it has none: "route.pair". A loop's result is "x.last".
static void describe(MlirValue v, char *text, size_t room) {
    const MlirOperation op = hec_defining(v);
    const MlirStringRef name = name_of(v);
    if (!op.ptr || hec_op_is(op, HEC_OP_FOR)) {
        const MlirStringRef known =
            name.length ? name : HEC_STR("value"); // Text may have no names.
        snprintf(text, room, "%.*s%s", (int)known.length, known.data, op.ptr ? ".last" : "");
        return;
    }
    const struct hec_op_row *row = hec_op_row(hec_op_of(op));
    const char *dot = strchr(row->name, '.');
    const int index = (int)mlirOpResultGetResultNumber(v);
    const bool several = mlirOperationGetNumResults(op) > 1 && (index > 0 || !name.length);
    const MlirStringRef word = several ? word_at(row->results, index) : HEC_STR("");
    const MlirStringRef own = name.length ? name : HEC_STR(dot ? dot + 1 : row->name);
    snprintf(text, room, "%.*s%s%.*s", (int)own.length, own.data, several ? "." : "",
             (int)word.length, word.data);
}

// The name of `v`'s slot: its unit's and its own, made unique in the module.
static MlirStringRef slot_name(struct differentiation *d, MlirValue v) {
    const MlirOperation made = hec_defining(v);
    const MlirStringRef unit = made.ptr ? hec_unit_name(made) : HEC_STR("");
    char own[NAME_MAX_BYTES], text[2 * NAME_MAX_BYTES], unique[2 * NAME_MAX_BYTES + 16];
    describe(v, own, sizeof own);
    snprintf(text, sizeof text, "%.*s%s%s", (int)unit.length, unit.data, unit.length ? "." : "",
             own);
    snprintf(unique, sizeof unique, "%s", text);
    const MlirIdentifier first = mlirIdentifierGet(d->builder.context, HEC_STR(text));
    for (intptr_t n = hec_map_get(&d->taken, first.ptr);; n++) {
        const MlirIdentifier id = mlirIdentifierGet(d->builder.context, HEC_STR(unique));
        if (!hec_map_get(&d->taken, id.ptr)) {
            *hec_map_at(&d->taken, id.ptr) = 1;
            *hec_map_at(&d->taken, first.ptr) = n > 1 ? n : 1;
            return mlirIdentifierStr(id);
        }
        snprintf(unique, sizeof unique, "%s.%d", text, (int)(n > 1 ? n : 1));
    }
}

// ---- values of @forward in @backward

// The loop of @forward around the definition of `v`; null when there is none.
static MlirOperation loop_around(MlirValue v) {
    const MlirOperation parent = mlirBlockGetParentOperation(hec_block_of(v));
    return hec_op_is(parent, HEC_OP_FOR) ? parent : (MlirOperation){0};
}

// Makes the slot of `v` and stashes it right behind its definition.
static MlirOperation make_slot(struct differentiation *d, MlirValue v) {
    const MlirOperation around = loop_around(v), definition = hec_defining(v);
    const MlirBlock block = hec_block_of(v);
    const MlirContext c = d->builder.context;
    struct hec_for loop = {0};
    if (around.ptr) loop = hec_for_of(around);

    struct hec_builder b = hec_builder_before(d->forward);
    b.at = hec_loc_strip(hec_value_location(v)); // A symbol has no unit.
    MlirNamedAttribute attribute[4] = {
        hec_attr(c, "sym_name", mlirStringAttrGet(c, slot_name(d, v))),
        hec_attr_type(c, "type", mlirValueGetType(v)),
        hec_attr_int(c, "layers", loop.count),
    };
    const int attributes = 3 + hec_rows_attr(hec_rows_of_value(v), &attribute[3]);
    const MlirOperation slot =
        hec_build_op(&b, HEC_OP_slot, 0, NULL, 0, NULL, attributes, attribute);

    hec_builder_for_value(&b, v);
    b.at = hec_loc_strip(b.at);
    b.block = block;
    b.before = definition.ptr ? mlirOperationGetNextInBlock(definition)
                              : mlirBlockGetFirstOperation(block);
    const MlirNamedAttribute symbol = hec_attr_symbol(c, "slot", hec_slot_sym_name(slot));
    const MlirValue operand[] = {v, loop.layer};
    hec_build_op(&b, HEC_OP_stash, around.ptr ? 2 : 1, operand, 0, NULL, 1, &symbol);
    return slot;
}

static MlirValue primal(struct hec_gradient *rules, MlirValue v);

static MlirValue make_again(struct differentiation *d, MlirValue v) {
    const MlirOperation op = hec_defining(v);
    struct hec_map map = {0};
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        hec_map_put(&map, hec_operand(op, i), primal(&d->rules, hec_operand(op, i)).ptr);
    }
    const MlirOperation clone = hec_clone_mapped(&d->builder, op, &map);
    hec_map_free(&map);
    return hec_result(clone, (int)mlirOpResultGetResultNumber(v));
}

static MlirValue fetch(struct differentiation *d, MlirValue v) {
    MlirOperation slot = {hec_map_find(&d->slot, v)};
    if (!slot.ptr) {
        slot = make_slot(d, v);
        hec_map_put(&d->slot, v, slot.ptr);
    }
    const MlirOperation around = loop_around(v);
    MlirValue layer = {0};
    if (around.ptr) layer = primal(&d->rules, hec_for_of(around).layer);
    return hec_build_fetch(&d->builder, v, hec_slot_sym_name(slot), layer);
}

// Recomputed instead of saved: values that are the same anywhere, and the transpose of a parameter.
static bool is_made_again(MlirOperation op) {
    if (mlirOperationIsNull(op)) return false;
    return hec_same_anywhere(op) ||
           (hec_op_is(op, HEC_OP_transpose) && is_parameter(hec_transpose_a(op)));
}

static MlirValue primal(struct hec_gradient *rules, MlirValue v) {
    struct differentiation *d = (struct differentiation *)rules;
    const MlirValue known = {hec_map_find(&d->primal, v)};
    if (known.ptr && hec_visible(known, d->builder.block)) return known;
    const MlirOperation op = hec_defining(v);
    const MlirValue found = is_made_again(op) ? make_again(d, v) : fetch(d, v);
    hec_map_put(&d->primal, v, found.ptr);
    return found;
}

// ---- gradients

static bool wants(struct hec_gradient *rules, MlirValue v) {
    return hec_map_get(&((struct differentiation *)rules)->active, v.ptr) != 0;
}

static MlirValue adjoint_of(struct differentiation *d, MlirValue v, bool or_zero) {
    const MlirValue known = {hec_map_find(&d->adjoint, v)};
    if (known.ptr || !or_zero) return known;
    const MlirValue zero = hec_build_fill(&d->builder, mlirValueGetType(v), 0);
    name_gradient(v, zero);
    return zero;
}

static MlirValue of(struct hec_gradient *rules, MlirValue v, bool or_zero) {
    return adjoint_of((struct differentiation *)rules, v, or_zero);
}

// The gradient of a parameter goes to its memory at once: uses of one parameter need not meet. That of
// its rounded copy is its own: rounding counts as the identity.
static void accumulate(struct differentiation *d, MlirValue v, MlirValue gradient) {
    const MlirOperation get = hec_defining(v);
    const MlirValue layer = hec_get_layer(get);
    MlirValue operand[2] = {gradient};
    if (layer.ptr) operand[1] = primal(&d->rules, layer);
    const MlirNamedAttribute symbol =
        hec_attr_symbol(d->builder.context, "param", hec_get_param(get));
    hec_build_op(&d->builder, HEC_OP_accumulate, layer.ptr ? 2 : 1, operand, 0, NULL, 1, &symbol);
}

static void add(struct hec_gradient *rules, MlirValue v, MlirValue gradient) {
    struct differentiation *d = (struct differentiation *)rules;
    if (!wants(rules, v)) return;
    if (!mlirTypeEqual(hec_type_unrounded(mlirValueGetType(v)), mlirValueGetType(gradient))) {
        const MlirStringRef name = hec_value_name(v);
        d->sound = hec_ir_error(
            d->forward, "internal error: the gradient of %%%.*s has another type than the value",
            (int)name.length, name.data);
        d->broken = true;
        return;
    }
    name_gradient(v, gradient);
    if (is_parameter(v)) {
        accumulate(d, v, gradient);
        return;
    }
    const MlirValue before = adjoint_of(d, v, false);
    if (before.ptr) {
        const MlirValue operand[] = {before, gradient};
        gradient =
            hec_build_value(&d->builder, HEC_OP_add, 2, operand, mlirValueGetType(v), 0, NULL);
        name_gradient(v, gradient);
    }
    hec_map_put(&d->adjoint, v, gradient.ptr);
}

// ---- reversal

static void reverse_block(struct differentiation *d, MlirBlock block);

// Appends the active values from outside that operations in or below `body` read. Returns how many
// there are now; one more than `most` when they do not fit.
static int captured(const struct differentiation *d, MlirBlock body, MlirValue *value, int count,
                    int most) {
    struct hec_ops ops = hec_ops_below(mlirBlockGetParentOperation(body));
    for (int k = 1; k < ops.count; k++) {
        for (int i = 0; i < mlirOperationGetNumOperands(ops.op[k]); i++) {
            const MlirValue v = hec_operand(ops.op[k], i);
            bool skip = !hec_map_get(&d->active, v.ptr) || is_parameter(v) ||
                        mlirBlockEqual(hec_block_of(v), body) || !hec_visible(v, body);
            for (int j = 0; j < count && !skip; j++) skip = mlirValueEqual(value[j], v);
            if (skip) continue;
            if (count == most) {
                free(ops.op);
                return most + 1;
            }
            value[count++] = v;
        }
    }
    free(ops.op);
    return count;
}

// Values that the reversed loop carries: gradients of the active carried values, then of the captured.
struct reversal {
    int carried, all;
    int index[CARRIED_MAX];          // Index of carried value k in @forward's loop.
    MlirValue captured[CARRIED_MAX]; // From `carried` on.
};

static bool plan_reversal(struct differentiation *d, const struct hec_for *loop,
                          struct reversal *plan) {
    *plan = (struct reversal){0};
    for (int k = 0; k < loop->carried; k++) {
        if (wants(&d->rules, hec_for_argument(loop, k))) plan->index[plan->carried++] = k;
    }
    plan->all = captured(d, loop->body, plan->captured, plan->carried, CARRIED_MAX);
    if (plan->all <= CARRIED_MAX) return true;
    hec_ir_error(loop->op, "carries and reads more than %d values with a gradient", CARRIED_MAX);
    return d->sound = false;
}

static void reverse_loop(struct differentiation *d, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    const struct hec_builder outside = d->builder;
    struct reversal plan;
    if (!plan_reversal(d, &loop, &plan)) return;

    MlirValue value[CARRIED_MAX];
    for (int k = 0; k < plan.all; k++) {
        const bool carried = k < plan.carried;
        value[k] = adjoint_of(d, carried ? hec_result(op, plan.index[k]) : plan.captured[k], true);
    }
    struct hec_for down = hec_build_for(&d->builder, loop.count, !loop.down, plan.all, value);
    hec_map_put(&d->primal, loop.layer, down.layer.ptr);
    d->builder = hec_builder_end(down.body, outside.at);
    d->builder.unit = outside.unit;
    for (int k = plan.carried; k < plan.all; k++) {
        hec_map_put(&d->adjoint, plan.captured[k], hec_for_argument(&down, k).ptr);
    }
    for (int k = 0; k < plan.carried; k++) {
        add(&d->rules, hec_for_yielded(&loop, plan.index[k]), hec_for_argument(&down, k));
    }
    reverse_block(d, loop.body);

    d->builder.at = outside.at;
    d->builder.unit = outside.unit;
    for (int k = 0; k < plan.all; k++) {
        const bool carried = k < plan.carried;
        value[k] = adjoint_of(
            d, carried ? hec_for_argument(&loop, plan.index[k]) : plan.captured[k], true);
    }
    hec_for_yield(&down, outside.at, value);
    d->builder = outside;
    for (int k = plan.carried; k < plan.all; k++) {
        hec_map_put(&d->adjoint, plan.captured[k], hec_result(down.op, k).ptr);
    }
    for (int k = 0; k < plan.carried; k++) {
        add(&d->rules, hec_for_init(&loop, plan.index[k]), hec_result(down.op, k));
    }
}

static bool is_reached(const struct differentiation *d, MlirOperation op) {
    bool reached = false, active = false;
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        reached |= hec_map_get(&d->adjoint, hec_result(op, i).ptr) != 0;
        active |= hec_map_get(&d->active, hec_result(op, i).ptr) != 0;
    }
    return reached && active;
}

static void reverse_block(struct differentiation *d, MlirBlock block) {
    struct hec_ops ops = hec_ops_in(block); // The C API cannot step backwards.
    for (int k = ops.count - 1; k >= 0; k--) {
        const MlirOperation op = ops.op[k];
        if (!is_reached(d, op)) continue;
        hec_builder_for(&d->builder, op);
        d->builder.at = hec_loc_strip(d->builder.at);
        if (hec_op_is(op, HEC_OP_FOR)) {
            reverse_loop(d, op);
        } else if (hec_op_traits(op)->gradient) {
            hec_op_traits(op)->gradient(&d->rules, op);
        }
    }
    free(ops.op);
}

static void build_backward(struct differentiation *d) {
    const MlirBlock body = hec_func_body(d->forward);
    const int arguments = (int)mlirBlockGetNumArguments(body);
    MlirType type[ARGUMENTS_MAX];
    MlirLocation at[ARGUMENTS_MAX];
    for (int i = 0; i < arguments; i++) {
        type[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
        at[i] = mlirValueGetLocation(mlirBlockGetArgument(body, i));
    }
    const MlirLocation func_at = mlirOperationGetLocation(d->forward);
    MlirBlock entry;
    const MlirOperation backward =
        hec_build_func(hec_module_body(d->module), mlirOperationGetNextInBlock(d->forward),
                       "backward", arguments, type, at, func_at, &entry);
    d->builder = hec_builder_end(entry, func_at);
    for (int i = 0; i < arguments; i++) {
        hec_map_put(&d->primal, mlirBlockGetArgument(body, i), mlirBlockGetArgument(entry, i).ptr);
    }
    const MlirValue loss = hec_operand(mlirBlockGetTerminator(body), 0);
    add(&d->rules, loss, hec_build_fill(&d->builder, mlirValueGetType(loss), 1));
    reverse_block(d, body);
    d->builder.at = func_at;
    d->builder.unit = (MlirAttribute){0};
    hec_build_return(&d->builder, backward, 0, NULL);
}

static bool check(MlirOperation module, MlirOperation forward) {
    if (mlirOperationIsNull(forward) || !hec_op_is(forward, HEC_OP_FUNC))
        return hec_ir_error(module, "no function @forward to differentiate");
    if (!mlirOperationIsNull(hec_find_symbol(module, HEC_STR("backward"))))
        return hec_ir_error(forward, "is differentiated already: there is a @backward");
    const MlirBlock body = hec_func_body(forward);
    const MlirOperation ret = mlirBlockGetTerminator(body);
    if (mlirBlockGetNumArguments(body) > ARGUMENTS_MAX)
        return hec_ir_error(forward, "has more than %d arguments", ARGUMENTS_MAX);
    if (mlirOperationGetNumOperands(ret) == 0 ||
        !hec_type_is_real(mlirValueGetType(hec_operand(ret, 0))) ||
        mlirShapedTypeGetRank(mlirValueGetType(hec_operand(ret, 0))) != 0)
        return hec_ir_error(ret,
                            "the first result has to be the loss, a tensor without dimensions");
    return true;
}

static void collect_names(struct differentiation *d) {
    struct hec_ops ops = hec_ops_in(hec_module_body(d->module));
    for (int k = 0; k < ops.count; k++) {
        const MlirStringRef name = hec_any_sym_name(ops.op[k]);
        if (!name.length) continue;
        *hec_map_at(&d->taken, mlirIdentifierGet(d->builder.context, name).ptr) = 1;
        // A value that was stashed before, as the logits are, keeps its slot.
    }
    free(ops.op);
    ops = hec_ops_below(d->forward);
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_stash)) continue;
        const MlirStringRef name = hec_any_slot(ops.op[k]);
        hec_map_put(&d->slot, hec_stash_value(ops.op[k]), hec_find_symbol(d->module, name).ptr);
    }
    free(ops.op);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    const MlirOperation forward = hec_find_symbol(module, HEC_STR("forward"));
    if (!check(module, forward)) return HEC_PASS_REFUSED;
    struct differentiation d = {.rules = {.of = of, .primal = primal, .add = add, .wants = wants},
                                .module = module,
                                .forward = forward,
                                .sound = true};
    d.rules.builder = &d.builder;
    d.builder.context = mlirOperationGetContext(module);
    if (hec_find_active(forward, &d.active)) {
        collect_names(&d);
        build_backward(&d);
    } else {
        d.sound = false;
    }
    hec_map_free(&d.active);
    hec_map_free(&d.adjoint);
    hec_map_free(&d.primal);
    hec_map_free(&d.slot);
    hec_map_free(&d.taken);
    return d.broken ? HEC_PASS_BROKEN : d.sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_differentiate = {
    .run = run,
};
