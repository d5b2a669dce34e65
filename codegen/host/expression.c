// Elementwise operations as C expressions.
#include "codegen/host/expression.h"

#include <assert.h>
#include <string.h>

#include "codegen/host/literal.h"

// How tightly the outermost operator of an expression binds.
enum level { TERNARY, SUM, PRODUCT, UNARY, PRIMARY };

struct expression {
    const char *text;
    enum level level;
};

// Operators, with their blanks. All operations but these and those of `apply` are functions of kernels/scalar.h with
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

// The statement that writes output `i`.
static const char *store_text(struct hec_emitter *e, const struct hec_elements *at, int i,
                              const char *value) {
    if (at->rounds[i]) return HEC_TEXT(e, "%s = %s(%s);", at->output[i], at->rounds[i], value);
    return HEC_TEXT(e, "%s %s %s;", at->output[i], at->adds[i] ? "+=" : "=", value);
}

const char *hec_elementwise_text(struct hec_emitter *e, MlirOperation op,
                                 const struct hec_elements *at) {
    struct expression x[4];
    const int operands = (int)mlirOperationGetNumOperands(op);
    assert(operands <= 4);
    for (int i = 0; i < operands; i++) x[i] = (struct expression){at->input[i], PRIMARY};
    const char *to = at->output[0];
    if (hec_op_is(op, HEC_OP_add) && !at->adds[0] && strcmp(to, x[0].text) == 0)
        return HEC_TEXT(e, "%s += %s;", to, x[1].text);
    return store_text(e, at, 0, apply(e, op, x).text);
}

// ---- regions

// Operations that mention an operand twice need it as a name or an element.
static bool mentions_twice(MlirOperation op) {
    const enum hec_op id = hec_op_of(op);
    return id == HEC_OP_select_less || id == HEC_OP_minimum || id == HEC_OP_maximum;
}

// The expressions for values of a region.
struct region {
    struct hec_map number; // Value -> index + 1.
    HEC_VEC(struct expression) expressions;
};

static void set_expression(struct hec_emitter *e, struct region *region, MlirValue value,
                           struct expression x) {
    HEC_PUSH(&e->arena, &region->expressions, x);
    *hec_map_at(&region->number, value.ptr) = region->expressions.count;
}

static struct expression get_expression(const struct region *region, MlirValue value) {
    const intptr_t number = hec_map_get(&region->number, value.ptr);
    return number ? region->expressions.item[number - 1] : (struct expression){"0", PRIMARY};
}

// How often a value is mentioned; an operation that mentions its operands twice counts so.
static int mentions(MlirValue value) {
    int count = 0;
    HEC_EACH_USE (use, value) {
        count += mentions_twice(mlirOpOperandGetOwner(use)) ? 2 : 1;
    }
    return count;
}

static void add_operation(struct hec_emitter *e, struct region *region, MlirOperation op,
                          struct hec_writer *body) {
    enum { LONGEST = 56 }; // The longest expression inside another one.
    if (!hec_op_traits(op)->elementwise) {
        hec_emit_fault(e, op, "cannot stand in moe.fused");
        return;
    }
    struct expression x[4];
    for (int i = 0; i < (int)mlirOperationGetNumOperands(op) && i < 4; i++) {
        x[i] = get_expression(region, hec_operand(op, i));
    }
    const MlirValue result = hec_result(op, 0);
    struct expression made = apply(e, op, x);
    if (hec_op_of(op) != HEC_OP_fill && (mentions(result) > 1 || strlen(made.text) > LONGEST)) {
        const MlirStringRef name = hec_value_name(result);
        const char *local = hec_ident(&e->function->names, name, "t");
        hec_line(body, "const %s %s = %s;", e->real, local, made.text);
        made = (struct expression){local, PRIMARY};
    }
    set_expression(e, region, result, made);
}

// Stores all outputs. An output may take the memory of an input, so no expression reads memory after
// the first store.
static void store_results(struct hec_emitter *e, const struct region *region,
                          const struct hec_fused *of, const struct hec_elements *at,
                          struct hec_writer *body) {
    const MlirOperation yield = mlirBlockGetTerminator(of->body);
    const char *text[HEC_FUSED_VALUES];
    for (int i = 0; i < of->outputs; i++) {
        const MlirValue value = hec_operand(yield, i);
        text[i] = get_expression(region, value).text;
        if (i == 0 || !strchr(text[i], '[')) continue;
        const char *local = hec_ident(&e->function->names, hec_value_name(value), "t");
        hec_line(body, "const %s %s = %s;", e->real, local, text[i]);
        text[i] = local;
    }
    for (int i = 0; i < of->outputs; i++) hec_line(body, "%s", store_text(e, at, i, text[i]));
}

const char *hec_region_text(struct hec_emitter *e, const struct hec_fused *of,
                            const struct hec_elements *at, struct hec_writer *body) {
    struct region region = {0};
    for (int i = 0; i < of->inputs; i++)
        set_expression(e, &region, mlirBlockGetArgument(of->body, i),
                       (struct expression){at->input[i], PRIMARY});
    const size_t before = body->length;
    MlirOperation inner = mlirBlockGetFirstOperation(of->body);
    for (; !hec_op_is(inner, HEC_OP_YIELD); inner = mlirOperationGetNextInBlock(inner))
        add_operation(e, &region, inner, body);
    const char *single = NULL;
    if (of->outputs == 1 && body->length == before) {
        single = store_text(e, at, 0, get_expression(&region, hec_operand(inner, 0)).text);
    } else {
        store_results(e, &region, of, at, body);
    }
    hec_map_free(&region.number);
    return single;
}
