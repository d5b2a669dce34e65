// Values known when compiling: dims, lets, the variable of a repeat, and expressions of
// them.
#include <math.h>
#include <string.h>

#include "lang/check/checker.h"

// Nesting of expressions, through the names that they use: evaluation is recursive.
enum { LEVELS_MAX = 4000 };

static const double size_max = 0x1p40; // The size of a dim: more than any machine holds.

static struct hec_constant number(double value) {
    const bool integral = value == floor(value) && fabs(value) <= 0x1p53;
    return (struct hec_constant){.kind = HEC_CONSTANT_NUMBER,
                                 .number = {.value = value, .integral = integral}};
}

static struct hec_constant truth(bool value) {
    return (struct hec_constant){.kind = HEC_CONSTANT_BOOL, .truth = value};
}

const char *hec_constant_text(struct hec_checker *checker, const struct hec_constant *value) {
    if (value->kind == HEC_CONSTANT_BOOL) return value->truth ? "true" : "false";
    return hec_number_text(checker->arena, value->number.value);
}

bool hec_entry_evaluate(struct hec_checker *checker, struct hec_entry *entry) {
    if (entry->state == HEC_ENTRY_KNOWN) return true;
    if (entry->state == HEC_ENTRY_BROKEN) return false;
    if (entry->state == HEC_ENTRY_BUSY) {
        hec_error(checker, entry->at, "`%s` is defined by itself", entry->name);
        entry->state = HEC_ENTRY_BROKEN;
        return false;
    }
    entry->state = HEC_ENTRY_BUSY;
    bool good = false;
    if (entry->kind == HEC_ITEM_DIM) {
        int64_t size = 0;
        const char *what = hec_arena_format(checker->arena, "dim `%s`", entry->name);
        good = hec_constant_integer(checker, NULL, entry->value, 1, (int64_t)size_max, what, &size);
        entry->constant = number((double)size);
    } else {
        good = hec_constant_of(checker, NULL, entry->value, &entry->constant);
    }
    if (entry->state == HEC_ENTRY_BROKEN) good = false; // Found to be defined by itself.
    entry->state = good ? HEC_ENTRY_KNOWN : HEC_ENTRY_BROKEN;
    return good;
}

bool hec_resolve_constant(struct hec_checker *checker, const struct hec_env *env, const char *name,
                          struct hec_constant *value, bool *broken) {
    *broken = false;
    for (; env; env = env->outer) {
        if (env->name != name) continue;
        *value = env->is_dim ? number((double)env->dim.size) : env->constant;
        return true;
    }
    struct hec_entry *entry = hec_find_entry(checker, name);
    if (!entry || (entry->kind != HEC_ITEM_DIM && entry->kind != HEC_ITEM_LET)) return false;
    *broken = !hec_entry_evaluate(checker, entry);
    *value = entry->constant;
    return !*broken;
}

static bool unknown_name(struct hec_checker *checker, const struct hec_expr *expr) {
    const struct hec_entry *entry = hec_find_entry(checker, expr->text);
    if (entry)
        return hec_error(checker, expr->at, "`%s` is not a number: it is a %s", expr->text,
                         entry->kind == HEC_ITEM_BLOCK ? "block"
                         : entry->kind == HEC_ITEM_MOE ? "moe"
                                                       : "model");
    HEC_VEC(const char *) candidates = {0};
    for (int i = 0; i < checker->entries.count; i++) {
        const struct hec_entry *known = checker->entries.item[i];
        if (known->kind != HEC_ITEM_DIM && known->kind != HEC_ITEM_LET) continue;
        HEC_PUSH(checker->arena, &candidates, known->name);
    }
    hec_unknown(checker, expr->at, "dim or let", expr->text, candidates.item, candidates.count);
    hec_detail(checker, "this has to be known when compiling");
    return false;
}

static const char *operand_kind(const struct hec_constant *value) {
    return value->kind == HEC_CONSTANT_BOOL ? "true or false" : "a number";
}

static bool wants(struct hec_checker *checker, const struct hec_expr *expr,
                  const struct hec_constant *value, int kind) {
    if ((int)value->kind == kind) return true;
    return hec_error(checker, expr->text_at, "`%s` takes %s, not %s",
                     hec_operator_text(expr->operation),
                     kind == HEC_CONSTANT_BOOL ? "true or false" : "numbers", operand_kind(value));
}

static bool divide(struct hec_checker *checker, const struct hec_expr *expr, double a, double b,
                   struct hec_constant *value) {
    if (b == 0)
        return hec_error(checker, expr->at, "division by zero in `%s`",
                         hec_expr_text(checker->arena, expr));
    *value = number(expr->operation == HEC_OP_DIV ? a / b : a - b * floor(a / b));
    return true;
}

static bool compare(struct hec_checker *checker, const struct hec_expr *expr,
                    const struct hec_constant *left, const struct hec_constant *right,
                    struct hec_constant *value) {
    const bool equality = expr->operation == HEC_OP_EQ || expr->operation == HEC_OP_NE;
    const int kind = equality ? (int)left->kind : HEC_CONSTANT_NUMBER;
    if (!wants(checker, expr, left, kind) || !wants(checker, expr, right, kind)) return false;
    const double a = kind == HEC_CONSTANT_BOOL ? left->truth : left->number.value;
    const double b = kind == HEC_CONSTANT_BOOL ? right->truth : right->number.value;
    switch (expr->operation) {
    case HEC_OP_EQ:
        *value = truth(a == b);
        break;
    case HEC_OP_NE:
        *value = truth(a != b);
        break;
    case HEC_OP_LT:
        *value = truth(a < b);
        break;
    case HEC_OP_LE:
        *value = truth(a <= b);
        break;
    case HEC_OP_GT:
        *value = truth(a > b);
        break;
    default:
        *value = truth(a >= b);
        break;
    }
    return true;
}

static bool operate_unary(struct hec_checker *checker, const struct hec_expr *expr,
                          const struct hec_constant *right, struct hec_constant *value) {
    const bool negation = expr->operation == HEC_OP_NOT;
    if (!wants(checker, expr, right, negation ? HEC_CONSTANT_BOOL : HEC_CONSTANT_NUMBER))
        return false;
    *value = negation ? truth(!right->truth) : number(-right->number.value);
    if (!negation) value->number.measure = right->number.measure;
    return true;
}

bool hec_constant_operate(struct hec_checker *checker, const struct hec_expr *expr,
                          const struct hec_constant *left, const struct hec_constant *right,
                          struct hec_constant *value) {
    if (expr->kind == HEC_EXPR_UNARY) return operate_unary(checker, expr, right, value);
    const enum hec_operator operation = expr->operation;
    if (operation >= HEC_OP_EQ && operation <= HEC_OP_GE)
        return compare(checker, expr, left, right, value);
    const bool logic = operation == HEC_OP_AND || operation == HEC_OP_OR;
    const int kind = logic ? HEC_CONSTANT_BOOL : HEC_CONSTANT_NUMBER;
    if (!wants(checker, expr, left, kind) || !wants(checker, expr, right, kind)) return false;
    const double a = left->number.value, b = right->number.value;
    switch (operation) {
    case HEC_OP_AND:
        *value = truth(left->truth && right->truth);
        return true;
    case HEC_OP_OR:
        *value = truth(left->truth || right->truth);
        return true;
    case HEC_OP_ADD:
        *value = number(a + b);
        return true;
    case HEC_OP_SUB:
        *value = number(a - b);
        return true;
    case HEC_OP_MUL:
        *value = number(a * b);
        value->number.measure = left->number.measure ? left->number.measure : right->number.measure;
        return true;
    case HEC_OP_DIV:
    case HEC_OP_MOD:
        return divide(checker, expr, a, b, value);
    default:
        return hec_error(checker, expr->text_at, "`%s` does not work on numbers",
                         hec_operator_text(operation));
    }
}

bool hec_constant_call(const char *name, const struct hec_constant *argument, int count,
                       struct hec_constant *value) {
    const double a = count > 0 ? argument[0].number.value : 0;
    const double b = count > 1 ? argument[1].number.value : 0;
    for (int i = 0; i < count; i++) {
        if (argument[i].kind != HEC_CONSTANT_NUMBER) return false;
    }
    if (!strcmp(name, "sqrt") && count == 1 && a >= 0)
        *value = number(sqrt(a));
    else if (!strcmp(name, "exp") && count == 1)
        *value = number(exp(a));
    else if (!strcmp(name, "minimum") && count == 2)
        *value = number(fmin(a, b));
    else if (!strcmp(name, "maximum") && count == 2)
        *value = number(fmax(a, b));
    else
        return false;
    return true;
}

static bool call(struct hec_checker *checker, const struct hec_env *env,
                 const struct hec_expr *expr, struct hec_constant *value) {
    struct hec_constant argument[2];
    const int count = expr->arguments.count;
    for (int i = 0; i < count && i < 2; i++) {
        if (!hec_constant_of(checker, env, expr->arguments.item[i].value, &argument[i]))
            return false;
    }
    if (count <= 2 && hec_constant_call(expr->text, argument, count, value)) return true;
    hec_error(checker, expr->at, "`%s` has no value when compiling",
              hec_expr_text(checker->arena, expr));
    hec_detail(checker, "known are sqrt(x), exp(x), minimum(x, y), maximum(x, y)");
    return false;
}

static bool evaluate(struct hec_checker *checker, const struct hec_env *env,
                     const struct hec_expr *expr, struct hec_constant *value) {
    bool broken = false;
    struct hec_constant left = {0}, right = {0};
    switch (expr->kind) {
    case HEC_EXPR_NUMBER:
        *value = (struct hec_constant){.kind = HEC_CONSTANT_NUMBER, .number = expr->number};
        return true;
    case HEC_EXPR_BOOL:
        *value = truth(expr->truth);
        return true;
    case HEC_EXPR_NAME:
        if (hec_resolve_constant(checker, env, expr->text, value, &broken)) return true;
        return broken ? false : unknown_name(checker, expr);
    case HEC_EXPR_CALL:
        return call(checker, env, expr, value);
    case HEC_EXPR_UNARY:
        return hec_constant_of(checker, env, expr->right, &right) &&
               hec_constant_operate(checker, expr, NULL, &right, value);
    case HEC_EXPR_BINARY: {
        const bool good = hec_constant_of(checker, env, expr->left, &left);
        return hec_constant_of(checker, env, expr->right, &right) && good &&
               hec_constant_operate(checker, expr, &left, &right, value);
    }
    default:
        return hec_error(checker, expr->at, "`%s` is neither a number nor true or false",
                         hec_expr_text(checker->arena, expr));
    }
}

bool hec_constant_of(struct hec_checker *checker, const struct hec_env *env,
                     const struct hec_expr *expr, struct hec_constant *value) {
    if (checker->levels == LEVELS_MAX) {
        hec_error(checker, expr->at, "dims and lets are defined by others more than %d levels deep",
                  LEVELS_MAX);
        hec_note(checker, HEC_NOWHERE, "definitions above their use do not count");
        return false;
    }
    checker->levels++;
    const bool good = evaluate(checker, env, expr, value);
    checker->levels--;
    if (!good || value->kind != HEC_CONSTANT_NUMBER || isfinite(value->number.value)) return good;
    return hec_error(checker, expr->at, "`%s` is too large for a number",
                     hec_expr_text(checker->arena, expr));
}

bool hec_constant_integer(struct hec_checker *checker, const struct hec_env *env,
                          const struct hec_expr *expr, int64_t smallest, int64_t largest,
                          const char *what, int64_t *value) {
    struct hec_constant constant;
    if (!hec_constant_of(checker, env, expr, &constant)) return false;
    const double got = constant.number.value;
    const char *text = hec_constant_text(checker, &constant);
    if (constant.kind != HEC_CONSTANT_NUMBER || got != floor(got)) {
        const bool literal = expr->kind == HEC_EXPR_NUMBER || expr->kind == HEC_EXPR_BOOL;
        const char *source = literal ? "this" : hec_expr_text(checker->arena, expr);
        hec_error(checker, expr->at, "%s must be a whole number, %s is %s", what,
                  literal ? source : hec_arena_format(checker->arena, "`%s`", source), text);
    } else if (constant.number.measure != HEC_PLAIN) {
        hec_error(checker, expr->at, "%s is a count: `%s` has a unit", what,
                  hec_expr_text(checker->arena, expr));
    } else if (got < (double)smallest) {
        hec_error(checker, expr->at, "%s must be at least %lld, not %s", what, (long long)smallest,
                  text);
    } else if (got > (double)largest) {
        hec_error(checker, expr->at, "%s must be at most %lld, not %s", what, (long long)largest,
                  text);
    } else {
        *value = (int64_t)got;
        return true;
    }
    return false;
}

bool hec_constant_real(struct hec_checker *checker, const struct hec_env *env,
                       const struct hec_expr *expr, const char *what, double *value) {
    struct hec_constant constant;
    if (!hec_constant_of(checker, env, expr, &constant)) return false;
    if (constant.kind == HEC_CONSTANT_NUMBER && constant.number.measure == HEC_PLAIN) {
        *value = constant.number.value;
        return true;
    }
    return hec_error(checker, expr->at, "%s must be a plain number, not `%s`", what,
                     hec_expr_text(checker->arena, expr));
}

bool hec_constant_bool(struct hec_checker *checker, const struct hec_env *env,
                       const struct hec_expr *expr, const char *what, bool *value) {
    struct hec_constant constant;
    if (!hec_constant_of(checker, env, expr, &constant)) return false;
    if (constant.kind != HEC_CONSTANT_BOOL)
        return hec_error(checker, expr->at, "%s must be true or false, not %s", what,
                         hec_constant_text(checker, &constant));
    *value = constant.truth;
    return true;
}

bool hec_is_constant(const struct hec_checker *checker, const struct hec_env *env,
                     const struct hec_expr *expr) {
    switch (expr->kind) {
    case HEC_EXPR_NUMBER:
    case HEC_EXPR_BOOL:
        return true;
    case HEC_EXPR_NAME: {
        for (; env; env = env->outer) {
            if (env->name == expr->text) return true;
        }
        const struct hec_entry *entry = hec_find_entry(checker, expr->text);
        return entry && (entry->kind == HEC_ITEM_DIM || entry->kind == HEC_ITEM_LET);
    }
    case HEC_EXPR_UNARY:
        return hec_is_constant(checker, env, expr->right);
    case HEC_EXPR_BINARY:
        return hec_is_constant(checker, env, expr->left) &&
               hec_is_constant(checker, env, expr->right);
    default:
        return false;
    }
}
