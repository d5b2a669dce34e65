// fuse-swiglu: two GEMMs of experts' rows and the gating of one by the other are one operation.
//
//   before   %g = moe.grouped_contract(%x, %w1, %f); %u = moe.grouped_contract(%x, %w3, %f)
//            %h = moe.fused(%g, %u, %gate) { silu(g) u gate }
//   after    %g, %u, %h = moe.swiglu(%x, %w1, %w3, %f, %gate)
//
// Why      One kernel has both sums of an element in the same thread: rows are loaded once, and gating them reads
//          no memory. Backward needs %g and %u, so they are still written.
// Needs    a target with such a kernel; loops, so it runs behind fuse-elementwise, and their final types, so behind store-bf16.
// Leaves   moe.swiglu, or moe.gathered_swiglu where the GEMMs gather. The same numbers: %h is computed from %g
//          and %u as they are stored. Any other loop behind two GEMMs stays.
// Reports  nothing.
#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/ops/contract.h"
#include "ir/ops/fused.h"
#include "ir/target/target.h"
#include "passes/base/pass.h"

struct found {
    MlirOperation loop, b, c; // silu(b) c scale
    MlirValue scale;
};

// The factor of `product`, a moe.mul, that `other` is not; null: it is no such GEMM.
static MlirValue factor_beside(MlirValue product, MlirValue other) {
    const MlirOperation mul = hec_defining(product);
    if (!hec_op_is(mul, HEC_OP_mul)) return (MlirValue){0};
    if (mlirValueEqual(hec_mul_b(mul), other)) return hec_mul_a(mul);
    return mlirValueEqual(hec_mul_a(mul), other) ? hec_mul_b(mul) : (MlirValue){0};
}

// Whether the loop's region is silu(b) c scale of its arguments of these numbers.
static bool gates(const struct hec_fused *loop, int b, int c, int scale) {
    MlirValue argument[3];
    for (int i = 0; i < 3; i++) argument[i] = mlirBlockGetArgument(loop->body, i);
    const MlirValue out = hec_operand(mlirBlockGetTerminator(loop->body), 0);
    const MlirValue gated = factor_beside(out, argument[scale]);
    if (mlirValueIsNull(gated)) return false;
    const MlirValue silu = factor_beside(gated, argument[c]);
    return !mlirValueIsNull(silu) && hec_op_is(hec_defining(silu), HEC_OP_silu) &&
           mlirValueEqual(hec_silu_a(hec_defining(silu)), argument[b]);
}

// A GEMM of experts' rows by a matrix, in the loop's block, whose operands are all of one type.
static bool is_first_product(MlirOperation op, MlirOperation loop) {
    struct hec_contract c;
    if (mlirOperationIsNull(op)) return false;
    return (hec_op_is(op, HEC_OP_grouped_contract) || hec_op_is(op, HEC_OP_gathered_contract)) &&
           mlirBlockEqual(mlirOperationGetBlock(op), mlirOperationGetBlock(loop)) &&
           hec_contract_of(op, &c) && c.form == HEC_CONTRACT_NN &&
           hec_type_is_rounded(mlirValueGetType(hec_product_a(op))) == hec_any_rounds(op);
}

// Both are of the same kind, and read the same but for the matrix.
static bool are_alike(MlirOperation b, MlirOperation c) {
    if (mlirOperationEqual(b, c) || hec_op_of(b) != hec_op_of(c) ||
        hec_any_rounds(b) != hec_any_rounds(c))
        return false;
    for (int i = 0; i < mlirOperationGetNumOperands(b); i++) {
        if (i != 1 && !mlirValueEqual(hec_operand(b, i), hec_operand(c, i))) return false;
    }
    return true;
}

// Nothing but a stash reads the GEMM before the loop: stashes can move behind it.
static bool is_read_behind(MlirOperation product, MlirOperation loop) {
    const MlirValue r = hec_product_r(product);
    HEC_EACH_USE (use, r) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        const bool beside =
            mlirBlockEqual(mlirOperationGetBlock(user), mlirOperationGetBlock(loop));
        if (hec_op_is(user, HEC_OP_stash) && beside) continue;
        if (!beside || mlirOperationIsBeforeInBlock(user, loop)) return false;
    }
    return true;
}

static bool find(MlirOperation op, struct found *found) {
    static const int orders[][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    if (!hec_op_is(op, HEC_OP_fused)) return false;
    const struct hec_fused loop = hec_fused_of(op);
    if (loop.inputs != 3 || loop.outputs != 1) return false;
    for (int i = 0; i < 6; i++) {
        const int *order = orders[i];
        if (!gates(&loop, order[0], order[1], order[2])) continue;
        *found = (struct found){op, hec_defining(loop.input[order[0]]),
                                hec_defining(loop.input[order[1]]), loop.input[order[2]]};
        return is_first_product(found->b, op) && is_first_product(found->c, op) &&
               are_alike(found->b, found->c) && is_read_behind(found->b, op) &&
               is_read_behind(found->c, op) &&
               hec_tensor_of(mlirValueGetType(found->scale)).rank == 1;
    }
    return false;
}

static void move_stashes(MlirValue of, MlirOperation behind) {
    HEC_EACH_USE (use, of) {
        const MlirOperation user = mlirOpOperandGetOwner(use);
        if (hec_op_is(user, HEC_OP_stash)) mlirOperationMoveAfter(user, behind);
    }
}

static void replace(MlirOperation op, MlirValue by) {
    mlirValueReplaceAllUsesOfWith(hec_result(op, 0), by);
    mlirOperationDestroy(op);
}

static void fuse(const struct found *f) {
    const bool gathers = hec_op_is(f->b, HEC_OP_gathered_contract);
    MlirValue in[7] = {hec_product_a(f->b), hec_product_b(f->b), hec_product_b(f->c),
                       hec_by_expert_first(f->b)};
    int operands = 4;
    if (gathers) {
        in[operands++] = hec_routed_pair(f->b);
        in[operands++] = hec_routed_slot(f->b);
    }
    in[operands++] = f->scale;
    const MlirType type[] = {mlirValueGetType(hec_product_r(f->b)),
                             mlirValueGetType(hec_product_r(f->c)),
                             mlirValueGetType(hec_result(f->loop, 0))};
    struct hec_builder b = hec_builder_before(f->loop);
    const MlirNamedAttribute rounds = hec_attr_bool(b.context, "rounds", true);
    const MlirOperation made = hec_build_op(&b, gathers ? HEC_OP_gathered_swiglu : HEC_OP_swiglu,
                                            operands, in, 3, type, hec_any_rounds(f->b), &rounds);
    move_stashes(hec_product_r(f->b), made);
    move_stashes(hec_product_r(f->c), made);
    replace(f->loop, hec_result(made, 2));
    replace(f->b, hec_result(made, 0));
    replace(f->c, hec_result(made, 1));
}

static bool applies(MlirOperation module) {
    return hec_target_of(module)->swiglu;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct hec_ops ops = hec_ops_below(module), loops = {0}; // Products of `ops` go away.
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_fused)) hec_ops_push(&loops, ops.op[k]);
    }
    struct found found;
    for (int k = 0; k < loops.count; k++) {
        if (find(loops.op[k], &found)) fuse(&found);
    }
    free(ops.op);
    free(loops.op);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_fuse_swiglu = {
    .applies = applies,
    .run = run,
};
