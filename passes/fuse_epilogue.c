// fuse-epilogue: what is done to each element of a product's result is done while it is in cache.
//
//   before   %u = moe.contract(%x, %w); ..; %h = moe.fused(%g, %u) {..}
//   after    %u = moe.contract(%x, %w); %h = moe.fused(%g, %u) {epilogue = true, ..}
//
// Why      A product leaves a result of many rows, and the loop behind it would bring it back from
//          memory. An epilogue works on a block of it as soon as that is finished, in the thread that
//          made it: bias, activation, gate product, residual and their gradients are all the same.
// Needs    only a module that verifies. Runs after the passes that put operations between others, as
//          an epilogue stands right behind its product, and before verify-movement, which proves that
//          what has risen finds the experts it reads.
// Leaves   `epilogue` on loops that read a product's result element by element and need nothing else
//          that is computed from it; they rise to it, and what else they wait for before it. An
//          elementwise operation that stood alone becomes a moe.fused. The same
//          numbers: no operation changes.
// Reports  nothing.
#include "passes/pass.h"

#include <stdlib.h>

#include "ir/ops/fused.h"
#include "passes/place/place.h"
#include "passes/rewrite.h"

enum { OPERANDS_MAX = 4 }; // Of an elementwise operation.

// The product among those that make operands of `op` that is computed last; null: there is none.
static MlirOperation last_product(MlirOperation op) {
    MlirOperation last = {0};
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (mlirOperationIsNull(made) ||
            !mlirBlockEqual(mlirOperationGetBlock(made), mlirOperationGetBlock(op)) ||
            !hec_fits_epilogue(made, op))
            continue;
        if (mlirOperationIsNull(last) || mlirOperationIsBeforeInBlock(last, made)) last = made;
    }
    return last;
}

// Not before `product`, but in its block: the product itself, too.
static bool stands_behind(MlirOperation op, MlirOperation product) {
    return !mlirOperationIsNull(op) &&
           mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(product)) &&
           !mlirOperationIsBeforeInBlock(op, product);
}

// Whether `op` is computed before `product`, or could be.
static bool can_precede(const struct hec_map *stored, MlirOperation op, MlirOperation product) {
    if (!stands_behind(op, product)) return true;
    if (mlirOperationEqual(op, product)) return false;
    const bool free = hec_op_traits(op)->pure && !hec_op_is(op, HEC_OP_fetch);
    if (!free && !hec_may_rise(stored, op)) return false;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (!can_precede(stored, hec_defining(hec_operand(op, i)), product)) return false;
    }
    return true;
}

static bool can_follow(const struct hec_map *stored, MlirOperation op, MlirOperation product) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (!mlirOperationEqual(made, product) && !can_precede(stored, made, product)) return false;
    }
    return true;
}

static void raise_operands(MlirOperation op, MlirOperation product) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (!stands_behind(made, product) || mlirOperationEqual(made, product)) continue;
        raise_operands(made, product);
        mlirOperationMoveBefore(made, product);
    }
}

// An elementwise operation as the only one of a moe.fused.
static MlirOperation wrap(MlirOperation op) {
    MlirValue input[OPERANDS_MAX];
    int inputs = 0;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue v = hec_operand(op, i);
        bool known = false;
        for (int j = 0; j < inputs; j++) known |= mlirValueEqual(input[j], v);
        if (!known) input[inputs++] = v;
    }
    const MlirValue result = hec_result(op, 0);
    const MlirType type = mlirValueGetType(result);
    struct hec_builder b = hec_builder_before(op);
    MlirBlock body;
    const MlirOperation fused = hec_build_fused(&b, inputs, input, 1, &type, &body);
    struct hec_map map = {0};
    for (int i = 0; i < inputs; i++) {
        hec_map_put(&map, input[i], mlirBlockGetArgument(body, i).ptr);
    }
    struct hec_builder inside = hec_builder_end(body, mlirOperationGetLocation(op));
    const MlirValue made = hec_result(hec_clone_mapped(&inside, op, &map), 0);
    inside.at = hec_loc_strip(inside.at);
    hec_build_op(&inside, HEC_OP_YIELD, 1, &made, 0, NULL, 0, NULL);
    hec_map_free(&map);
    mlirValueReplaceAllUsesOfWith(result, hec_result(fused, 0));
    mlirOperationDestroy(op);
    return fused;
}

static bool is_candidate(MlirOperation op) {
    if (hec_op_is(op, HEC_OP_fused)) return !hec_get_bool(op, "epilogue");
    return hec_op_traits(op)->elementwise && mlirOperationGetNumResults(op) == 1 &&
           !hec_op_is(mlirOperationGetParentOperation(op), HEC_OP_fused) && hec_sum_operand(op) < 0;
}

static void attach(const struct hec_map *stored, MlirOperation op) {
    const MlirOperation product = last_product(op);
    if (mlirOperationIsNull(product) || !mlirOperationIsNull(hec_epilogue_of(product)) ||
        !can_follow(stored, op, product))
        return;
    raise_operands(op, product);
    const MlirOperation fused = hec_op_is(op, HEC_OP_fused) ? op : wrap(op);
    mlirOperationMoveAfter(fused, product);
    hec_set_attr(fused, hec_attr_bool(mlirOperationGetContext(fused), "epilogue", true));
}

static void run_on(MlirOperation func) {
    struct hec_map stored = {0};
    hec_find_stored(func, &stored);
    struct hec_ops ops = hec_ops_below(func);
    for (int k = 0; k < ops.count; k++) {
        if (is_candidate(ops.op[k])) attach(&stored, ops.op[k]);
    }
    free(ops.op);
    hec_map_free(&stored);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct hec_ops ops = hec_ops_in(hec_module_body(module));
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_FUNC)) run_on(ops.op[k]);
    }
    free(ops.op);
    return HEC_PASS_DONE;
}

const struct hec_pass hec_pass_fuse_epilogue = {
    .flag = "fuse-epilogue",
    .summary = "Compute elementwise loops behind a product on its blocks, while they are in cache",
    .run = run,
};
