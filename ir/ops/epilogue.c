// Epilogues: a moe.fused with `epilogue` is computed for each finished block of the GEMM before it.
#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/ops/contract.h"
#include "ir/ops/fused.h"
#include "ir/ops/rule.h"
#include "ir/target/target.h"

// `t` without `group`, where it starts with it.
static struct hec_tensor behind(const struct hec_tensor *t, const struct hec_tensor *group) {
    if (t->rank < group->rank) return *t;
    const struct hec_tensor front = hec_slice(t, 0, group->rank);
    return hec_same_dims(&front, group) ? hec_slice(t, group->rank, t->rank) : *t;
}

// The element of a block that `type` has is told by the block's row, its column, both or neither.
static bool has_blocks(MlirType type, const struct hec_tensor *rows,
                       const struct hec_tensor *columns) {
    struct hec_tensor t = hec_tensor_of(type);
    t = behind(&t, rows);
    t = behind(&t, columns);
    return t.rank == 0;
}

// Whether a loop over `space` that reads values of `type` can work on blocks of the GEMM's result.
static bool fits(MlirOperation product, MlirType space, int types, const MlirType *type) {
    struct hec_contract c;
    if (!hec_is_product(product) || !hec_contract_of(product, &c) || c.form == HEC_CONTRACT_TN)
        return false;
    const struct hec_tensor *columns = c.form == HEC_CONTRACT_NN ? &c.n : &c.k;
    const MlirType made = mlirValueGetType(hec_result(product, 0));
    if (mlirShapedTypeGetRank(made) == 0 || !mlirTypeEqual(space, made)) return false;
    for (int i = 0; i < types; i++) {
        if (!has_blocks(type[i], &c.m, columns)) return false;
    }
    return true;
}

bool hec_fits_epilogue(MlirOperation product, MlirOperation op) {
    MlirType type[HEC_FUSED_VALUES];
    const int inputs = (int)mlirOperationGetNumOperands(op);
    if (inputs > HEC_FUSED_VALUES) return false;
    bool reads = false;
    for (int i = 0; i < inputs; i++) {
        type[i] = mlirValueGetType(hec_operand(op, i));
        reads |= mlirOperationEqual(hec_defining(hec_operand(op, i)), product);
    }
    return reads && fits(product, mlirValueGetType(hec_result(op, 0)), inputs, type);
}

MlirOperation hec_epilogue_product(MlirOperation op) {
    if (!hec_op_is(op, HEC_OP_fused) || !hec_any_epilogue(op)) return (MlirOperation){0};
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (hec_is_product(made) && mlirOperationEqual(mlirOperationGetNextInBlock(made), op))
            return made;
    }
    return (MlirOperation){0};
}

MlirOperation hec_epilogue_of(MlirOperation product) {
    if (!hec_is_product(product)) return (MlirOperation){0};
    const MlirOperation next = mlirOperationGetNextInBlock(product);
    const MlirOperation of = hec_epilogue_product(next);
    return mlirOperationEqual(of, product) ? next : (MlirOperation){0};
}

static bool report_misfit(MlirOperation op) {
    return hec_ir_error(
        op, "an epilogue must work on blocks of its GEMM's rows and columns: inputs with "
            "all dimensions of either, or none");
}

static bool has_epilogues(MlirOperation op) {
    const struct hec_target *target = hec_target_of(op);
    if (!target->epilogues) hec_ir_error(op, "target %s has no epilogues", target->name);
    return target->epilogues;
}

bool hec_verify_epilogue(MlirOperation op) {
    if (!hec_any_epilogue(op)) return true;
    if (!has_epilogues(op)) return false;
    const MlirOperation product = hec_epilogue_product(op);
    if (mlirOperationIsNull(product))
        return hec_ir_error(op, "an epilogue must stand right behind a GEMM whose result it reads");
    return hec_fits_epilogue(product, op) || report_misfit(op);
}

bool hec_verify_block(MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    if (mlirBlockIsNull(call.block)) {
        if (call.inputs + call.outputs == 0) return true;
        return hec_ir_error(op, "has inputs and outputs of an epilogue, but no region");
    }
    const struct hec_fused fused = hec_fused_of(op);
    if (!hec_fused_verify(op, &fused)) return false;
    if (!hec_kernel_takes_epilogue(hec_kernel_of(op)))
        return hec_ir_error(op, "this kernel takes no epilogue");
    if (!has_epilogues(op)) return false;
    MlirType type[HEC_FUSED_VALUES];
    for (int i = 0; i < fused.inputs; i++) type[i] = mlirValueGetType(fused.input[i]);
    return fits(op, mlirValueGetType(fused.output[0]), fused.inputs, type) || report_misfit(op);
}
