// sum, mean and softmax: functions that work over named dims of a tensor.
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

// The verb for a call's effect on dims, in messages.
static const char *verb_of(enum hec_builtin builtin) {
    return builtin == HEC_BUILTIN_mean      ? "average"
           : builtin == HEC_BUILTIN_softmax ? "normalise"
                                            : "sum";
}

// The dims of x that `over` names, by default the last one; false after reporting that it names others.
static bool read_over(struct hec_site *site, const struct hec_expr *expr, enum hec_builtin builtin,
                      const struct hec_node *x, struct hec_shape *over) {
    struct hec_checker *checker = site->checker;
    const struct hec_argument *argument = hec_argument(expr, "over");
    const struct hec_expr *input = expr->arguments.item[0].value;
    const char *text = hec_expr_text(checker->arena, input), *verb = verb_of(builtin);
    if (x->integer || x->shape.rank == 0)
        return hec_error(checker, input->at, "`%s` has no dims to %s over", text, verb);
    *over = (struct hec_shape){.rank = 1, .dim = {x->shape.dim[x->shape.rank - 1]}};
    const struct hec_expr *list = argument ? argument->value : NULL;
    if (list && (list->kind != HEC_EXPR_LIST || list->arguments.count == 0))
        return hec_error(checker, list->at, "`over` is a list of dims, as in `over = [H, A]`");
    const struct hec_span at = list ? list->at : input->at;
    if (list && !hec_shape_of(checker, site->env, &list->arguments, at, over)) return false;
    for (int i = 0; i < over->rank; i++) {
        const char *name = over->dim[i].name;
        if (x->batched && name == checker->positions)
            return hec_error(checker, at, "`%s` would mix positions: it %ss over dim `%s`",
                             expr->text, verb, name);
        if (hec_shape_find(&x->shape, name) >= 0) continue;
        return hec_error(checker, at, "`%s` has no dim `%s` to %s over", text, name, verb);
    }
    return true;
}

// x and the dims of a call; NULL after an error.
static const struct hec_node *operand_of(struct hec_site *site, const struct hec_expr *expr,
                                         enum hec_builtin builtin, struct hec_shape *over) {
    if (!hec_check_builtin(site->checker, expr, builtin)) return NULL;
    const struct hec_expr *input = expr->arguments.item[0].value;
    const struct hec_node *x = hec_node_of(site, hec_evaluate(site, input, NULL), input->at);
    if (!x || !read_over(site, expr, builtin, x, over)) return NULL;
    if (!site->expert_of || x->batched) return x;
    hec_error(site->checker, input->at,
              "not yet: inside of an expert, `%s` of what does not depend on the tokens",
              expr->text);
    return NULL;
}

// The sum, divided by the number of its terms.
static const struct hec_node *mean_of(struct hec_site *site, const struct hec_node *sum,
                                      const struct hec_shape *over) {
    struct hec_node terms = {.kind = HEC_NODE_NUMBER, .number = 1, .at = sum->at};
    for (int i = 0; i < over->rank; i++) terms.number *= (double)over->dim[i].size;
    return hec_add_node(site, (struct hec_node){.kind = HEC_NODE_BUILTIN,
                                                .builtin = HEC_BUILTIN_div,
                                                .shape = sum->shape,
                                                .batched = sum->batched,
                                                .at = sum->at,
                                                .operands = 2,
                                                .operand = {sum, hec_add_node(site, terms)}});
}

struct hec_value hec_call_sum(struct hec_site *site, const struct hec_expr *expr,
                              enum hec_builtin builtin) {
    struct hec_shape over;
    const struct hec_node *x = operand_of(site, expr, builtin, &over);
    if (!x) return broken;
    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = HEC_BUILTIN_sum,
                            .batched = x->batched,
                            .at = expr->at,
                            .operands = 1,
                            .operand = {x}};
    for (int i = 0; i < x->shape.rank; i++) {
        if (hec_shape_find(&over, x->shape.dim[i].name) < 0)
            node.shape.dim[node.shape.rank++] = x->shape.dim[i];
    }
    const struct hec_node *sum = hec_add_node(site, node);
    return hec_node_value(builtin == HEC_BUILTIN_mean ? mean_of(site, sum, &over) : sum);
}

// Whether the last dims of `shape` are these, in any order.
static bool are_last(const struct hec_shape *dims, const struct hec_shape *shape) {
    for (int i = shape->rank - dims->rank; i < shape->rank; i++) {
        if (hec_shape_find(dims, shape->dim[i].name) < 0) return false;
    }
    return true;
}

// The kernel takes the last dims: others are brought there, and back.
struct hec_value hec_call_softmax(struct hec_site *site, const struct hec_expr *expr,
                                  enum hec_builtin builtin) {
    struct hec_shape over;
    const struct hec_node *x = operand_of(site, expr, builtin, &over);
    if (!x) return broken;
    const struct hec_shape shape =
        are_last(&over, &x->shape) ? x->shape : hec_shape_with(&x->shape, &over, true);
    const struct hec_node *r =
        hec_add_node(site, (struct hec_node){.kind = HEC_NODE_BUILTIN,
                                             .builtin = builtin,
                                             .shape = shape,
                                             .batched = x->batched,
                                             .at = expr->at,
                                             .operands = 1,
                                             .operand = {hec_transpose(site, x, &shape, expr->at)},
                                             .attribute = {.over = over.rank}});
    return hec_node_value(hec_transpose(site, r, &x->shape, expr->at));
}
