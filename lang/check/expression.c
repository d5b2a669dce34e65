// Expressions of a body: names, numbers and operators; calls are in unit.c and builtin.c.
#include <string.h>

#include "lang/builtins.h"
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

const struct hec_node *hec_add_node(struct hec_site *site, struct hec_node node) {
    struct hec_node *kept = HEC_NEW(site->checker->arena, struct hec_node);
    *kept = node;
    HEC_PUSH(site->checker->arena, &site->items, (struct hec_item){.node = kept});
    return kept;
}

struct hec_value hec_node_value(const struct hec_node *node) {
    return (struct hec_value){.node = node};
}

const struct hec_node *hec_node_of(struct hec_site *site, struct hec_value value,
                                   struct hec_span at) {
    if (value.broken) return NULL;
    if (value.node) return value.node;
    if (value.constant.kind != HEC_CONSTANT_NUMBER) {
        hec_error(site->checker, at, "true and false are no tensors");
        return NULL;
    }
    if (value.constant.number.measure != HEC_PLAIN) {
        hec_error(site->checker, at, "a number in a computation has no unit");
        return NULL;
    }
    return hec_add_node(site, (struct hec_node){.kind = HEC_NODE_NUMBER,
                                                .number = value.constant.number.value,
                                                .at = at});
}

static const char *padded(struct hec_arena *arena, const char *text, int width) {
    return hec_arena_format(arena, "%-*s", width, text);
}

// The dims of `shape` in the columns of `columns`, which has all of them.
static const char *aligned(struct hec_arena *arena, const struct hec_shape *shape,
                           const struct hec_shape *columns, const struct hec_shape *other) {
    const char *text = "[";
    int printed = 0;
    for (int i = 0; i < columns->rank; i++) {
        const char *name = columns->dim[i].name;
        const int here = hec_shape_find(shape, name), there = hec_shape_find(other, name);
        const bool differs =
            here >= 0 && there >= 0 && shape->dim[here].size != other->dim[there].size;
        const char *cell = name;
        if (differs)
            cell = hec_arena_format(arena, "%s = %lld", name, (long long)shape->dim[here].size);
        const bool last = printed + 1 == shape->rank;
        if (here < 0)
            text = hec_arena_format(arena, "%s%*s", text, (int)strlen(name) + 2, "");
        else
            text = hec_arena_format(arena, "%s%s%s", text, cell, last ? "]" : ", ");
        printed += here >= 0;
        if (printed == shape->rank) break;
    }
    return shape->rank ? text : "[]";
}

static bool in_order(const struct hec_shape *shape, const struct hec_shape *columns) {
    int last = -1;
    for (int i = 0; i < shape->rank; i++) {
        const int at = hec_shape_find(columns, shape->dim[i].name);
        if (at <= last) return false;
        last = at;
    }
    return true;
}

void hec_describe(struct hec_checker *checker, const struct hec_expr *left,
                  const struct hec_node *a, const struct hec_expr *right,
                  const struct hec_node *b) {
    struct hec_arena *arena = checker->arena;
    const char *name[2] = {hec_expr_text(arena, left), hec_expr_text(arena, right)};
    const struct hec_node *node[2] = {a, b};
    const int width0 = (int)strlen(name[0]), width1 = (int)strlen(name[1]);
    const int width = width0 > width1 ? width0 : width1;

    struct hec_shape columns = a->shape;
    for (int i = 0; i < b->shape.rank && columns.rank < HEC_RANK_MAX; i++) {
        if (hec_shape_find(&columns, b->shape.dim[i].name) < 0)
            columns.dim[columns.rank++] = b->shape.dim[i];
    }
    for (int i = 0; i < 2; i++) {
        const struct hec_shape *shape = &node[i]->shape, *other = &node[1 - i]->shape;
        const bool whole = in_order(&b->shape, &columns) && columns.rank < HEC_RANK_MAX;
        const char *text = whole ? aligned(arena, shape, &columns, other)
                                 : hec_shape_text_beside(arena, shape, other);
        const char *declared = "";
        if (node[i]->kind == HEC_NODE_PARAM && node[i]->at.file) {
            declared = hec_arena_format(arena, "  (declared at %s:%u:%u)", node[i]->at.file->path,
                                        node[i]->at.line, node[i]->at.column);
        }
        hec_detail(checker, "%s is %s%s", padded(arena, name[i], width), text, declared);
    }
}

void hec_unknown_name(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    if (site->broken) return;
    HEC_VEC(const char *) known = {0};
    for (int i = 0; i < site->locals.count; i++)
        HEC_PUSH(checker->arena, &known, site->locals.item[i].name);
    for (int i = 0; i < checker->entries.count; i++)
        HEC_PUSH(checker->arena, &known, checker->entries.item[i]->name);
    hec_unknown(checker, expr->at, "name", expr->text, known.item, known.count);
}

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

void hec_unknown_function(struct hec_site *site, const struct hec_expr *expr) {
    struct hec_checker *checker = site->checker;
    HEC_VEC(const char *) known = {0};
    for (int i = 0; i < checker->entries.count; i++) {
        if (checker->entries.item[i]->unit)
            HEC_PUSH(checker->arena, &known, checker->entries.item[i]->name);
    }
    for (int i = 0; i < hec_builtin_rows_count; i++)
        HEC_PUSH(checker->arena, &known, hec_builtin_rows[i].name);
    hec_unknown(checker, expr->text_at, "block or function", expr->text, known.item, known.count);
}

static struct hec_value call(struct hec_site *site, const struct hec_expr *expr,
                             const char *callee) {
    struct hec_checker *checker = site->checker;
    struct hec_entry *entry = hec_find_entry(checker, expr->text);
    if (!entry && hec_is_builtin(expr->text)) return hec_call_builtin(site, expr, callee);
    if (!entry) {
        hec_unknown_function(site, expr);
        for (int i = 0; i < expr->arguments.count; i++) // For their own errors.
            if (!expr->arguments.item[i].name)
                hec_evaluate(site, expr->arguments.item[i].value, NULL);
        return broken;
    }
    if (!entry->unit || entry->kind == HEC_ITEM_MODEL) {
        hec_error(checker, expr->text_at, "`%s` is no block", expr->text);
        hec_note(checker, entry->at, "defined here");
        return broken;
    }
    entry->elaborated = true;
    if (site->expert_of && entry->kind == HEC_ITEM_MOE) {
        hec_error(checker, expr->text_at, "not yet: a moe inside an expert");
        return broken;
    }
    return hec_call_unit(site, expr, entry);
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
        return hec_elementwise(site, HEC_NEG, expr, expr->right, right.node, NULL, NULL);
    hec_error(site->checker, expr->text_at, "`not` works on what is known when compiling");
    return broken;
}

static struct hec_value binary(struct hec_site *site, const struct hec_expr *expr) {
    static const enum hec_builtin builtins[] = {[HEC_OP_ADD] = HEC_ADD,
                                                [HEC_OP_SUB] = HEC_SUB,
                                                [HEC_OP_MUL] = HEC_MUL,
                                                [HEC_OP_DIV] = HEC_DIV};
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
        return call(site, expr, callee);
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
