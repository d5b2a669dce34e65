// Sums that a kernel makes.
#include "passes/sums.h"

#include "ir/core/kernel.h"
#include "passes/base/rewrite.h"

static bool is_stashed(MlirValue v) {
    HEC_EACH_USE (use, v) {
        if (hec_op_is(mlirOpOperandGetOwner(use), HEC_OP_stash)) return true;
    }
    return false;
}

// `a` is there before `maker` and read by nothing from `maker` on, but for `add`.
static bool is_given_up(MlirValue a, MlirOperation maker, MlirOperation add) {
    const MlirBlock block = mlirOperationGetBlock(add);
    const MlirOperation made = hec_defining(a);
    if (!mlirBlockEqual(hec_block_of(a), block)) return false;
    if (hec_op_is(made, HEC_OP_get) || hec_op_is(made, HEC_OP_fetch)) return false;
    if (made.ptr && !mlirOperationIsBeforeInBlock(made, maker)) return false;
    HEC_EACH_USE (use, a) {
        const MlirOperation user = hec_ancestor_in(block, mlirOpOperandGetOwner(use));
        if (mlirOperationEqual(user, add)) continue;
        if (!mlirOperationIsBeforeInBlock(user, maker)) return false;
    }
    return true;
}

// The emitted function of one unit does not add to what another one made.
static bool is_of_one_unit(MlirOperation a, MlirOperation b) {
    return mlirStringRefEqual(hec_unit_name(a), hec_unit_name(b));
}

static bool can_add(MlirOperation maker, MlirValue made) {
    return mlirOpResultGetResultNumber(made) == 0 && (hec_op_traits(maker)->adds & 1) &&
           hec_choose_kernel(maker).kernel;
}

int hec_sum_operand(MlirOperation op) {
    if (!hec_op_is(op, HEC_OP_add)) return -1;
    const MlirValue result = hec_result(op, 0);
    if (mlirShapedTypeGetRank(mlirValueGetType(result)) == 0 || is_stashed(result)) return -1;
    for (int i = 1; i >= 0; i--) {
        const MlirValue a = hec_operand(op, 1 - i), b = hec_operand(op, i);
        const MlirOperation maker = hec_defining(b);
        if (mlirOperationIsNull(maker) || !hec_is_used_once(b) || is_stashed(a) ||
            !mlirBlockEqual(mlirOperationGetBlock(maker), mlirOperationGetBlock(op)) ||
            !mlirTypeEqual(mlirValueGetType(a), mlirValueGetType(result)) ||
            !mlirTypeEqual(mlirValueGetType(b), mlirValueGetType(result)))
            continue;
        if (can_add(maker, b) && is_of_one_unit(maker, op) && is_given_up(a, maker, op)) return i;
    }
    return -1;
}
