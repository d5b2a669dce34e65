// Builtin functions: which there are, and their calls.
#include <string.h>

#include "lang/builtins.h"
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

static const char *const builtin_text[HEC_BUILTIN_COUNT] = {
    [HEC_ADD] = "add",
    [HEC_SUB] = "sub",
    [HEC_MUL] = "mul",
    [HEC_DIV] = "div",
    [HEC_NEG] = "neg",
    [HEC_SILU] = "silu",
    [HEC_GELU] = "gelu",
    [HEC_GELU_ERF] = "gelu_erf",
    [HEC_RELU] = "relu",
    [HEC_SIGMOID] = "sigmoid",
    [HEC_TANH] = "tanh",
    [HEC_EXP] = "exp",
    [HEC_SQRT] = "sqrt",
    [HEC_MINIMUM] = "minimum",
    [HEC_MAXIMUM] = "maximum",
    [HEC_CONTRACT] = "contract",
    [HEC_GATHER] = "gather",
    [HEC_RMSNORM] = "rmsnorm",
    [HEC_LAYERNORM] = "layernorm",
    [HEC_ROPE] = "rope",
    [HEC_SDPA] = "sdpa",
};

const char *hec_builtin_name(enum hec_builtin builtin) {
    return builtin_text[builtin];
}

bool hec_is_builtin(const char *name) {
    for (int i = 0; i < hec_builtin_rows_count; i++) {
        if (!strcmp(hec_builtin_rows[i].name, name)) return true;
    }
    return false;
}

static bool find_elementwise(const char *name, enum hec_builtin *builtin) {
    for (int i = HEC_SILU; i <= HEC_MAXIMUM; i++) {
        if (strcmp(builtin_text[i], name)) continue;
        *builtin = (enum hec_builtin)i;
        return true;
    }
    return false;
}

static struct hec_value call_elementwise(struct hec_site *site, const struct hec_expr *expr,
                                         enum hec_builtin builtin) {
    struct hec_checker *checker = site->checker;
    const int operands = builtin == HEC_MINIMUM || builtin == HEC_MAXIMUM ? 2 : 1;
    if (!hec_check_arguments(checker, expr, operands, NULL, 0)) return broken;
    const struct hec_expr *operand[2] = {expr->arguments.item[0].value,
                                         operands == 2 ? expr->arguments.item[1].value : NULL};
    struct hec_value value[2] = {{0}, {0}};
    struct hec_constant constant[2] = {0};
    bool known = true;
    for (int i = 0; i < operands; i++) {
        value[i] = hec_evaluate(site, operand[i], NULL);
        constant[i] = value[i].constant;
        known &= !value[i].node && !value[i].broken;
    }
    struct hec_value folded = {0};
    if (known && hec_constant_call(expr->text, constant, operands, &folded.constant)) return folded;
    const struct hec_node *node[2] = {0};
    for (int i = 0; i < operands; i++) {
        node[i] = hec_node_of(site, value[i], operand[i]->at);
        if (!node[i]) return broken;
    }
    return hec_elementwise(site, builtin, expr, operand[0], node[0], operand[1], node[1]);
}

struct hec_value hec_call_builtin(struct hec_site *site, const struct hec_expr *expr,
                                  const char *callee) {
    enum hec_builtin builtin;
    const bool norm = !strcmp(expr->text, "rmsnorm") || !strcmp(expr->text, "layernorm");
    if (expr->label && !norm) {
        hec_error(site->checker, expr->label_at,
                  "only what has parameters takes a label: blocks, moes and norms");
        return broken;
    }
    if (norm) return hec_norm(site, expr, callee);
    if (!strcmp(expr->text, "rope")) return hec_rope(site, expr);
    if (!strcmp(expr->text, "sdpa")) return hec_sdpa(site, expr);
    if (find_elementwise(expr->text, &builtin)) return call_elementwise(site, expr, builtin);
    return broken;
}
