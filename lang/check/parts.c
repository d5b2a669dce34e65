// slice and concat: parts of a tensor along one dim.
#include <string.h>

#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

// The one argument by name that is not `except`: the dim that is taken apart or made, and its parts.
static const struct hec_argument *named_dim(struct hec_site *site, const struct hec_expr *expr,
                                            const char *except, struct hec_dim *dim) {
    struct hec_checker *checker = site->checker;
    const struct hec_argument *found = NULL;
    for (int i = 0; i < expr->arguments.count; i++) {
        const struct hec_argument *argument = &expr->arguments.item[i];
        if (!argument->name || (except && !strcmp(argument->name, except))) continue;
        if (found) {
            hec_error(checker, argument->at, "`%s` works along one dim, `%s`", expr->text,
                      found->name);
            return NULL;
        }
        found = argument;
    }
    if (!found) {
        hec_error(checker, expr->text_at, "`%s` is told its dim by name, as in `%s`", expr->text,
                  except ? "slice(x, A = N, from = 0)" : "concat(x, y, A = [N, R])");
        return NULL;
    }
    const struct hec_expr name = {
        .kind = HEC_EXPR_NAME, .text = found->name, .at = found->at, .text_at = found->at};
    return hec_dim_of(checker, site->env, &name, dim) ? found : NULL;
}

static bool positional(struct hec_site *site, const struct hec_expr *expr, int least, int most) {
    struct hec_checker *checker = site->checker;
    int given = 0;
    for (int i = 0; i < expr->arguments.count; i++) {
        const struct hec_argument *argument = &expr->arguments.item[i];
        if (!argument->name && given++ != i)
            return hec_error(checker, argument->at,
                             "an argument without a name stands before those with");
        if (argument->name && hec_argument(expr, argument->name) != argument)
            return hec_error(checker, argument->at, "`%s` is given twice", argument->name);
    }
    if (given >= least && given <= most) return true;
    return hec_error(checker, expr->text_at, "`%s` takes %s by position, not %d", expr->text,
                     most == 1 ? "1 argument" : "2 to 12 arguments", given);
}

static const struct hec_node *operand(struct hec_site *site, const struct hec_expr *expr) {
    const struct hec_node *x = hec_node_of(site, hec_evaluate(site, expr, NULL), expr->at);
    if (!x || !x->integer) return x;
    hec_error(site->checker, expr->at, "`%s` holds token ids: only table[ids] takes them",
              hec_expr_text(site->checker->arena, expr));
    return NULL;
}

// Where the dim stands in the operand; -1 and an error: it does not, or it is that of positions.
static int find_dim(struct hec_site *site, const struct hec_expr *call, const struct hec_expr *expr,
                    const struct hec_node *x, struct hec_dim dim) {
    struct hec_checker *checker = site->checker;
    const char *text = hec_expr_text(checker->arena, expr);
    const int at = hec_shape_find(&x->shape, dim.name);
    if (dim.name == checker->positions) {
        hec_error(checker, call->at, "`%s` would mix positions: dim `%s` stays whole", call->text,
                  dim.name);
    } else if (at < 0) {
        hec_error(checker, expr->at, "`%s` has no dim `%s`", text, dim.name);
        hec_detail(checker, "%s is %s", text, hec_shape_text(checker->arena, &x->shape));
    } else if (x->shape.dim[at].size != dim.size) {
        hec_error(checker, expr->at, "dim `%s` of `%s` is %lld, not %lld", dim.name, text,
                  (long long)x->shape.dim[at].size, (long long)dim.size);
    } else {
        return at;
    }
    return -1;
}

// Puts `dim` in the place of another one; reports where it stands elsewhere already.
static bool put_dim(struct hec_site *site, const struct hec_expr *call, struct hec_shape *shape,
                    int at, struct hec_dim dim) {
    if (hec_shape_find(shape, dim.name) >= 0)
        return hec_error(site->checker, call->at, "`%s` would have dim `%s` twice",
                         hec_expr_text(site->checker->arena, call), dim.name);
    shape->dim[at] = dim;
    return true;
}

struct hec_value hec_call_slice(struct hec_site *site, const struct hec_expr *expr,
                                enum hec_builtin builtin) {
    (void)builtin;
    struct hec_checker *checker = site->checker;
    struct hec_dim whole, part;
    if (!positional(site, expr, 1, 1)) return broken;
    const struct hec_argument *argument = named_dim(site, expr, "from", &whole);
    const struct hec_expr *input = expr->arguments.item[0].value;
    const struct hec_node *x = operand(site, input);
    if (!argument || !x || !hec_dim_of(checker, site->env, argument->value, &part)) return broken;
    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = HEC_BUILTIN_slice,
                            .shape = x->shape,
                            .batched = x->batched,
                            .at = expr->at,
                            .operands = 1,
                            .operand = {x}};
    const int at = find_dim(site, expr, input, x, whole);
    if (at < 0 || !hec_argument_integer(site, expr, "from", 0, &node.attribute.begin))
        return broken;
    if (node.attribute.begin + part.size > whole.size) {
        hec_error(checker, expr->at, "elements %lld to %lld are not in dim `%s` of size %lld",
                  (long long)node.attribute.begin,
                  (long long)(node.attribute.begin + part.size - 1), whole.name,
                  (long long)whole.size);
        return broken;
    }
    if (!put_dim(site, expr, &node.shape, at, part)) return broken;
    return hec_node_value(hec_add_node(site, node));
}

// ---- concat

// The operand with most dims has all that the result has, but for the one that is joined.
static bool within(const struct hec_shape *small, const struct hec_shape *large, int at,
                   const char *own) {
    int last = -1;
    for (int i = 0; i < small->rank; i++) {
        const bool joined = small->dim[i].name == own;
        const int there = joined ? at : hec_shape_find(large, small->dim[i].name);
        if (there <= last || (!joined && large->dim[there].size != small->dim[i].size))
            return false;
        last = there;
    }
    return true;
}

static bool does_not_fit(struct hec_site *site, const struct hec_expr *call,
                         const struct hec_expr *left, const struct hec_node *a,
                         const struct hec_expr *right, const struct hec_node *b) {
    hec_error(site->checker, call->at,
              "`%s` does not fit: one side has all dims of the other, in their order, but for the "
              "joined ones",
              hec_expr_text(site->checker->arena, call));
    hec_describe(site->checker, left, a, right, b);
    return false;
}

// a and b, whose dims `of[0]` and `of[1]` become `joined`.
static const struct hec_node *join(struct hec_site *site, const struct hec_expr *call,
                                   const struct hec_expr *const expr[2],
                                   const struct hec_node *const x[2], const struct hec_dim of[2],
                                   struct hec_dim joined) {
    int at[2];
    for (int i = 0; i < 2; i++) {
        at[i] = find_dim(site, call, expr[i], x[i], of[i]);
        if (at[i] < 0) return NULL;
    }
    const int large = x[1]->shape.rank > x[0]->shape.rank;
    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = HEC_BUILTIN_concat,
                            .shape = x[large]->shape,
                            .batched = x[0]->batched || x[1]->batched,
                            .at = call->at,
                            .operands = 2,
                            .operand = {x[0], x[1]}};
    if (!within(&x[!large]->shape, &x[large]->shape, at[large], of[!large].name)) {
        does_not_fit(site, call, expr[0], x[0], expr[1], x[1]);
        return NULL;
    }
    if (!put_dim(site, call, &node.shape, at[large], joined)) return NULL;
    return hec_add_node(site, node);
}

// The list of dims, as many as operands, which make up the joined one.
static bool read_parts(struct hec_site *site, const struct hec_argument *argument, int operands,
                       struct hec_dim whole, struct hec_dim *part) {
    struct hec_checker *checker = site->checker;
    const struct hec_expr *list = argument->value;
    if (list->kind != HEC_EXPR_LIST || list->arguments.count != operands)
        return hec_error(checker, list->at, "`%s` lists the dim of each of the %d operands",
                         argument->name, operands);
    int64_t sum = 0;
    for (int i = 0; i < operands; i++) {
        if (!hec_dim_of(checker, site->env, list->arguments.item[i].value, &part[i])) return false;
        sum += part[i].size;
    }
    if (sum == whole.size) return true;
    return hec_error(checker, list->at, "dim `%s` is %lld, its parts are %lld together", whole.name,
                     (long long)whole.size, (long long)sum);
}

// More than two operands are joined one after the other; dims between are called after what they hold.
struct hec_value hec_call_concat(struct hec_site *site, const struct hec_expr *expr,
                                 enum hec_builtin builtin) {
    (void)builtin;
    struct hec_checker *checker = site->checker;
    struct hec_dim whole, part[HEC_OPERANDS_MAX];
    if (!positional(site, expr, 2, HEC_OPERANDS_MAX)) return broken;
    const struct hec_argument *argument = named_dim(site, expr, NULL, &whole);
    const int operands = expr->arguments.count - 1;
    if (!argument || !read_parts(site, argument, operands, whole, part)) return broken;
    const struct hec_expr *left = expr->arguments.item[0].value;
    const struct hec_node *joined = operand(site, left);
    struct hec_dim of = part[0];
    for (int i = 1; joined && i < operands; i++) {
        const struct hec_expr *const at[] = {left, expr->arguments.item[i].value};
        const struct hec_node *const x[] = {joined, operand(site, at[1])};
        const struct hec_dim dims[] = {of, part[i]};
        const char *both = hec_arena_format(checker->arena, "%s_%s", of.name, part[i].name);
        const struct hec_dim between = {hec_intern_text(&checker->names, both),
                                        of.size + part[i].size};
        of = i + 1 == operands ? whole : between;
        joined = x[1] ? join(site, expr, at, x, dims, of) : NULL;
    }
    return joined ? hec_node_value(joined) : broken;
}
