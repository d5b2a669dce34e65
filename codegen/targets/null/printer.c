// Target null, the skeleton of a target: its programs print their operations, in order, and compute nothing.
#include <stdlib.h>
#include <string.h>

#include "codegen/host/back_end.h"
#include "codegen/host/dims.h"
#include "codegen/host/function.h"
#include "ir/core/kernel.h"

// "normed [batch, T, D]"; "_" for a value without a name.
static const char *value_text(struct hec_emitter *e, MlirValue value) {
    const MlirType type = mlirValueGetType(value);
    if (!mlirTypeIsARankedTensor(type)) return "i";
    const MlirStringRef name = hec_temporary_name(value);
    return HEC_TEXT(e, "%.*s %s", name.length ? (int)name.length : 1, name.length ? name.data : "_",
                    hec_dims_text(e, type));
}

// Operands from .. to-1, and results.
static const char *values_text(struct hec_emitter *e, MlirOperation op, int operands, int results) {
    const char *text = "", *comma = ": ";
    for (int i = 0; i < operands; i++, comma = ", ")
        text = HEC_TEXT(e, "%s%s%s", text, comma, value_text(e, hec_operand(op, i)));
    comma = " -> ";
    for (int i = 0; i < results; i++, comma = ", ")
        text = HEC_TEXT(e, "%s%s%s", text, comma, value_text(e, hec_result(op, i)));
    return text;
}

// "silu, mul": the operations of a region.
static const char *region_text(struct hec_emitter *e, MlirBlock block) {
    const struct hec_ops body = hec_ops_in(block);
    const char *text = "", *comma = "";
    for (int i = 0; i < body.count; i++, comma = ", ") {
        if (hec_op_is(body.op[i], HEC_OP_YIELD)) continue;
        const char *name = hec_op_row(hec_op_of(body.op[i]))->name;
        text = HEC_TEXT(e, "%s%s%s", text, comma, strchr(name, '.') + 1);
    }
    free(body.op);
    return text;
}

// "matmul_nn(m = batch * T, n = H * A, k = D)"
static const char *kernel_text(struct hec_emitter *e, MlirOperation op,
                               const struct hec_kernel *kernel) {
    const char *text = HEC_TEXT(e, "%s(", kernel->name), *comma = "";
    for (const char *at = kernel->sizes; *at; at += *at == ' ') {
        const char *name = HEC_TEXT(e, "%.*s", (int)strcspn(at, " "), at);
        struct hec_tensor dims;
        if (hec_call_size(op, name, &dims))
            text =
                HEC_TEXT(e, "%s%s%s = %s", text, comma, name, hec_product(e, &dims, 0, dims.rank));
        comma = ", ";
        at += strcspn(at, " ");
    }
    return HEC_TEXT(e, "%s)", text);
}

static void print_call(struct hec_emitter *e, MlirOperation op) {
    const struct hec_call call = hec_call_of(op);
    if (hec_op_computes(op) == HEC_OP_noise) { // The target lacks it.
        hec_emit_fault(e, op, "is not supported yet by target null: noise");
        return;
    }
    const char *text = HEC_TEXT(e, "%s%s", kernel_text(e, op, hec_kernel_of(op)),
                                values_text(e, op, call.operands, call.results));
    if (!mlirValueIsNull(call.onto)) text = HEC_TEXT(e, "%s, added", text);
    if (call.outputs > 0) text = HEC_TEXT(e, "%s; then %s", text, region_text(e, call.block));
    hec_statement(e, "puts(\"%s\");", text);
}

static void print_loop(struct hec_emitter *e, MlirOperation op) {
    const MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    hec_statement(e, "puts(\"loop of %s%s\");", region_text(e, body),
                  values_text(e, op, (int)mlirOperationGetNumOperands(op),
                              (int)mlirOperationGetNumResults(op)));
}

static void print_operation(struct hec_emitter *e, MlirOperation op) {
    hec_statement(e, "puts(\"%s%s\");", hec_op_row(hec_op_of(op))->name,
                  values_text(e, op, (int)mlirOperationGetNumOperands(op),
                              (int)mlirOperationGetNumResults(op)));
}

static hec_emit_op *find(enum hec_op op) {
    switch (op) {
    case HEC_OP_call:
        return print_call;
    case HEC_OP_fused:
        return print_loop;
    default:
        return print_operation;
    }
}

const struct hec_back_end hec_back_end_null = {
    .name = "null",
    .ranks = "mpi",
    .headers = (const char *const[]){"stdio.h", NULL},
    .memory = &hec_host_memory,
    .of = find,
};
