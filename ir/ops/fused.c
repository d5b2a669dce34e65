// moe.fused: a run of elementwise operations of one iteration space, computed by one loop.
#include "ir/ops/fused.h"

#include "ir/core/kernel.h"
#include "ir/ops/rule.h"
#include "lang/base/arena.h"

#include <assert.h>
#include <stdlib.h>

// A block with an argument for each input.
static MlirBlock block_for(int inputs, const MlirValue *input) {
    MlirType *type = hec_checked(calloc((size_t)inputs + 1, sizeof *type));
    MlirLocation *at = hec_checked(calloc((size_t)inputs + 1, sizeof *at));
    for (int i = 0; i < inputs; i++) {
        type[i] = mlirValueGetType(input[i]);
        at[i] = mlirValueGetLocation(input[i]);
    }
    const MlirBlock block = mlirBlockCreate(inputs, type, at);
    free(type);
    free(at);
    return block;
}

MlirOperation hec_build_fused(struct hec_builder *b, int inputs, const MlirValue *input,
                              int outputs, const MlirType *type, MlirBlock *body) {
    int32_t length[HEC_FUSED_RUNS];
    const int runs = hec_fused_runs(inputs, input, length);
    assert(runs <= HEC_FUSED_RUNS);
    (void)runs;
    *body = block_for(inputs, input);
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, *body);

    const MlirNamedAttribute groups = hec_attr(
        b->context, HEC_OPERAND_SEGMENTS, mlirDenseI32ArrayGet(b->context, HEC_FUSED_RUNS, length));
    MlirOperationState state = mlirOperationStateGet(HEC_STR("moe.fused"), b->at);
    mlirOperationStateAddOperands(&state, inputs, input);
    mlirOperationStateAddResults(&state, outputs, type);
    mlirOperationStateAddAttributes(&state, 1, &groups);
    mlirOperationStateAddOwnedRegions(&state, 1, &region);
    const MlirOperation op = mlirOperationCreate(&state);
    assert(!mlirOperationIsNull(op));
    hec_builder_insert(b, op);
    return op;
}

static bool check_body(MlirOperation op, MlirBlock body) {
    HEC_EACH_IN (in, body) {
        if (hec_op_is(in, HEC_OP_YIELD) || hec_op_traits(in)->elementwise) continue;
        const MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(in));
        return hec_ir_error(op, "'%.*s' is not elementwise", (int)name.length, name.data);
    }
    return true;
}

struct hec_fused hec_fused_of(MlirOperation op) {
    struct hec_fused fused = {0};
    const struct hec_call call = hec_call_of(op);
    const bool epilogue = hec_op_is(op, HEC_OP_call);
    if (!epilogue && !hec_op_is(op, HEC_OP_fused)) return fused;
    fused.body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    if (mlirBlockIsNull(fused.body)) return fused;
    if (epilogue) fused.input[fused.inputs++] = hec_result(op, 0);
    for (int i = epilogue ? call.first_input : 0; i < mlirOperationGetNumOperands(op); i++) {
        if (fused.inputs < HEC_FUSED_VALUES) fused.input[fused.inputs++] = hec_operand(op, i);
    }
    for (int i = epilogue ? call.results : 0; i < mlirOperationGetNumResults(op); i++) {
        if (fused.outputs < HEC_FUSED_VALUES) fused.output[fused.outputs++] = hec_result(op, i);
    }
    return fused;
}

static bool check_inputs(MlirOperation op, const struct hec_fused *fused) {
    if (mlirBlockGetNumArguments(fused->body) != fused->inputs)
        return hec_ir_error(op, "the region has %d arguments for %d inputs",
                            (int)mlirBlockGetNumArguments(fused->body), fused->inputs);
    for (int i = 0; i < fused->inputs; i++) {
        const MlirType type = mlirValueGetType(mlirBlockGetArgument(fused->body, i));
        if (mlirTypeEqual(type, mlirValueGetType(fused->input[i]))) continue;
        return hec_ir_error(op, "argument %d of the region is %s, not the type of its input", i,
                            hec_type_text(type).text);
    }
    return true;
}

static bool check_outputs(MlirOperation op, const struct hec_fused *fused) {
    const MlirOperation yield = mlirBlockGetTerminator(fused->body);
    if (!hec_op_is(yield, HEC_OP_YIELD))
        return hec_ir_error(op, "the region does not end with vector.yield");
    if (fused->outputs == 0 || mlirOperationGetNumOperands(yield) != fused->outputs)
        return hec_ir_error(op, "the region yields %d values for %d outputs",
                            (int)mlirOperationGetNumOperands(yield), fused->outputs);
    const MlirType first = hec_type_unrounded(mlirValueGetType(fused->output[0]));
    for (int i = 0; i < fused->outputs; i++) {
        const MlirType type = mlirValueGetType(fused->output[i]);
        const MlirType made = mlirValueGetType(hec_operand(yield, i));
        if (!mlirTypeEqual(hec_type_unrounded(type), hec_type_unrounded(made)))
            return hec_ir_error(op, "output %d is %s, not the type of what is yielded", i,
                                hec_type_text(type).text);
        if (mlirTypeEqual(hec_type_unrounded(type), first)) continue;
        return hec_ir_error(op, "outputs %s and %s are not of one iteration space",
                            hec_type_text(first).text, hec_type_text(type).text);
    }
    return true;
}

bool hec_fused_verify(MlirOperation op, const struct hec_fused *fused) {
    if (mlirBlockIsNull(fused->body) || !mlirBlockIsNull(mlirBlockGetNextInRegion(fused->body)))
        return hec_ir_error(op, "the region must be one block");
    return check_inputs(op, fused) && check_body(op, fused->body) && check_outputs(op, fused);
}

static bool verify(MlirOperation op) {
    const struct hec_fused fused = hec_fused_of(op);
    return hec_fused_verify(op, &fused) && hec_verify_epilogue(op);
}

static struct hec_cost cost(MlirOperation op) {
    struct hec_cost cost = {.bytes = hec_io_bytes(op)};
    HEC_EACH (each, hec_ops_in(mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0))))
        if (!hec_op_is(each, HEC_OP_YIELD)) cost.flops += hec_op_cost(each).flops;
    return cost;
}

// No gradient: fusion runs after differentiation.
const struct hec_traits hec_traits_fused = {
    .pure = true, .in_place = ~0u, .verify = verify, .cost = cost};
