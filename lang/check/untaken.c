// Branches of an `if` that are not taken: their names are checked, so that a mistake does not wait for
// the setting that takes them. Shapes are not: they may make sense only where the condition holds.
#include <string.h>

#include "lang/builtins.h"
#include "lang/check/unit.h"

// Names that the branches not taken define, for what follows in such branches.
static bool is_defined_there(const struct hec_site *site, const char *name) {
    for (int i = 0; i < site->untaken.count; i++) {
        if (site->untaken.item[i].name == name) return true;
    }
    return false;
}

static void define(struct hec_site *site, const char *name, struct hec_span at) {
    HEC_PUSH(site->checker->arena, &site->untaken, (struct hec_taken){name, at});
}

static void check_name(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    struct hec_local *local = hec_find_local(site, expr->text);
    if (local) local->used = true;
    if (local || is_defined_there(site, expr->text) || hec_find_entry(checker, expr->text)) return;
    for (const struct hec_env *env = site->env; env; env = env->outer) {
        if (env->name == expr->text) return;
    }
    hec_unknown_name(site, expr);
}

static void check_expr(struct hec_site *site, const struct hec_expr *expr);

// Arguments by name may be `none` or, as `scaling = linear(4)`, look like a call of what no function is.
static void check_arguments(struct hec_site *site, const struct hec_expr *expr) {
    for (int i = 0; i < expr->arguments.count; i++) {
        const struct hec_argument *argument = &expr->arguments.item[i];
        const struct hec_expr *value = argument->value;
        const bool word = value->kind == HEC_EXPR_NAME &&
                          (!strcmp(value->text, "none") || hec_is_zero_centered(value));
        if (argument->name && !strcmp(argument->name, "scaling") && value->kind == HEC_EXPR_CALL)
            check_arguments(site, value);
        else if (!word || !argument->name)
            check_expr(site, value);
    }
}

static void check_call(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_entry *entry = hec_find_entry(site->checker, expr->text);
    enum hec_builtin builtin;
    if (!entry && !hec_builtin_find(expr->text, &builtin)) hec_unknown_function(site, expr);
    check_arguments(site, expr);
}

static void check_expr(struct hec_site *site, const struct hec_expr *expr) {
    if (!expr) return;
    if (expr->kind == HEC_EXPR_NAME) check_name(site, expr);
    if (expr->kind == HEC_EXPR_CALL) {
        check_call(site, expr);
        return;
    }
    check_expr(site, expr->left);
    check_expr(site, expr->right);
    for (int i = 0; i < expr->arguments.count; i++) {
        check_expr(site, expr->arguments.item[i].value);
    }
}

static void check_params(struct hec_site *site, const struct hec_stmt *stmt) {
    for (int i = 0; i < stmt->params.count; i++) {
        const struct hec_variable *variable = &stmt->params.item[i];
        struct hec_shape shape;
        hec_shape_of(site->checker, site->env, &variable->dims, variable->dims_at, &shape);
        define(site, variable->name, variable->at);
    }
}

void hec_check_untaken(struct hec_site *site, const struct hec_stmts *stmts) {
    if (site->broken) return; // Names may be missing for that reason.
    for (int i = 0; i < stmts->count; i++) {
        const struct hec_stmt *stmt = &stmts->item[i];
        if (stmt->kind == HEC_STMT_PARAM) {
            check_params(site, stmt);
            continue;
        }
        check_expr(site, stmt->value);
        for (int k = 0; k < stmt->options.count; k++) check_expr(site, stmt->options.item[k].value);
        if (stmt->kind == HEC_STMT_ASSIGN || stmt->kind == HEC_STMT_REPEAT) {
            define(site, stmt->name, stmt->name_at);
        }
        hec_check_untaken(site, &stmt->body);
        hec_check_untaken(site, &stmt->otherwise);
    }
}
