// Epilogues: a moe.fused with `epilogue` is computed for each finished block of the product before it.
#include "ir/accessors.h"
#include "ir/ops/contract.h"
#include "ir/ops/fused.h"
#include "ir/ops/rule.h"

static bool is_product(MlirOperation op) {
    return hec_op_is(op, HEC_OP_contract) || hec_op_is(op, HEC_OP_grouped_contract);
}

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

bool hec_fits_epilogue(MlirOperation product, MlirOperation op) {
    struct hec_contract c;
    if (!is_product(product) || !hec_contract_of(product, &c) || c.form == HEC_CONTRACT_TN)
        return false;
    const struct hec_tensor *columns = c.form == HEC_CONTRACT_NN ? &c.n : &c.k;
    const MlirValue made = hec_result(product, 0);
    const MlirType space = mlirValueGetType(made);
    if (mlirShapedTypeGetRank(space) == 0 ||
        !mlirTypeEqual(mlirValueGetType(hec_result(op, 0)), space))
        return false;
    bool reads = false;
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirValue v = hec_operand(op, i);
        reads |= mlirValueEqual(v, made);
        if (!has_blocks(mlirValueGetType(v), &c.m, columns)) return false;
    }
    return reads;
}

MlirOperation hec_epilogue_product(MlirOperation op) {
    if (!hec_op_is(op, HEC_OP_fused) || !hec_any_epilogue(op)) return (MlirOperation){0};
    for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
        const MlirOperation made = hec_defining(hec_operand(op, i));
        if (is_product(made) && mlirOperationEqual(mlirOperationGetNextInBlock(made), op))
            return made;
    }
    return (MlirOperation){0};
}

MlirOperation hec_epilogue_of(MlirOperation product) {
    if (!is_product(product)) return (MlirOperation){0};
    const MlirOperation next = mlirOperationGetNextInBlock(product);
    const MlirOperation of = hec_epilogue_product(next);
    return mlirOperationEqual(of, product) ? next : (MlirOperation){0};
}

bool hec_verify_epilogue(MlirOperation op) {
    if (!hec_any_epilogue(op)) return true;
    const MlirOperation product = hec_epilogue_product(op);
    if (mlirOperationIsNull(product)) {
        hec_ir_error(op, "an epilogue must stand right behind a product whose result it reads");
        return false;
    }
    if (hec_fits_epilogue(product, op)) return true;
    hec_ir_error(op,
                 "an epilogue must work on blocks of its product's rows and columns: inputs with "
                 "all dimensions of either, or none");
    return false;
}
