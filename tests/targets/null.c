// Target null: what its programs print for one operation.
#include "tests/targets/null.h"

#include "codegen/host/dims.h"
#include "codegen/host/function.h"

// "normed [batch, T, D]"; "_" for a value without a name.
static const char *value_text(struct hec_emitter *e, MlirValue value) {
    const MlirType type = mlirValueGetType(value);
    if (!mlirTypeIsARankedTensor(type)) return "i";
    const MlirStringRef name = hec_temporary_name(value);
    return HEC_TEXT(e, "%.*s %s", name.length ? (int)name.length : 1, name.length ? name.data : "_",
                    hec_dims_text(e, type));
}

static void print_operation(struct hec_emitter *e, MlirOperation op) {
    const char *text = hec_op_row(hec_op_computes(op))->name, *comma = ": ";
    for (int i = 0; i < (int)mlirOperationGetNumOperands(op); i++, comma = ", ") {
        text = HEC_TEXT(e, "%s%s%s", text, comma, value_text(e, hec_operand(op, i)));
    }
    comma = " -> ";
    for (int i = 0; i < (int)mlirOperationGetNumResults(op); i++, comma = ", ") {
        text = HEC_TEXT(e, "%s%s%s", text, comma, value_text(e, hec_result(op, i)));
    }
    hec_statement(e, "puts(\"%s\");", text);
}

// Everything but random numbers: an operation that a target lacks is refused at its location.
static hec_emit_op *find(enum hec_op op) {
    return op == HEC_OP_noise ? NULL : print_operation;
}

const struct hec_printer null_printer = {
    .target = "null",
    .headers = (const char *const[]){"stdio.h", NULL},
    .of = find,
};
