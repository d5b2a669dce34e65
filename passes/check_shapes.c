// check-shapes: checks once, with messages for people, all that later passes take for granted.
//
//   before   IR from ir/build, or text read by --compile-from
//   after    the same
//
// Why      IRDL cannot say that two operands share a dimension, that a GEMM has one of the three
//          forms for which there are kernels, or that @forward has the arguments a program gets.
// Needs    a module that MLIR's own verifier accepts.
// Leaves   the module as it is. Every operation passes hec_op_verify; @forward takes ids, targets,
//          scale and auxiliary_scale and returns loss, cross entropy, auxiliary loss and those that have names.
// Reports  every fault in one run; "not yet" for GEMMs that would need a transpose.
#include "passes/base/pass.h"

static bool is_scalar(MlirType type) {
    return hec_type_is_real(type) && mlirShapedTypeGetRank(type) == 0;
}

static bool is_tokens(MlirType type) {
    return mlirTypeIsARankedTensor(type) && mlirShapedTypeGetRank(type) == 2 &&
           mlirTypeIsAInteger(mlirShapedTypeGetElementType(type));
}

static bool check_forward(MlirOperation module) {
    const MlirOperation forward = hec_find_symbol(module, HEC_STR("forward"));
    if (mlirOperationIsNull(forward) || !hec_op_is(forward, HEC_OP_FUNC))
        return hec_ir_error(module, "there is no function @forward");
    const MlirBlock body = hec_func_body(forward);
    bool sound = mlirBlockGetNumArguments(body) == 4;
    for (int i = 0; i < 4 && sound; i++) {
        const MlirType type = mlirValueGetType(mlirBlockGetArgument(body, i));
        sound = i < 2 ? is_tokens(type) : is_scalar(type);
    }
    if (!sound) hec_ir_error(forward, "@forward takes ids, targets, scale and auxiliary_scale");
    const MlirOperation ret = mlirBlockGetTerminator(body);
    const int losses = hec_count_losses(module);
    bool scalars = mlirOperationGetNumOperands(ret) == losses;
    for (int i = 0; i < losses && scalars; i++) {
        scalars = is_scalar(mlirValueGetType(hec_operand(ret, i)));
    }
    if (!scalars)
        hec_ir_error(ret, "@forward returns loss, cross entropy and auxiliary loss%s",
                     losses > HEC_LOSSES ? ", then one for each slot that holds a loss" : "");
    const bool few = losses <= HEC_LOSSES + HEC_IR_NAMED_LOSSES_MAX;
    if (!few)
        hec_ir_error(module, "more than %d slots hold the logits of a loss",
                     HEC_IR_NAMED_LOSSES_MAX);
    return sound && scalars && few;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    bool sound = true;
    HEC_EACH (op, hec_ops_below(module)) sound &= hec_op_verify(op);
    sound &= check_forward(module);
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_check_shapes = {
    .run = run,
};
