// fuse-epilogue: elementwise work on a GEMM's result is done while that is in cache.
//
//   before   %u = moe.contract(%x, %w); ..; %h = moe.fused(%g, %u) {..}
//   after    %u = moe.contract(%x, %w); %h = moe.fused(%g, %u) {epilogue = true, ..}
//
// Why      A GEMM leaves a result of many rows, and the loop behind it would bring it back from
//          memory. An epilogue works on a block of it as soon as that is finished, in the thread that
//          made it: bias, activation, gate GEMM, residual and their gradients are all the same.
// Needs    a target with epilogues, and a module that verifies. Runs after the passes that put operations between others, as
//          an epilogue stands right behind its GEMM, and before verify-movement, which proves that
//          the operations that have risen find the experts they read.
// Leaves   `epilogue` on loops that read a GEMM's result element by element and need nothing else
//          that is computed from it. Such a loop moves up to its GEMM, and its other operands move
//          before the GEMM, also GEMMs with their own epilogues. An elementwise operation that stood alone becomes a
//          moe.fused. The same numbers: no operation changes.
// Reports  nothing.
#include "ir/accessors.h"
#include "passes/base/pass.h"

#include "ir/ops/fused.h"
#include "ir/target/target.h"
#include "passes/base/rewrite.h"
#include "passes/sums.h"

enum {
    OPERANDS_MAX = 4, // Operands of an elementwise operation.
    RISE_MAX = 128,   // Operations that rise before a GEMM for its epilogue.
};

// The GEMM among those that make operands of `op` that is computed last; null: there is none.
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

// Whether `op` is `product`, or stands behind it in its block.
static bool stands_behind(MlirOperation op, MlirOperation product) {
    return !mlirOperationIsNull(op) &&
           mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(product)) &&
           !mlirOperationIsBeforeInBlock(op, product);
}

// Operations that have to be computed before `product`, and are not yet, in the order in which they can be.
struct rise {
    const struct hec_map *stored;
    MlirOperation product;
    int count;
    MlirOperation op[RISE_MAX];
};

static bool add_operands(struct rise *r, MlirOperation op);

static bool has_risen(const struct rise *r, MlirOperation op) {
    for (int i = 0; i < r->count; i++) {
        if (mlirOperationEqual(r->op[i], op)) return true;
    }
    return false;
}

static bool may_move(const struct rise *r, MlirOperation op) {
    const bool free = hec_op_traits(op)->pure && !hec_op_is(op, HEC_OP_fetch);
    return !mlirOperationEqual(op, r->product) && (free || hec_may_rise(r->stored, op));
}

// Adds `op` and its operands. A GEMM and its epilogue stay together: where one has to rise, both do, with
// the operands of both. False: it can't be computed before `product`.
static bool add(struct rise *r, MlirOperation op) {
    if (!stands_behind(op, r->product) || has_risen(r, op)) return true;
    const MlirOperation of = hec_epilogue_product(op), epilogue = hec_epilogue_of(op);
    const MlirOperation first = mlirOperationIsNull(of) ? op : of;
    const MlirOperation last = mlirOperationIsNull(epilogue) ? op : epilogue;
    const bool two = !mlirOperationEqual(first, last);
    if (!may_move(r, first) || (two && !may_move(r, last))) return false;
    for (int i = 0; i < mlirOperationGetNumOperands(last); i++) {
        const MlirOperation made = hec_defining(hec_operand(last, i));
        const bool own = two && mlirOperationEqual(made, first);
        if (!(own ? add_operands(r, first) : add(r, made))) return false;
    }
    if (r->count + 2 > RISE_MAX) return false;
    r->op[r->count++] = first;
    if (two) r->op[r->count++] = last;
    return true;
}

static bool add_operands(struct rise *r, MlirOperation op) {
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        if (!add(r, hec_defining(hec_operand(op, i)))) return false;
    }
    return true;
}

// Moves what `op`, behind `product`, needs besides its result in front of it; false: it can't be.
static bool raise_operands(const struct hec_map *stored, MlirOperation op, MlirOperation product) {
    struct rise r = {.stored = stored, .product = product};
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (!mlirOperationEqual(made, product) && !add(&r, made)) return false;
    }
    for (int i = 0; i < r.count; i++) mlirOperationMoveBefore(r.op[i], product);
    return true;
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
    if (hec_op_is(op, HEC_OP_fused)) return !hec_any_epilogue(op);
    return hec_op_traits(op)->elementwise && mlirOperationGetNumResults(op) == 1 &&
           !hec_op_is(mlirOperationGetParentOperation(op), HEC_OP_fused) && hec_sum_operand(op) < 0;
}

static void attach(const struct hec_map *stored, MlirOperation op) {
    const MlirOperation product = last_product(op);
    if (mlirOperationIsNull(product) || !mlirOperationIsNull(hec_epilogue_of(product)) ||
        !raise_operands(stored, op, product))
        return;
    const MlirOperation fused = hec_op_is(op, HEC_OP_fused) ? op : wrap(op);
    mlirOperationMoveAfter(fused, product);
    hec_any_put_epilogue(fused, true);
}

static void run_on(MlirOperation func) {
    struct hec_map stored = {0};
    hec_find_stored(func, &stored);
    HEC_EACH (op, hec_ops_below(func))
        if (is_candidate(op)) attach(&stored, op);
    hec_map_free(&stored);
}

static bool has_epilogues(MlirOperation module) {
    return hec_target_of(module)->epilogues;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_FUNC) run_on(op);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_fuse_epilogue = {
    .applies = has_epilogues,
    .run = run,
};
