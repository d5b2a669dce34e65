// Calls of builtin functions: one way to check a call for each rule of lang/builtins.def.
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

static struct hec_value hec_call_elementwise(struct hec_site *site, const struct hec_expr *expr,
                                             enum hec_builtin builtin) {
    struct hec_checker *checker = site->checker;
    if (!hec_check_builtin(checker, expr, builtin)) return broken;
    enum { OPERANDS = 2 };
    const int operands = expr->arguments.count;
    const struct hec_expr *operand[OPERANDS] = {0};
    struct hec_value value[OPERANDS] = {0};
    struct hec_constant constant[OPERANDS] = {0};
    bool known = true;
    for (int i = 0; i < operands; i++) {
        operand[i] = expr->arguments.item[i].value;
        value[i] = hec_evaluate(site, operand[i], NULL);
        constant[i] = value[i].constant;
        known &= !value[i].node && !value[i].broken;
    }
    struct hec_value folded = {0};
    if (known && hec_constant_call(expr->text, constant, operands, &folded.constant)) return folded;
    const struct hec_node *node[OPERANDS] = {0};
    for (int i = 0; i < operands; i++) {
        node[i] = hec_node_of(site, value[i], operand[i]->at);
        if (!node[i]) return broken;
    }
    return hec_elementwise(site, builtin, expr, operand[0], node[0], operand[1], node[1]);
}

// The rate of a call; false after reporting that it is none.
static bool read_rate(struct hec_site *site, const struct hec_expr *expr, double *rate) {
    const struct hec_expr *given = expr->arguments.item[1].value;
    if (!hec_constant_real(site->checker, site->env, given, "a rate of dropout", rate))
        return false;
    if (*rate >= 0 && *rate < 1) return true;
    return hec_error(site->checker, given->at,
                     "a rate of dropout is at least 0 and less than 1, not %s",
                     hec_number_text(site->checker->arena, *rate));
}

static struct hec_value hec_call_dropout(struct hec_site *site, const struct hec_expr *expr,
                                         enum hec_builtin builtin) {
    struct hec_checker *checker = site->checker;
    if (!hec_check_builtin(checker, expr, builtin)) return broken;
    const struct hec_expr *input = expr->arguments.item[0].value;
    const struct hec_node *x = hec_node_of(site, hec_evaluate(site, input, NULL), input->at);
    double rate = 0;
    if (!read_rate(site, expr, &rate) || !x) return broken;
    if (site->expert_of) {
        hec_error(checker, expr->at, "not yet: dropout inside of an expert");
        return broken;
    }
    if (x->integer || !x->batched || hec_shape_find(&x->shape, checker->positions) != 0) {
        hec_error(checker, input->at,
                  "dropout takes real values of each position, whose first dim is `%s`",
                  checker->positions);
        return broken;
    }
    return hec_node_value(rate == 0 ? x : hec_drop(site, x, rate, expr->at));
}

struct hec_value hec_call_builtin(struct hec_site *site, const struct hec_expr *expr,
                                  enum hec_builtin builtin, const char *callee) {
    static hec_call_fn *const call[HEC_BUILTIN_COUNT] = {
#define hec_call_norm NULL // Names its parameters after the callee.
#define HEC_OPERATOR(id, rule, text)
#define HEC_FUNCTION(id, rule, call, text) [HEC_BUILTIN_##id] = hec_call_##rule,
#include "lang/builtins.def"
    };
    if (expr->label && call[builtin]) {
        hec_error(site->checker, expr->label_at,
                  "only what has parameters takes a label: blocks, moes and norms");
        return broken;
    }
    return call[builtin] ? call[builtin](site, expr, builtin)
                         : hec_norm(site, expr, builtin, callee);
}
