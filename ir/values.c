// Which operands and results may be bf16.
#include "ir/values.h"

#include <string.h>

#include "ir/accessors.h"
#include "ir/core/signature.h"
#include "ir/ops/contract.h"
#include "ir/ops/fused.h"
#include "ir/ops/head_loss.h"
#include "ir/target/target.h"

bool hec_kernel_keeps_bf16(const struct hec_kernel *kernel, bool result, int index) {
    const struct hec_op_row *row = hec_op_row(kernel->computes);
    const char *words = result ? row->results : row->operands;
    struct hec_word word, known;
    for (int i = 0; (words = hec_next_word(words, &word)); i++) {
        if (i == index) return hec_find_word(kernel->values, HEC_STR(word.name), &known);
    }
    return false;
}

bool hec_takes_bf16(MlirOperation op) {
    switch (hec_op_of(op)) {
    case HEC_OP_fused:
    case HEC_OP_sum:
    case HEC_OP_copy:
    case HEC_OP_slice:
    case HEC_OP_slice_grad:
    case HEC_OP_concat:
    case HEC_OP_transpose:
    case HEC_OP_get:   // By its own rule, a copy of an f32 parameter.
    case HEC_OP_stash: // As the slot is.
    case HEC_OP_fetch:
        return true;
    default:
        return hec_op_traits(op)->elementwise;
    }
}

// ---- rows between ranks

bool hec_moves_rows(MlirOperation op) {
    switch (hec_op_of(op)) {
    case HEC_OP_dispatch:
    case HEC_OP_give_back:
    case HEC_OP_collect:
    case HEC_OP_dispatch_grad:
    case HEC_OP_give_back_grad:
    case HEC_OP_collect_grad:
        return true;
    default:
        return false;
    }
}

MlirOperation hec_dispatch_of(MlirOperation set) {
    HEC_EACH_OF (op, hec_ops_below(hec_module_of(set)), HEC_OP_dispatch)
        if (mlirStringRefEqual(hec_any_set(op), hec_any_sym_name(set))) return op;
    return (MlirOperation){0};
}

// ---- kernels

struct counts {
    int listed, bf16,
        unlisted; // Values that `values` lists; of these, bf16; bf16 that it does not list.
};

static void count(struct counts *counts, const struct hec_kernel *kernel, MlirValue v, bool result,
                  int index) {
    const bool bf16 = hec_type_is_rounded(mlirValueGetType(v));
    const bool listed = hec_kernel_keeps_bf16(kernel, result, index);
    counts->listed += listed;
    counts->bf16 += listed && bf16;
    counts->unlisted += !listed && bf16;
}

static struct counts counts_of(const struct hec_kernel *kernel, MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    struct counts counts = {0};
    for (int i = 0; i < call.operands; i++) count(&counts, kernel, hec_operand(op, i), false, i);
    for (int i = 0; i < call.results; i++) count(&counts, kernel, hec_result(op, i), true, i);
    return counts;
}

bool hec_call_is_bf16(MlirOperation call) {
    const struct hec_kernel *kernel = hec_kernel_of(call);
    return kernel && (hec_any_rounds(call) || counts_of(kernel, call).bf16 > 0);
}

// ---- checks

static bool has_bf16(MlirOperation op) {
    bool found = false;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++)
        found |= hec_type_is_rounded(mlirValueGetType(hec_operand(op, i)));
    for (int i = 0; i < mlirOperationGetNumResults(op); i++)
        found |= hec_type_is_rounded(mlirValueGetType(hec_result(op, i)));
    return found;
}

static bool refuse(MlirOperation op) {
    return hec_ir_error(op, "has operands or results of bf16 where it takes f32");
}

// Products have rules of their own (contract.c, head_loss.c).
static bool check_kernel(MlirOperation op, const struct hec_kernel *kernel, bool keeps) {
    const struct counts counts = counts_of(kernel, op);
    const bool all = counts.bf16 == counts.listed;
    const bool product = hec_is_product(op) || hec_is_head_loss(op);
    if (!product && (counts.unlisted > 0 || (counts.bf16 > 0 && !(all && keeps))))
        return refuse(op);
    if (!keeps || !hec_op_is(op, HEC_OP_call) || !hec_any_rounds(op) || all) return true;
    return hec_ir_error(op, "not yet: a kernel of this target that rounds what it reads");
}

// The operand that a call adds to has its result's type. The region's arguments follow a loop's rule.
static bool check_region(MlirOperation op, bool keeps) {
    const struct hec_fused region = hec_fused_of(op);
    bool found = false;
    for (int i = 1; i < region.inputs; i++)
        found |= hec_type_is_rounded(mlirValueGetType(region.input[i]));
    for (int i = 0; i < region.outputs; i++)
        found |= hec_type_is_rounded(mlirValueGetType(region.output[i]));
    return keeps || !found || refuse(op);
}

static bool refuse_rows(MlirOperation op) {
    return hec_ir_error(op,
                        "rows of a set are all of bf16 where the target keeps them so, or none is; "
                        "weights are of f32");
}

// As the set's first dispatch reads them.
static bool check_moved(MlirOperation op, bool keeps) {
    const MlirOperation set = hec_find_symbol(hec_module_of(op), hec_any_set(op));
    const MlirOperation first = hec_op_is(set, HEC_OP_set) ? hec_dispatch_of(set) : op;
    if (mlirOperationIsNull(first) || !hec_op_is(first, HEC_OP_dispatch)) return true;
    const bool bf16 = keeps && hec_type_is_rounded(mlirValueGetType(hec_dispatch_x(first)));
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirType type = mlirValueGetType(hec_operand(op, i));
        const bool rows = i == 0 && mlirTypeIsARankedTensor(type);
        if (hec_type_is_rounded(type) != (rows && bf16)) return refuse_rows(op);
    }
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        const MlirType type = mlirValueGetType(hec_result(op, i));
        if (hec_type_is_rounded(type) != (i == 0 && bf16)) return refuse_rows(op);
    }
    return true;
}

bool hec_values_verify(MlirOperation op) {
    if (hec_moves_rows(op)) return check_moved(op, hec_target_of(op)->bf16_values);
    const bool call = hec_op_is(op, HEC_OP_call);
    if ((!call && !has_bf16(op)) || hec_op_is(op, HEC_OP_get)) return true;
    const bool keeps = hec_target_of(op)->bf16_values;
    if (hec_op_of(op) >= HEC_OP_FUNC) return keeps || refuse(op); // Loops carry either.
    const struct hec_kernel *kernel = call ? hec_kernel_of(op) : hec_choose_kernel(op).kernel;
    if (kernel && !hec_takes_bf16(op))
        return check_kernel(op, kernel, keeps) && (!call || check_region(op, keeps));
    const bool weights = hec_op_is(op, HEC_OP_transpose) && // On a parameter's rounded copy.
                         hec_type_is_rounded(mlirValueGetType(hec_operand(op, 0))) &&
                         hec_type_is_rounded(mlirValueGetType(hec_result(op, 0)));
    return weights || (keeps && hec_takes_bf16(op)) || refuse(op);
}
