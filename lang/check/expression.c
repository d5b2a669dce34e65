// Expressions of a body: names, numbers and operators; calls are in call.c.
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

static struct hec_value name(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    struct hec_local *local = hec_find_local(site, expr->text);
    if (local) {
        local->used = true;
        return local->value;
    }
    bool is_broken = false;
    struct hec_value value = {0};
    if (hec_resolve_constant(checker, site->env, expr->text, &value.constant, &is_broken))
        return value;
    if (is_broken) return broken;
    const struct hec_entry *entry = hec_find_entry(checker, expr->text);
    if (!entry) {
        hec_unknown_name(site, expr);
        return broken;
    }
    hec_error(checker, expr->at, "`%s` is a %s: call it, as in `%s(x)`", entry->name,
              entry->kind == HEC_ITEM_MOE ? "moe" : "block", entry->name);
    return broken;
}

static struct hec_value gather(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    const struct hec_value table = hec_evaluate(site, expr->left, NULL);
    if (expr->arguments.count != 1) {
        hec_error(checker, expr->at, "`[ ]` gathers rows by one tensor of ids, not by %d",
                  expr->arguments.count);
        return broken;
    }
    const struct hec_expr *index = expr->arguments.item[0].value;
    const struct hec_value ids = hec_evaluate(site, index, NULL);
    if (table.broken || ids.broken) return broken;
    if (!table.node || !ids.node) {
        hec_error(checker, expr->at, "`%s` is not a gather: it takes table[ids]",
                  hec_expr_text(checker->arena, expr));
        return broken;
    }
    return hec_gather(site, expr, table.node, ids.node);
}

static struct hec_value unary(struct hec_site *site, const struct hec_expr *expr) {
    const struct hec_value right = hec_evaluate(site, expr->right, NULL);
    if (right.broken) return broken;
    if (!right.node) {
        struct hec_value value = {0};
        value.broken =
            !hec_constant_operate(site->checker, expr, NULL, &right.constant, &value.constant);
        return value;
    }
    if (expr->operation == HEC_OP_NEG)
        return hec_elementwise(site, HEC_BUILTIN_neg, expr, expr->right, right.node, NULL, NULL);
    hec_error(site->checker, expr->text_at, "`not` works on what is known when compiling");
    return broken;
}

static struct hec_value binary(struct hec_site *site, const struct hec_expr *expr) {
    static const enum hec_builtin builtins[] = {[HEC_OP_ADD] = HEC_BUILTIN_add,
                                                [HEC_OP_SUB] = HEC_BUILTIN_sub,
                                                [HEC_OP_MUL] = HEC_BUILTIN_mul,
                                                [HEC_OP_DIV] = HEC_BUILTIN_div};
    const struct hec_value left = hec_evaluate(site, expr->left, NULL);
    const struct hec_value right = hec_evaluate(site, expr->right, NULL);
    if (left.broken || right.broken) return broken;
    if (!left.node && !right.node) {
        struct hec_value value = {0};
        value.broken = !hec_constant_operate(site->checker, expr, &left.constant, &right.constant,
                                             &value.constant);
        return value;
    }
    const enum hec_operator operation = expr->operation;
    const bool arithmetic = operation >= HEC_OP_ADD && operation <= HEC_OP_DIV;
    if (!arithmetic && operation != HEC_OP_CONTRACT) {
        hec_error(site->checker, expr->text_at, "`%s` works on what is known when compiling",
                  hec_operator_text(operation));
        return broken;
    }
    const struct hec_node *a = hec_node_of(site, left, expr->left->at);
    const struct hec_node *b = hec_node_of(site, right, expr->right->at);
    if (!a || !b) return broken;
    if (operation == HEC_OP_CONTRACT) return hec_contract(site, expr, a, b);
    return hec_elementwise(site, builtins[operation], expr, expr->left, a, expr->right, b);
}

struct hec_value hec_evaluate(struct hec_site *site, const struct hec_expr *expr,
                              const char *callee) {
    switch (expr->kind) {
    case HEC_EXPR_NAME:
        return name(site, expr);
    case HEC_EXPR_NUMBER:
    case HEC_EXPR_BOOL: {
        struct hec_value value = {0};
        hec_constant_of(site->checker, site->env, expr, &value.constant);
        return value;
    }
    case HEC_EXPR_CALL:
        return site->checker->walk->call(site, expr, callee);
    case HEC_EXPR_INDEX:
        return gather(site, expr);
    case HEC_EXPR_UNARY:
        return unary(site, expr);
    case HEC_EXPR_BINARY:
        return binary(site, expr);
    default:
        hec_error(site->checker, expr->at, "`%s` is no tensor",
                  hec_expr_text(site->checker->arena, expr));
        return broken;
    }
}
