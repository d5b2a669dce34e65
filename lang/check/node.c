// Nodes of a body: how they are added, and messages about two that do not fit.
#include <string.h>

#include "lang/check/unit.h"

const struct hec_node *hec_add_node(struct hec_site *site, struct hec_node node) {
    struct hec_node *kept = HEC_NEW(site->checker->arena, struct hec_node);
    *kept = node;
    for (int i = 0; i < node.operands; i++) {
        const struct hec_node *operand = node.operand[i];
        if (operand && operand->ahead > kept->ahead) kept->ahead = operand->ahead;
    }
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

const struct hec_node *hec_drop(struct hec_site *site, const struct hec_node *x, double rate,
                                struct hec_span at) {
    return hec_add_node(
        site, (struct hec_node){.kind = HEC_NODE_BUILTIN,
                                .builtin = HEC_BUILTIN_dropout,
                                .shape = x->shape,
                                .batched = true,
                                .at = at,
                                .operands = 1,
                                .operand = {x},
                                .attribute = {.rate = rate, .number = site->checker->dropouts++}});
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
