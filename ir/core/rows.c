// Ownership of rows: the attribute `rows_of` names the set whose experts' rows an operation works on. group-experts
// writes it on the route and on operations that order rows by it; differentiate on the reverse of these. A reader of
// rows gets it from its operands, the moment it is built; a slot has it from the value that it keeps,
// a fetch from its slot. Operations that bring rows back to their tokens have it, too; their results are no rows.
#include "ir/accessors.h"
#include "ir/core/op.h"

static MlirAttribute of(MlirOperation op) {
    return mlirOperationGetAttributeByName(op, HEC_STR(HEC_ROWS_OF));
}

MlirStringRef hec_rows_of(MlirOperation op) {
    return hec_get_string(op, HEC_ROWS_OF);
}

int hec_rows_attr(MlirAttribute set, MlirNamedAttribute *attribute) {
    if (mlirAttributeIsNull(set)) return 0;
    *attribute = hec_attr(mlirAttributeGetContext(set), HEC_ROWS_OF, set);
    return 1;
}

// Among a route's results, only the offsets of the experts' rows depend on which rows are here.
static bool makes_rows(MlirOperation op, intptr_t result) {
    switch (hec_op_computes(op)) {
    case HEC_OP_combine:
    case HEC_OP_gate_rows_grad:
        return false;
    case HEC_OP_route:
    case HEC_OP_limit:
        return result == 0;
    default:
        return true;
    }
}

MlirAttribute hec_rows_of_value(MlirValue v) {
    const MlirAttribute none = {0};
    if (!mlirTypeIsARankedTensor(mlirValueGetType(v))) return none;
    const MlirOperation op = hec_defining(v);
    if (op.ptr) return makes_rows(op, mlirOpResultGetResultNumber(v)) ? of(op) : none;
    const MlirOperation parent = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
    if (hec_op_is(parent, HEC_OP_FOR)) return of(parent);
    if (!hec_op_is(parent, HEC_OP_fused)) return none;
    return hec_rows_of_value(hec_operand(parent, (int)mlirBlockArgumentGetArgNumber(v)));
}

static bool is_end_of_block(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    return id == HEC_OP_RETURN || id == HEC_OP_SCF_YIELD || id == HEC_OP_YIELD;
}

static MlirAttribute read_by(MlirOperation op) {
    MlirAttribute set = {0};
    for (int i = 0; i < mlirOperationGetNumOperands(op) && mlirAttributeIsNull(set); i++) {
        set = hec_rows_of_value(hec_operand(op, i));
    }
    return set;
}

void hec_rows_inherit(MlirOperation op) {
    if (is_end_of_block(op) || !mlirAttributeIsNull(of(op))) return;
    MlirNamedAttribute attribute;
    if (hec_rows_attr(read_by(op), &attribute)) hec_set_attr(op, attribute);
}

void hec_rows_forget(MlirOperation op) {
    mlirOperationRemoveAttributeByName(op, HEC_STR(HEC_ROWS_OF));
}

// ---- the rule

static bool check_set(MlirOperation op) {
    const MlirStringRef set = hec_rows_of(op);
    if (hec_op_is(hec_find_symbol(hec_module_of(op), set), HEC_OP_set)) return true;
    return hec_ir_error(op, "there is no moe.set @%.*s", (int)set.length, set.data);
}

// An operation that reads rows has their set; the end of a loop's block has the loop's.
static bool check_operands(MlirOperation op) {
    const MlirAttribute own = of(is_end_of_block(op) ? mlirOperationGetParentOperation(op) : op);
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirAttribute read = hec_rows_of_value(hec_operand(op, i));
        if (mlirAttributeIsNull(read) || mlirAttributeEqual(read, own)) continue;
        const MlirStringRef set = mlirFlatSymbolRefAttrGetValue(read);
        return hec_ir_error(op, "operand %d is rows of the experts of @%.*s: %s", i,
                            (int)set.length, set.data,
                            is_end_of_block(op) ? "they leave here" : "rows_of has to say so");
    }
    return true;
}

static bool check_slot(MlirOperation op) {
    const MlirOperation slot = hec_find_symbol(hec_module_of(op), hec_any_slot(op));
    if (!hec_op_is(slot, HEC_OP_slot) || mlirAttributeEqual(of(slot), of(op))) return true;
    return hec_ir_error(op, "rows_of is not that of its slot");
}

// Whether `op` may have the attribute without operands that are rows: it begins, ends or keeps them. A
// loop may read them from inside.
static bool needs_no_rows(MlirOperation op) {
    switch (hec_op_computes(op)) {
    case HEC_OP_route:
    case HEC_OP_permute:
    case HEC_OP_gate_rows:
    case HEC_OP_combine:
    case HEC_OP_gate_rows_grad:
    case HEC_OP_slot:
    case HEC_OP_fetch:
    case HEC_OP_FOR:
        return true;
    default:
        return false;
    }
}

bool hec_rows_verify(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    const bool kept = id == HEC_OP_stash || id == HEC_OP_fetch;
    if (!check_operands(op) || (kept && !check_slot(op))) return false;
    if (mlirAttributeIsNull(of(op))) return true;
    if (!check_set(op)) return false;
    if (needs_no_rows(op) || !mlirAttributeIsNull(read_by(op))) return true;
    return hec_ir_error(op, "has rows_of, but reads no rows of experts");
}
