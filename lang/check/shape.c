// Shapes: lists of named dims.
#include "lang/check/checker.h"

static bool not_a_dim(struct hec_checker *checker, const struct hec_expr *expr) {
    if (expr->kind != HEC_EXPR_NAME) {
        hec_error(checker, expr->at, "a shape lists dims by name, `%s` is not a name",
                  hec_expr_text(checker->arena, expr));
        hec_note(checker, HEC_NOWHERE, "give it one: `dim N = %s`",
                 hec_expr_text(checker->arena, expr));
        return false;
    }
    const struct hec_entry *entry = hec_find_entry(checker, expr->text);
    if (entry) {
        hec_error(checker, expr->at, "`%s` is not a dim", expr->text);
        hec_note(checker, entry->at, "it is defined here");
        return false;
    }
    HEC_VEC(const char *) dims = {0};
    for (int i = 0; i < checker->entries.count; i++) {
        const struct hec_entry *known = checker->entries.item[i];
        if (known->kind == HEC_ITEM_DIM) HEC_PUSH(checker->arena, &dims, known->name);
    }
    hec_unknown(checker, expr->at, "dim", expr->text, dims.item, dims.count);
    return false;
}

bool hec_dim_of(struct hec_checker *checker, const struct hec_env *env, const struct hec_expr *expr,
                struct hec_dim *dim) {
    if (expr->kind != HEC_EXPR_NAME) return not_a_dim(checker, expr);
    for (; env; env = env->outer) {
        if (env->name != expr->text) continue;
        if (!env->is_dim) return not_a_dim(checker, expr);
        *dim = env->dim;
        return true;
    }
    struct hec_entry *entry = hec_find_entry(checker, expr->text);
    if (!entry || entry->kind != HEC_ITEM_DIM) return not_a_dim(checker, expr);
    if (!hec_entry_evaluate(checker, entry)) return false;
    *dim = (struct hec_dim){entry->name, (int64_t)entry->constant.number.value};
    return true;
}

bool hec_shape_of(struct hec_checker *checker, const struct hec_env *env,
                  const struct hec_arguments *dims, struct hec_span at, struct hec_shape *shape) {
    bool good = true;
    *shape = (struct hec_shape){0};
    if (dims->count >= HEC_RANK_MAX)
        return hec_error(checker, at, "a shape has at most %d dims, this one has %d",
                         HEC_RANK_MAX - 1, dims->count);
    for (int i = 0; i < dims->count; i++) {
        struct hec_dim dim;
        const struct hec_expr *expr = dims->item[i].value;
        if (!hec_dim_of(checker, env, expr, &dim)) {
            good = false;
            continue;
        }
        if (hec_shape_find(shape, dim.name) >= 0) {
            hec_error(checker, expr->at, "dim `%s` stands twice in one shape", dim.name);
            hec_note(checker, HEC_NOWHERE,
                     "dims differ by name: define a second one, `dim %s2 = %s`", dim.name,
                     dim.name);
            good = false;
            continue;
        }
        shape->dim[shape->rank++] = dim;
    }
    return good;
}

int hec_shape_find(const struct hec_shape *shape, const char *name) {
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i].name == name) return i;
    }
    return -1;
}

bool hec_shape_same(const struct hec_shape *a, const struct hec_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i].name != b->dim[i].name || a->dim[i].size != b->dim[i].size) return false;
    }
    return true;
}

const char *hec_shape_text(struct hec_arena *arena, const struct hec_shape *shape) {
    return hec_shape_text_beside(arena, shape, shape);
}

const char *hec_shape_text_beside(struct hec_arena *arena, const struct hec_shape *shape,
                                  const struct hec_shape *other) {
    const char *text = "[";
    for (int i = 0; i < shape->rank; i++) {
        const struct hec_dim dim = shape->dim[i];
        const int there = hec_shape_find(other, dim.name);
        const char *glue = i ? ", " : "";
        if (there >= 0 && other->dim[there].size != dim.size) {
            text =
                hec_arena_format(arena, "%s%s%s = %lld", text, glue, dim.name, (long long)dim.size);
        } else {
            text = hec_arena_format(arena, "%s%s%s", text, glue, dim.name);
        }
    }
    return hec_arena_format(arena, "%s]", text);
}
