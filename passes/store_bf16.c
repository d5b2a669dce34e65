// store-bf16: tensors of tokens are kept as bf16.
//
//   before   %y, %rstd = moe.rmsnorm(%x, %g) : f32; %h = moe.contract(%y, %w) {rounds = true} : f32
//   after    %y = .. : bf16, %rstd = .. : f32; %h = .. : bf16
//
// Why      Activations, their gradients, saved values and rows take half of the memory and half of the time that moving
//          them takes, and tensor cores multiply bf16. Arithmetic stays that of f32: readers of a value widen it,
//          writers round it.
// Needs    a target with bf16_values, and use-bf16 before it: `rounds` says which GEMMs multiply bf16.
// Leaves   bf16: tensors that have a dimension `batch` or `rows`, as far as their kernels have forms of bf16
//          (kernels.def, values), with the loops, sums and slots between them, and the rows that ranks send each other. f32: parameters and their gradients,
//          statistics of norms and attention, losses, and values made of these alone, as everything about routers.
//          moe.copy changes the type between a value and a kernel that has no form for it.
// Reports  nothing.
#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/ops/contract.h"
#include "ir/ops/fused.h"
#include "ir/ops/head_loss.h"
#include "ir/target/target.h"
#include "ir/values.h"
#include "passes/base/pass.h"

enum { BOUNDS = 3 }; // Operands of scf.for before the initial values.

struct types {
    MlirOperation module;
    struct hec_ops ops;       // In all functions, without the bodies of fused loops.
    struct hec_ops slots;     // Symbols.
    struct hec_map bf16;      // Values, slots and sets (the rows that ranks send) that become bf16.
    struct hec_map converted; // Value -> the copy of it that has the other type.
    bool found;               // Something more is.
};

// ---- deciding: from GEMMs that round and from embeddings to all that is made of their results

static bool is_of_tokens(MlirType type) {
    if (!mlirTypeIsARankedTensor(type) || !mlirTypeIsAF32(mlirShapedTypeGetElementType(type)))
        return false;
    const struct hec_tensor t = hec_tensor_of(type);
    return hec_tensor_find(&t, HEC_STR("batch")) >= 0 ||
           hec_tensor_find(&t, HEC_STR("rows")) >= 0 || hec_tensor_find(&t, HEC_STR("block")) >= 0;
}

static bool is_bf16(const struct types *s, MlirValue v) {
    return hec_map_get(&s->bf16, v.ptr);
}

// `of`: a value or a slot, of this type.
static void choose_bf16(struct types *s, const void *of, MlirType type) {
    if (!is_of_tokens(type) || hec_map_get(&s->bf16, of)) return;
    *hec_map_at(&s->bf16, of) = 1;
    s->found = true;
}

static bool reads_bf16(const struct types *s, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (is_bf16(s, hec_operand(op, i))) return true;
    }
    return false;
}

// Whether the kernel for `op` is to be called in its form of bf16: a GEMM that rounds; another one that reads a value
// of bf16 or, as the rows of an embedding, makes one of none.
static bool has_form(const struct types *s, MlirOperation op, const struct hec_kernel *kernel) {
    if (!*kernel->values) return false;
    if (hec_is_product(op) || hec_is_head_loss(op)) return hec_any_rounds(op);
    bool listed = false;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (!hec_kernel_keeps_bf16(kernel, false, i)) continue;
        if (is_bf16(s, hec_operand(op, i))) return true;
        listed = true;
    }
    return !listed;
}

static void decide_loop(struct types *s, MlirOperation op) {
    const struct hec_for loop = hec_for_of(op);
    for (int i = 0; i < loop.carried; i++) {
        const MlirValue argument = hec_for_argument(&loop, i);
        if (!is_bf16(s, hec_for_init(&loop, i)) && !is_bf16(s, hec_for_yielded(&loop, i))) continue;
        choose_bf16(s, argument.ptr, mlirValueGetType(argument));
        choose_bf16(s, hec_result(op, i).ptr, mlirValueGetType(argument));
    }
}

static const void *set_of(const struct types *s, MlirOperation op) {
    return hec_find_symbol(s->module, hec_any_set(op)).ptr;
}

static bool is_result_bf16(const struct types *s, MlirOperation op, int result) {
    if (hec_moves_rows(op)) return result == 0 && hec_map_get(&s->bf16, set_of(s, op));
    const struct hec_kernel *kernel = hec_choose_kernel(op).kernel;
    if (kernel) return has_form(s, op, kernel) && hec_kernel_keeps_bf16(kernel, true, result);
    if (hec_op_is(op, HEC_OP_fetch))
        return hec_map_get(&s->bf16, hec_find_symbol(s->module, hec_fetch_slot(op)).ptr);
    return hec_takes_bf16(op) && reads_bf16(s, op);
}

static void decide(struct types *s, MlirOperation op) {
    if (hec_op_is(op, HEC_OP_FOR)) {
        decide_loop(s, op);
        return;
    }
    if (hec_op_is(op, HEC_OP_stash) && is_bf16(s, hec_stash_value(op))) {
        const MlirOperation slot = hec_find_symbol(s->module, hec_stash_slot(op));
        choose_bf16(s, slot.ptr, hec_slot_type(slot));
    }
    if (hec_op_is(op, HEC_OP_dispatch) && is_bf16(s, hec_dispatch_x(op)))
        choose_bf16(s, set_of(s, op), mlirValueGetType(hec_dispatch_x(op)));
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        const MlirValue result = hec_result(op, i);
        if (is_result_bf16(s, op, i)) choose_bf16(s, result.ptr, mlirValueGetType(result));
    }
}

// ---- changing types

static void set_type(const struct types *s, MlirValue v) {
    if (is_bf16(s, v)) mlirValueSetType(v, hec_type_rounded(mlirValueGetType(v)));
}

static void set_types(const struct types *s, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) set_type(s, hec_result(op, i));
    if (!hec_op_is(op, HEC_OP_FOR)) return;
    const struct hec_for loop = hec_for_of(op);
    for (int i = 0; i < loop.carried; i++) set_type(s, hec_for_argument(&loop, i));
}

// The region's arguments have the types of the inputs; its operations compute f32.
static void fit_region(MlirOperation op) {
    const struct hec_fused fused = hec_fused_of(op);
    const MlirContext c = mlirOperationGetContext(op);
    int32_t length[HEC_FUSED_RUNS];
    for (int i = 0; i < fused.inputs; i++)
        mlirValueSetType(mlirBlockGetArgument(fused.body, i), mlirValueGetType(fused.input[i]));
    hec_fused_runs(fused.inputs, fused.input, length);
    hec_set_attr(
        op, hec_attr(c, HEC_OPERAND_SEGMENTS, mlirDenseI32ArrayGet(c, HEC_FUSED_RUNS, length)));
}

// ---- where types meet

// `v` in its other type, for `user`. One copy serves all users in a block.
static MlirValue convert(struct types *s, MlirValue v, MlirOperation user) {
    intptr_t *known = hec_map_at(&s->converted, v.ptr);
    const MlirOperation last = {(void *)*known};
    if (!mlirOperationIsNull(last) &&
        mlirBlockEqual(mlirOperationGetBlock(last), mlirOperationGetBlock(user)))
        return hec_result(last, 0);
    const MlirType type = mlirValueGetType(v);
    const MlirType other =
        hec_type_is_rounded(type) ? hec_type_unrounded(type) : hec_type_rounded(type);
    struct hec_builder b = hec_builder_before(user);
    hec_builder_for_value(&b, v);
    const MlirValue copy = hec_build_value(&b, HEC_OP_copy, 1, &v, other, 0, NULL);
    *hec_map_at(&s->converted, v.ptr) = (intptr_t)hec_defining(copy).ptr;
    return copy;
}

// Whether `op` wants operand `i` in bf16.
static bool wants_bf16(const struct types *s, MlirOperation op, int i) {
    if (hec_moves_rows(op)) return i == 0 && hec_map_get(&s->bf16, set_of(s, op));
    const struct hec_kernel *kernel = hec_choose_kernel(op).kernel;
    if (kernel) return has_form(s, op, kernel) && hec_kernel_keeps_bf16(kernel, false, i);
    const MlirOperation around = mlirOperationGetParentOperation(op);
    if (hec_op_is(op, HEC_OP_FOR)) return i >= BOUNDS && is_bf16(s, hec_result(op, i - BOUNDS));
    if (hec_op_is(op, HEC_OP_SCF_YIELD)) return is_bf16(s, hec_result(around, i));
    return hec_op_is(op, HEC_OP_stash) &&
           hec_type_is_rounded(hec_slot_type(hec_find_symbol(s->module, hec_stash_slot(op))));
}

static void join_types(struct types *s, MlirOperation op) {
    if (hec_op_is(op, HEC_OP_fused)) fit_region(op);
    const bool any = hec_takes_bf16(op) && !hec_choose_kernel(op).kernel;
    if (any && !hec_op_is(op, HEC_OP_stash)) return;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue v = hec_operand(op, i);
        const bool bf16 = hec_type_is_rounded(mlirValueGetType(v));
        if (!bf16 && !is_of_tokens(mlirValueGetType(v))) continue;
        if (bf16 != wants_bf16(s, op, i)) mlirOperationSetOperand(op, i, convert(s, v, op));
    }
}

// ---- the pass

static bool is_in_region(MlirOperation op) {
    return hec_op_is(mlirOperationGetParentOperation(op), HEC_OP_fused);
}

static struct types types_of(MlirOperation module) {
    struct types s = {.module = module};
    HEC_EACH (op, hec_ops_below(module)) {
        if (hec_op_is(op, HEC_OP_slot)) hec_ops_push(&s.slots, op);
        if (!is_in_region(op)) hec_ops_push(&s.ops, op);
    }
    return s;
}

static bool applies(MlirOperation module) {
    if (!hec_target_of(module)->bf16_values) return false;
    HEC_EACH (op, hec_ops_below(module))
        if (hec_any_rounds(op)) return true;
    return false;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct types s = types_of(module);
    do {
        s.found = false;
        for (int k = 0; k < s.ops.count; k++) decide(&s, s.ops.op[k]);
    } while (s.found);
    for (int k = 0; k < s.ops.count; k++) set_types(&s, s.ops.op[k]);
    for (int k = 0; k < s.slots.count; k++) {
        const MlirOperation slot = s.slots.op[k];
        if (hec_map_get(&s.bf16, slot.ptr))
            hec_set_attr(slot, hec_attr_type(mlirOperationGetContext(slot), "type",
                                             hec_type_rounded(hec_slot_type(slot))));
    }
    for (int k = 0; k < s.ops.count; k++) join_types(&s, s.ops.op[k]);
    free(s.ops.op);
    free(s.slots.op);
    hec_map_free(&s.bf16);
    hec_map_free(&s.converted);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_store_bf16 = {
    .applies = applies,
    .run = run,
};
