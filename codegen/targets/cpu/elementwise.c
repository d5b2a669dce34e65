// Elementwise operations, alone or fused: one loop nest, whose body is one expression per output.
#include "codegen/host/expression.h"
#include "codegen/targets/cpu/loops.h"
#include "codegen/targets/cpu/ops.h"

void hec_emit_elementwise(struct hec_emitter *e, MlirOperation op) {
    MlirType type[5];
    struct hec_elements at = {0};
    const int operands = (int)mlirOperationGetNumOperands(op);
    const MlirValue result = hec_result(op, 0);
    for (int i = 0; i < operands; i++) type[i] = mlirValueGetType(hec_operand(op, i));
    type[operands] = mlirValueGetType(result);
    const struct hec_loops loops = hec_loops_of(hec_tensor_of(type[operands]), operands + 1, type);
    for (int i = 0; i < operands; i++)
        at.input[i] = hec_element(e, hec_operand(op, i), hec_nest_index(e, &loops.nest, type[i]));
    at.output[0] = hec_element(e, result, hec_nest_index(e, &loops.nest, type[operands]));
    at.adds[0] = hec_home_adds(result);
    hec_loops_statement(e, &loops, hec_elementwise_text(e, op, &at));
}

// Writes the loops over `loops`, which has been made for all tensors that go in and out.
static void emit_loops(struct hec_emitter *e, const struct hec_fused *of,
                       const struct hec_loops *loops) {
    struct hec_elements at = {0};
    for (int i = 0; i < of->inputs; i++) {
        const char *index = hec_nest_index(e, &loops->nest, mlirValueGetType(of->input[i]));
        at.input[i] = hec_element(e, of->input[i], index);
    }
    for (int i = 0; i < of->outputs; i++) { // Declared before the loop.
        const char *index = hec_nest_index(e, &loops->nest, mlirValueGetType(of->output[i]));
        at.output[i] = hec_element(e, of->output[i], index);
        at.adds[i] = hec_home_adds(of->output[i]);
    }
    // The body is written aside: where it is one statement, it goes on the line of its loop.
    struct hec_writer *const text = &e->function->body;
    struct hec_writer body = {.arena = &e->arena, .indent = text->indent + loops->nest.loops};
    const char *single = hec_region_text(e, of, &at, &body);
    if (single) {
        hec_loops_statement(e, loops, single);
    } else {
        hec_loops_open(e, loops);
        hec_append(text, &body);
        hec_loops_close(e, loops);
    }
}

void hec_emit_fused(struct hec_emitter *e, MlirOperation op) {
    const struct hec_fused of = hec_fused_of(op);
    MlirType type[2 * HEC_FUSED_VALUES];
    for (int i = 0; i < of.inputs; i++) type[i] = mlirValueGetType(of.input[i]);
    for (int i = 0; i < of.outputs; i++) type[of.inputs + i] = mlirValueGetType(of.output[i]);
    const struct hec_tensor space = hec_tensor_of(type[of.inputs]);
    const struct hec_loops loops = hec_loops_of(space, of.inputs + of.outputs, type);
    emit_loops(e, &of, &loops);
}

void hec_emit_epilogue_loops(struct hec_emitter *e, MlirOperation call, int rows) {
    const struct hec_fused of = hec_fused_of(call);
    const struct hec_tensor space = hec_tensor_of(mlirValueGetType(of.output[0]));
    const struct hec_loops loops = hec_loops_of_block(space, rows);
    emit_loops(e, &of, &loops);
}
