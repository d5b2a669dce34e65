// Elementwise operations, alone or fused: one loop nest, whose body is one expression per output.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/c/nest.h"
#include "codegen/c/ops.h"
#include "ir/ops/fused.h"

// How tightly the outermost operator of an expression binds.
enum level { TERNARY, SUM, PRODUCT, UNARY, PRIMARY };

struct expression {
    const char *text;
    enum level level;
};

// Operators, with their blanks. What is neither here nor in `apply` is a function of kernels/scalar.h, which has
// the operation's name.
static const struct {
    enum hec_op op;
    const char *text;
    enum level level;
} operators[] = {
    {HEC_OP_add, " + ", SUM},         {HEC_OP_sub, " - ", SUM},
    {HEC_OP_mul, " * ", PRODUCT},     {HEC_OP_div, " / ", PRODUCT},
    {HEC_OP_minimum, " < ", TERNARY}, {HEC_OP_maximum, " > ", TERNARY},
    {HEC_OP_neg, "-", UNARY},
};

// `x`, in brackets where an operator around it would take it apart. The right side of `-` and `/`
// needs them at its own level, too; so does that of `+` and `*`, since rounding tells the order.
static const char *at_least(struct hec_emitter *e, struct expression x, enum level level) {
    return x.level >= level ? x.text : HEC_TEXT(e, "(%s)", x.text);
}

static struct expression operate(struct hec_emitter *e, const char *operator, enum level level,
                                 const struct expression *x) {
    const char *text = NULL;
    switch (level) {
    case TERNARY:
        text =
            HEC_TEXT(e, "%s%s%s ? %s : %s", x[0].text, operator, x[1].text, x[0].text, x[1].text);
        break;
    case SUM:
    case PRODUCT:
        text =
            HEC_TEXT(e, "%s%s%s", at_least(e, x[0], level), operator, at_least(e, x[1], level + 1));
        break;
    case UNARY:
    case PRIMARY:
        text = HEC_TEXT(e, "%s%s", operator, at_least(e, x[0], PRIMARY));
        break;
    }
    return (struct expression){text, level};
}

// moe.silu_grad -> hk_silu_grad_f32(dr, a)
static struct expression call(struct hec_emitter *e, MlirOperation op, const struct expression *x) {
    const char *name = strchr(hec_op_row(hec_op_of(op))->name, '.') + 1, *arguments = x[0].text;
    for (int i = 1; i < (int)mlirOperationGetNumOperands(op); i++) {
        arguments = HEC_TEXT(e, "%s, %s", arguments, x[i].text);
    }
    return (struct expression){HEC_TEXT(e, "hk_%s_%s(%s)", name, e->suffix, arguments), PRIMARY};
}

static struct expression apply(struct hec_emitter *e, MlirOperation op,
                               const struct expression *x) {
    const enum hec_op id = hec_op_of(op);
    if (id == HEC_OP_fill) {
        const double value = hec_get_float(op, "value");
        return (struct expression){hec_real(e, value), value < 0 ? UNARY : PRIMARY};
    }
    if (id == HEC_OP_sqrt) {
        const char *f = strcmp(e->suffix, "f32") == 0 ? "f" : "";
        return (struct expression){HEC_TEXT(e, "sqrt%s(%s)", f, x[0].text), PRIMARY};
    }
    if (id == HEC_OP_select_less) {
        return (struct expression){HEC_TEXT(e, "%s < %s ? %s : %s == %s ? %s * %s : %s", x[0].text,
                                            x[1].text, x[2].text, x[0].text, x[1].text,
                                            hec_real(e, 0.5), x[2].text, hec_real(e, 0)),
                                   TERNARY};
    }
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (operators[i].op == id) return operate(e, operators[i].text, operators[i].level, x);
    }
    return call(e, op, x);
}

// Operations that mention an operand twice need it as a name or an element.
static bool mentions_twice(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    return id == HEC_OP_select_less || id == HEC_OP_minimum || id == HEC_OP_maximum;
}

static void write_result(struct hec_emitter *e, const struct hec_nest *nest, MlirValue result,
                         const char *text, bool alone) {
    const char *index = hec_nest_index(e, nest, mlirValueGetType(result));
    const char *line = HEC_TEXT(e, "%s %s %s;", hec_element(e, result, index),
                                hec_home_adds(result) ? "+=" : "=", text);
    if (alone) {
        hec_nest_statement(e, nest, line);
    } else {
        hec_statement(e, "%s", line);
    }
}

void hec_emit_elementwise(struct hec_emitter *e, MlirOperation op) {
    MlirType type[5];
    struct expression x[4];
    const int operands = (int)mlirOperationGetNumOperands(op);
    assert(operands <= 4);
    const MlirValue result = hec_result(op, 0);
    for (int i = 0; i < operands; i++) type[i] = mlirValueGetType(hec_operand(op, i));
    type[operands] = mlirValueGetType(result);
    const struct hec_nest nest = hec_nest_of(hec_tensor_of(type[operands]), operands + 1, type);
    for (int i = 0; i < operands; i++) {
        const char *at = hec_nest_index(e, &nest, type[i]);
        x[i] = (struct expression){hec_element(e, hec_operand(op, i), at), PRIMARY};
    }
    const char *index = hec_nest_index(e, &nest, type[operands]);
    const char *to = hec_element(e, result, index);
    if (hec_op_is(op, HEC_OP_add) && !hec_home_adds(result) && strcmp(to, x[0].text) == 0) {
        hec_nest_statement(e, &nest, HEC_TEXT(e, "%s += %s;", to, x[1].text));
    } else {
        write_result(e, &nest, result, apply(e, op, x).text, true);
    }
}

// ---- fused

// What a value of the region stands for.
struct fused {
    struct hec_map number; // Value -> index + 1.
    HEC_VEC(struct expression) expressions;
};

static void set_expression(struct hec_emitter *e, struct fused *fused, MlirValue value,
                           struct expression x) {
    HEC_PUSH(&e->arena, &fused->expressions, x);
    *hec_map_at(&fused->number, value.ptr) = fused->expressions.count;
}

static struct expression get_expression(const struct fused *fused, MlirValue value) {
    const intptr_t number = hec_map_get(&fused->number, value.ptr);
    return number ? fused->expressions.item[number - 1] : (struct expression){"0", PRIMARY};
}

// How often a value is mentioned; an operation that mentions its operands twice counts so.
static int mentions(MlirValue value) {
    int count = 0;
    for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use);
         use = mlirOpOperandGetNextUse(use)) {
        count += mentions_twice(mlirOpOperandGetOwner(use)) ? 2 : 1;
    }
    return count;
}

static void fuse_operation(struct hec_emitter *e, struct fused *fused, MlirOperation op) {
    enum { LONGEST = 56 }; // Of an expression inside another one.
    if (!hec_op_traits(op)->elementwise) {
        hec_emit_fault(e, op, "cannot stand in moe.fused");
        return;
    }
    struct expression x[4];
    for (int i = 0; i < (int)mlirOperationGetNumOperands(op) && i < 4; i++) {
        x[i] = get_expression(fused, hec_operand(op, i));
    }
    const MlirValue result = hec_result(op, 0);
    struct expression made = apply(e, op, x);
    if (hec_op_of(op) != HEC_OP_fill && (mentions(result) > 1 || strlen(made.text) > LONGEST)) {
        const MlirStringRef name = hec_value_name(result);
        const char *local = hec_ident(&e->function->names, name, "t");
        hec_statement(e, "const %s %s = %s;", e->real, local, made.text);
        made = (struct expression){local, PRIMARY};
    }
    set_expression(e, fused, result, made);
}

// Stores all outputs. An output may take the memory of an input, so no expression reads memory after
// the first store.
static void store_results(struct hec_emitter *e, const struct fused *fused,
                          const struct hec_nest *nest, const struct hec_fused *of) {
    const MlirOperation yield = mlirBlockGetTerminator(of->body);
    const char *text[HEC_FUSED_VALUES];
    for (int i = 0; i < of->outputs; i++) {
        const MlirValue value = hec_operand(yield, i);
        text[i] = get_expression(fused, value).text;
        if (i == 0 || !strchr(text[i], '[')) continue;
        const char *local = hec_ident(&e->function->names, hec_value_name(value), "t");
        hec_statement(e, "const %s %s = %s;", e->real, local, text[i]);
        text[i] = local;
    }
    for (int i = 0; i < of->outputs; i++) write_result(e, nest, of->output[i], text[i], false);
}

// Writes the loops over `nest`, which has been made for all tensors that go in and out.
static void emit_loops(struct hec_emitter *e, const struct hec_fused *of,
                       const struct hec_nest *nest) {
    struct fused fused = {0};
    for (int i = 0; i < of->inputs; i++) {
        const char *index = hec_nest_index(e, nest, mlirValueGetType(of->input[i]));
        const struct expression x = {hec_element(e, of->input[i], index), PRIMARY};
        set_expression(e, &fused, mlirBlockGetArgument(of->body, i), x);
    }
    for (int i = 0; i < of->outputs; i++) hec_ref(e, of->output[i]); // Declared before the loop.

    // The body is written aside: where it is one statement, it goes on the line of its loop.
    struct hec_writer *const text = &e->function->body;
    struct hec_writer outside = *text;
    *text = (struct hec_writer){.arena = &e->arena, .indent = outside.indent + nest->loops};
    MlirOperation inner = mlirBlockGetFirstOperation(of->body);
    for (; !hec_op_is(inner, HEC_OP_YIELD); inner = mlirOperationGetNextInBlock(inner)) {
        fuse_operation(e, &fused, inner);
    }
    const bool single = of->outputs == 1 && text->length == 0;
    if (!single) store_results(e, &fused, nest, of);
    const struct hec_writer statements = *text;
    *text = outside;
    if (single) {
        const struct expression x = get_expression(&fused, hec_operand(inner, 0));
        write_result(e, nest, of->output[0], x.text, true);
    } else {
        hec_nest_open(e, nest);
        hec_append(text, &statements);
        hec_nest_close(e, nest);
    }
    hec_map_free(&fused.number);
}

void hec_emit_fused(struct hec_emitter *e, MlirOperation op) {
    const struct hec_fused of = hec_fused_of(op);
    MlirType type[2 * HEC_FUSED_VALUES];
    for (int i = 0; i < of.inputs; i++) type[i] = mlirValueGetType(of.input[i]);
    for (int i = 0; i < of.outputs; i++) type[of.inputs + i] = mlirValueGetType(of.output[i]);
    const struct hec_tensor space = hec_tensor_of(type[of.inputs]);
    const struct hec_nest nest = hec_nest_of(space, of.inputs + of.outputs, type);
    emit_loops(e, &of, &nest);
}

void hec_emit_epilogue_loops(struct hec_emitter *e, MlirOperation call, int rows) {
    const struct hec_fused of = hec_fused_of(call);
    const struct hec_tensor space = hec_tensor_of(mlirValueGetType(of.output[0]));
    const struct hec_nest nest = hec_nest_of_block(space, rows);
    emit_loops(e, &of, &nest);
}
