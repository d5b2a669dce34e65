// Operators on tensors: the rules for their operands, and the shapes of their results.
#include "lang/check/adapt.h"
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

static const char *text_of(struct hec_checker *checker, const struct hec_expr *expr) {
    return hec_expr_text(checker->arena, expr);
}

// Reports dims that have one name and two sizes: a rebound one met the original.
static bool sizes_agree(struct hec_checker *checker, const struct hec_expr *expr,
                        const struct hec_expr *left, const struct hec_node *a,
                        const struct hec_expr *right, const struct hec_node *b) {
    for (int i = 0; i < a->shape.rank; i++) {
        const struct hec_dim dim = a->shape.dim[i];
        const int there = hec_shape_find(&b->shape, dim.name);
        if (there < 0 || b->shape.dim[there].size == dim.size) continue;
        hec_error(checker, expr->at, "dim `%s` is %lld on the left and %lld on the right", dim.name,
                  (long long)dim.size, (long long)b->shape.dim[there].size);
        hec_describe(checker, left, a, right, b);
        return false;
    }
    return true;
}

static bool real_operand(struct hec_checker *checker, const struct hec_expr *expr,
                         const struct hec_node *node) {
    if (!node->integer) return true;
    return hec_error(checker, expr->at, "`%s` holds token ids: only table[ids] takes them",
                     text_of(checker, expr));
}

static const struct hec_dim *missing_dim(const struct hec_shape *small,
                                         const struct hec_shape *large) {
    for (int i = 0; i < small->rank; i++) {
        if (hec_shape_find(large, small->dim[i].name) < 0) return &small->dim[i];
    }
    return NULL;
}

static bool same_order(const struct hec_shape *small, const struct hec_shape *large) {
    int last = -1;
    for (int i = 0; i < small->rank; i++) {
        const int at = hec_shape_find(large, small->dim[i].name);
        if (at < last) return false;
        last = at;
    }
    return true;
}

// Suggests the dim of equal size that was probably meant.
static void note_equal_size(struct hec_checker *checker, const struct hec_node *a,
                            const struct hec_node *b) {
    for (int i = 0; i < b->shape.rank; i++) {
        const struct hec_dim wrong = b->shape.dim[i];
        if (hec_shape_find(&a->shape, wrong.name) >= 0) continue;
        for (int j = 0; j < a->shape.rank; j++) {
            const struct hec_dim meant = a->shape.dim[j];
            if (meant.size != wrong.size || meant.name == checker->positions) continue;
            if (hec_shape_find(&b->shape, meant.name) >= 0) continue;
            const char *fix = "";
            if (b->kind == HEC_NODE_PARAM) {
                struct hec_shape shape = b->shape;
                shape.dim[i] = meant;
                fix = hec_arena_format(checker->arena, "; did you mean `param %s%s`?",
                                       b->param->name, hec_shape_text(checker->arena, &shape));
            }
            hec_note(checker, HEC_NOWHERE,
                     "dims %s and %s both have size %lld but are different dims%s", meant.name,
                     wrong.name, (long long)meant.size, fix);
            return;
        }
    }
}

static struct hec_value add_elementwise(struct hec_site *site, enum hec_builtin builtin,
                                        const struct hec_expr *expr, const struct hec_node *a,
                                        const struct hec_node *b, const struct hec_shape *shape) {
    struct hec_node node = {.kind = HEC_NODE_BUILTIN, .builtin = builtin, .at = expr->at};
    node.shape = *shape;
    node.operand[node.operands++] = a;
    if (b) node.operand[node.operands++] = b;
    node.batched = a->batched || (b && b->batched);
    return hec_node_value(hec_add_node(site, node));
}

struct hec_value hec_elementwise(struct hec_site *site, enum hec_builtin builtin,
                                 const struct hec_expr *expr, const struct hec_expr *left,
                                 const struct hec_node *a, const struct hec_expr *right,
                                 const struct hec_node *b) {
    struct hec_checker *checker = site->checker;
    if (!real_operand(checker, left, a)) return broken;
    if (!b) return add_elementwise(site, builtin, expr, a, NULL, &a->shape);
    if (!real_operand(checker, right, b)) return broken;
    if (!sizes_agree(checker, expr, left, a, right, b)) return broken;

    const bool a_larger = a->shape.rank > b->shape.rank ||
                          (a->shape.rank == b->shape.rank && (a->batched || !b->batched));
    const struct hec_shape *large = a_larger ? &a->shape : &b->shape;
    const struct hec_shape *small = a_larger ? &b->shape : &a->shape;
    const struct hec_dim *missing = missing_dim(small, large);
    if (missing && small->rank == large->rank) {
        hec_error(checker, expr->at, "`%s` does not fit: `%s` has no dim `%s`",
                  text_of(checker, expr), text_of(checker, a_larger ? left : right), missing->name);
        hec_describe(checker, left, a, right, b);
        note_equal_size(checker, a, b);
        return broken;
    }
    if (missing) {
        hec_error(checker, expr->at, "not yet: in `%s` both sides have dims that the other lacks",
                  text_of(checker, expr));
        hec_describe(checker, left, a, right, b);
        note_equal_size(checker, a, b);
        return broken;
    }
    const struct hec_shape shape = *large;
    const struct hec_node **turned = a_larger ? &b : &a;
    if (!same_order(small, large) && !hec_may_transpose(site, *turned)) {
        hec_error(checker, expr->at,
                  "not yet: inside of an expert, `%s` needs a transpose of its parameter",
                  text_of(checker, expr));
        hec_describe(checker, left, a, right, b);
        return broken;
    }
    if (!same_order(small, large)) {
        struct hec_shape order = {0};
        for (int i = 0; i < large->rank; i++) {
            if (hec_shape_find(small, large->dim[i].name) >= 0)
                order.dim[order.rank++] = large->dim[i];
        }
        *turned = hec_transpose(site, *turned, &order, expr->at);
    }
    return add_elementwise(site, builtin, expr, a, b, &shape);
}

static struct hec_value no_common_dim(struct hec_site *site, const struct hec_expr *expr,
                                      const struct hec_node *a, const struct hec_node *b) {
    struct hec_checker *checker = site->checker;
    hec_error(checker, expr->at, "`%s` has no dimension to contract", text_of(checker, expr));
    hec_describe(checker, expr->left, a, expr->right, b);
    note_equal_size(checker, a, b);
    return broken;
}

// Whether one side depends on the tokens, and is the left one; reports when not.
static bool contractible(struct hec_site *site, const struct hec_expr *expr,
                         const struct hec_node *a, const struct hec_node *b) {
    struct hec_checker *checker = site->checker;
    const char *text = text_of(checker, expr);
    if (b->batched && !a->batched) {
        hec_error(checker, expr->at, "not yet: `%s` has its parameter on the left", text);
        hec_note(checker, HEC_NOWHERE, "write `%s @ %s`", text_of(checker, expr->right),
                 text_of(checker, expr->left));
    } else if (b->batched) {
        hec_error(checker, expr->at, "not yet: both sides of `%s` depend on the tokens", text);
    } else if (!a->batched) {
        hec_error(checker, expr->at, "not yet: no side of `%s` depends on the tokens", text);
    } else {
        return true;
    }
    return false;
}

// Whether as many dims of `shape` from `first` on are those of `dims`, in any order; gives their order.
static bool block_at(const struct hec_shape *shape, int first, const struct hec_shape *dims,
                     struct hec_shape *order) {
    struct hec_shape found = {.rank = dims->rank};
    for (int i = 0; i < dims->rank; i++) {
        found.dim[i] = shape->dim[first + i];
        if (hec_shape_find(dims, found.dim[i].name) < 0) return false;
    }
    *order = found;
    return true;
}

// Products sum the last dims on the left, and the first or last ones on the right, in one order. Where `common` stand
// otherwise, the right side is transposed, as parameters have fewer elements as a rule; the left one where its own
// stand in between.
static bool arrange(struct hec_site *site, const struct hec_expr *expr,
                    const struct hec_shape *common, const struct hec_node **a,
                    const struct hec_node **b) {
    const struct hec_shape left = (*a)->shape, right = (*b)->shape;
    const int end = left.rank - common->rank;
    struct hec_shape order = *common;
    const bool block = block_at(&right, 0, common, &order) ||
                       block_at(&right, right.rank - common->rank, common, &order);
    if (block && hec_stand_at(&order, &left, end)) return true;
    const bool may = hec_may_transpose(site, *b);
    if (!block && !may) {
        hec_error(site->checker, expr->at,
                  "not yet: inside of an expert, `%s` needs a transpose of its parameter",
                  text_of(site->checker, expr));
        hec_describe(site->checker, expr->left, *a, expr->right, *b);
        hec_note(site->checker, HEC_NOWHERE,
                 "dims that are contracted stand first or last on the right");
        return false;
    }
    if (may && (!block || hec_stand_at(common, &left, end))) {
        const struct hec_shape turned = hec_shape_with(&right, common, false);
        order = *common;
        *b = hec_transpose(site, *b, &turned, expr->at);
    }
    const struct hec_shape turned = hec_shape_with(&left, &order, true);
    *a = hec_transpose(site, *a, &turned, expr->at);
    return true;
}

struct hec_value hec_contract(struct hec_site *site, const struct hec_expr *expr,
                              const struct hec_node *a, const struct hec_node *b) {
    struct hec_checker *checker = site->checker;
    if (!real_operand(checker, expr->left, a) || !real_operand(checker, expr->right, b))
        return broken;
    if (!sizes_agree(checker, expr, expr->left, a, expr->right, b)) return broken;

    struct hec_shape common = {0}, result = {0};
    HEC_VEC(struct hec_dim) kept = {0};
    for (int i = 0; i < a->shape.rank; i++) {
        const struct hec_dim dim = a->shape.dim[i];
        const bool shared = hec_shape_find(&b->shape, dim.name) >= 0;
        if (shared && dim.name != checker->positions)
            common.dim[common.rank++] = dim;
        else
            HEC_PUSH(checker->arena, &kept, dim);
    }
    if (common.rank == 0) return no_common_dim(site, expr, a, b);
    if (!contractible(site, expr, a, b)) return broken;
    for (int i = 0; i < b->shape.rank; i++) {
        const struct hec_dim dim = b->shape.dim[i];
        if (hec_shape_find(&common, dim.name) < 0) HEC_PUSH(checker->arena, &kept, dim);
    }
    if (kept.count >= HEC_RANK_MAX) {
        hec_error(checker, expr->at, "`%s` has %d dims, more than %d", text_of(checker, expr),
                  kept.count, HEC_RANK_MAX - 1);
        return broken;
    }
    for (int i = 0; i < kept.count; i++) {
        if (hec_shape_find(&result, kept.item[i].name) >= 0) {
            hec_error(checker, expr->at, "`%s` would have dim `%s` twice", text_of(checker, expr),
                      kept.item[i].name);
            hec_describe(checker, expr->left, a, expr->right, b);
            return broken;
        }
        result.dim[result.rank++] = kept.item[i];
    }
    const struct hec_node *weight = b;
    if (!arrange(site, expr, &common, &a, &b)) return broken;
    const struct hec_value y = add_elementwise(site, HEC_BUILTIN_contract, expr, a, b, &result);
    const struct hec_node *adapted = hec_adapt(site, y.node, a, weight, common.rank);
    return adapted ? hec_node_value(adapted) : broken;
}

struct hec_value hec_gather(struct hec_site *site, const struct hec_expr *expr,
                            const struct hec_node *table, const struct hec_node *ids) {
    struct hec_checker *checker = site->checker;
    const struct hec_expr *index = expr->arguments.item[0].value;
    if (!ids->integer || ids->places) {
        hec_error(checker, index->at, "`%s` holds no token ids", text_of(checker, index));
        hec_detail(checker, "%s is %s", text_of(checker, index),
                   hec_shape_text(checker->arena, &ids->shape));
        return broken;
    }
    if (table->batched || table->shape.rank < 2) {
        hec_error(checker, expr->left->at,
                  "`%s` is no table: rows are gathered from a parameter of two dims or more",
                  text_of(checker, expr->left));
        return broken;
    }
    struct hec_shape shape = ids->shape;
    for (int i = 1; i < table->shape.rank; i++) {
        if (hec_shape_find(&shape, table->shape.dim[i].name) >= 0 || shape.rank == HEC_RANK_MAX) {
            hec_error(checker, expr->at, "`%s` would have dim `%s` twice", text_of(checker, expr),
                      table->shape.dim[i].name);
            return broken;
        }
        shape.dim[shape.rank++] = table->shape.dim[i];
    }
    return add_elementwise(site, HEC_BUILTIN_gather, expr, table, ids, &shape);
}
