// Looking at and changing the IR, beyond MLIR's C API.
#include "passes/base/rewrite.h"

#include <assert.h>
#include <stdlib.h>

enum { BOUNDS = 3, CARRIED_MAX = 16 }; // The bounds of scf.for.

bool hec_visible(MlirValue v, MlirBlock block) {
    const MlirBlock home = hec_block_of(v);
    for (;;) {
        if (mlirBlockEqual(home, block)) return true;
        const MlirOperation parent = mlirBlockGetParentOperation(block);
        if (mlirOperationIsNull(parent) || hec_op_is(parent, HEC_OP_FUNC)) return false;
        block = mlirOperationGetBlock(parent);
    }
}

bool hec_is_unused(MlirValue v) {
    return mlirOpOperandIsNull(mlirValueGetFirstUse(v));
}

bool hec_is_used_once(MlirValue v) {
    const MlirOpOperand first = mlirValueGetFirstUse(v);
    return !mlirOpOperandIsNull(first) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(first));
}

MlirOperation hec_ancestor_in(MlirBlock block, MlirOperation op) {
    while (!mlirOperationIsNull(op) && !mlirBlockEqual(mlirOperationGetBlock(op), block)) {
        op = mlirOperationGetParentOperation(op);
        if (hec_op_is(op, HEC_OP_FUNC)) return (MlirOperation){0};
    }
    return op;
}

MlirOperation hec_clone_mapped(struct hec_builder *b, MlirOperation op, struct hec_map *map) {
    const MlirOperation clone = mlirOperationClone(op);
    struct hec_ops from = hec_ops_below(op), to = hec_ops_below(clone);
    assert(from.count == to.count); // Both walks take the same way.
    for (int k = 0; k < from.count; k++) {
        for (int i = 0; i < mlirOperationGetNumOperands(from.op[k]); i++) {
            const MlirValue mapped = {hec_map_find(map, hec_operand(from.op[k], i))};
            if (mapped.ptr) mlirOperationSetOperand(to.op[k], i, mapped);
        }
    }
    free(from.op);
    free(to.op);
    for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
        hec_map_put(map, hec_result(op, i), hec_result(clone, i).ptr);
    }
    if (mlirOperationIsNull(b->before)) {
        mlirBlockAppendOwnedOperation(b->block, clone);
    } else {
        mlirBlockInsertOwnedOperationBefore(b->block, b->before, clone);
    }
    return clone;
}

MlirValue hec_build_fetch(struct hec_builder *b, MlirValue v, MlirStringRef slot, MlirValue layer) {
    MlirNamedAttribute attribute[2] = {hec_attr_symbol(b->context, "slot", slot)};
    const int attributes = 1 + hec_rows_attr(hec_rows_of_value(v), &attribute[1]);
    struct hec_builder of = *b;
    hec_builder_for_value(&of, v);
    return hec_build_value(&of, HEC_OP_fetch, layer.ptr ? 1 : 0, &layer, mlirValueGetType(v),
                           attributes, attribute);
}

MlirOperation hec_drop_carried(MlirOperation op, const bool *drop) {
    const struct hec_for old = hec_for_of(op);
    const MlirOperation yield = mlirBlockGetTerminator(old.body);
    MlirValue operand[BOUNDS + CARRIED_MAX], yielded[CARRIED_MAX];
    MlirType type[CARRIED_MAX];
    int kept = 0;
    assert(old.carried <= CARRIED_MAX);
    for (int i = 0; i < BOUNDS; i++) operand[i] = hec_operand(op, i);
    for (int k = 0; k < old.carried; k++) {
        if (drop[k]) continue;
        operand[BOUNDS + kept] = hec_for_init(&old, k);
        yielded[kept] = hec_for_yielded(&old, k);
        type[kept++] = mlirValueGetType(hec_result(op, k));
    }
    mlirOperationSetOperands(yield, kept, yielded);
    for (int k = old.carried - 1; k >= 0; k--) {
        if (drop[k]) mlirBlockEraseArgument(old.body, (unsigned)(1 + k));
    }

    MlirRegion region = mlirRegionCreate();
    mlirRegionTakeBody(region, mlirOperationGetRegion(op, 0));
    struct hec_builder b = hec_builder_before(op);
    MlirOperationState state = mlirOperationStateGet(HEC_STR("scf.for"), b.at);
    mlirOperationStateAddOperands(&state, BOUNDS + kept, operand);
    mlirOperationStateAddResults(&state, kept, type);
    mlirOperationStateAddOwnedRegions(&state, 1, &region);
    const MlirOperation loop = mlirOperationCreate(&state);
    MlirNamedAttribute rows; // Operations inside may still read rows.
    if (hec_rows_attr(hec_get_attr(op, HEC_ROWS_OF), &rows)) hec_set_attr(loop, rows);
    hec_builder_insert(&b, loop);
    for (int k = 0, to = 0; k < old.carried; k++) {
        if (drop[k]) continue;
        mlirValueReplaceAllUsesOfWith(hec_result(op, k), hec_result(loop, to++));
    }
    mlirOperationDestroy(op);
    return loop;
}

static const void *slot_key(MlirOperation op) {
    return mlirOperationGetAttributeByName(op, HEC_STR("slot")).ptr;
}

void hec_find_stored(MlirOperation func, struct hec_map *stored) {
    HEC_EACH_OF (op, hec_ops_below(func), HEC_OP_stash) *hec_map_at(stored, slot_key(op)) = 1;
}

bool hec_same_anywhere(MlirOperation op) {
    switch (hec_op_of(op)) {
    case HEC_OP_get:
    case HEC_OP_fill:
    case HEC_OP_CONSTANT:
    case HEC_OP_ADDI:
    case HEC_OP_SUBI:
        return true;
    default:
        return false;
    }
}

bool hec_may_rise(const struct hec_map *stored, MlirOperation op) {
    if (hec_op_is(op, HEC_OP_fetch)) return !hec_map_get(stored, slot_key(op));
    return hec_same_anywhere(op);
}
