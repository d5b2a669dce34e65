// Norms, with the gain and bias they bring along.
#include <string.h>

#include "lang/builtins.h"
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

// `over = [H, A]`: how many trailing dims are normalised together.
static bool read_over(struct hec_site *site, const struct hec_expr *expr, const struct hec_node *x,
                      int64_t *over) {
    struct hec_checker *checker = site->checker;
    const struct hec_argument *argument = hec_argument(expr, "over");
    *over = 1;
    if (!argument) return true;
    const struct hec_expr *list = argument->value;
    if (list->kind != HEC_EXPR_LIST || list->arguments.count == 0)
        return hec_error(checker, list->at, "`over` is a list of dims, as in `over = [H, A]`");
    struct hec_shape dims;
    if (!hec_shape_of(checker, site->env, &list->arguments, list->at, &dims)) return false;
    bool trailing = dims.rank <= x->shape.rank;
    for (int i = 0; trailing && i < dims.rank; i++) {
        trailing = dims.dim[i].name == x->shape.dim[x->shape.rank - dims.rank + i].name;
    }
    if (!trailing) {
        hec_error(checker, list->at, "`over` must be the last dims of `%s`, in their order",
                  hec_expr_text(checker->arena, expr->arguments.item[0].value));
        hec_detail(checker, "%s is %s",
                   hec_expr_text(checker->arena, expr->arguments.item[0].value),
                   hec_shape_text(checker->arena, &x->shape));
        return false;
    }
    *over = dims.rank;
    return true;
}

// `gain = true | false | none`.
static bool read_switch(struct hec_site *site, const struct hec_expr *expr, const char *name,
                        bool *value) {
    const struct hec_argument *argument = hec_argument(expr, name);
    *value = true;
    if (argument && argument->value->kind == HEC_EXPR_NAME &&
        !strcmp(argument->value->text, "none")) {
        *value = false;
        return true;
    }
    return hec_argument_bool(site, expr, name, value);
}

bool hec_is_zero_centered(const struct hec_expr *value) {
    return value->kind == HEC_EXPR_NAME && !strcmp(value->text, "zero_centered");
}

static bool has_zero_centered(const struct hec_expr *expr) {
    const struct hec_argument *argument = hec_argument(expr, "gain");
    return argument && hec_is_zero_centered(argument->value);
}

// The name of the norm's parameters: its label, or from the call or variable it serves.
static const char *norm_name(struct hec_site *site, const struct hec_expr *expr,
                             const char *callee) {
    struct hec_arena *arena = site->checker->arena;
    if (expr->label) return expr->label;
    if (callee) return hec_arena_format(arena, "%s_norm", callee);
    if (site->assigned && site->statement == expr) return site->assigned;
    if (site->assigned) return hec_arena_format(arena, "%s_norm", site->assigned);
    return "norm";
}

static const struct hec_node *add_vector(struct hec_site *site, const char *name,
                                         struct hec_span at, const struct hec_shape *shape,
                                         enum hec_init init) {
    struct hec_param *param = hec_add_param(site, name, at, shape, init, 0);
    param->rates.decay = false;
    return hec_param_node(site, param, shape);
}

static const struct hec_node *add_gain(struct hec_site *site, const char *name,
                                       const struct hec_expr *expr, const struct hec_shape *shape) {
    const bool centered = has_zero_centered(expr);
    const struct hec_node *gain =
        add_vector(site, name, expr->text_at, shape, centered ? HEC_INIT_ZEROS : HEC_INIT_ONES);
    if (!centered) return gain;
    const struct hec_node one = {.kind = HEC_NODE_NUMBER, .number = 1, .at = expr->at};
    return hec_add_node(site, (struct hec_node){.kind = HEC_NODE_BUILTIN,
                                                .builtin = HEC_BUILTIN_add,
                                                .shape = *shape,
                                                .at = expr->at,
                                                .operands = 2,
                                                .operand = {gain, hec_add_node(site, one)}});
}

// A bias without a gain is added behind the norm: it is returned. Else NULL.
static const struct hec_node *add_parameters(struct hec_site *site, const struct hec_expr *expr,
                                             const char *callee, bool gain, bool bias,
                                             struct hec_node *node) {
    struct hec_checker *checker = site->checker;
    const struct hec_shape *x = &node->shape;
    struct hec_shape shape = {.rank = (int)node->attribute.over};
    memcpy(shape.dim, x->dim + x->rank - shape.rank, (size_t)shape.rank * sizeof *shape.dim);
    if (!gain && !bias) return NULL;
    const char *name = norm_name(site, expr, callee);
    hec_take_name(site, name, expr->label ? expr->label_at : expr->text_at);
    if (!hec_builtin_takes(node->builtin, "bias")) {
        node->operand[node->operands++] = add_gain(site, name, expr, &shape);
        return NULL;
    }
    if (gain) {
        const char *gain_name = hec_arena_format(checker->arena, "%s.gain", name);
        node->operand[node->operands++] = add_gain(site, gain_name, expr, &shape);
    }
    if (!bias) return NULL;
    const char *bias_name = hec_arena_format(checker->arena, "%s.bias", name);
    const struct hec_node *vector =
        add_vector(site, bias_name, expr->text_at, &shape, HEC_INIT_ZEROS);
    if (!gain) return vector;
    node->operand[node->operands++] = vector;
    return NULL;
}

static bool check_input(struct hec_site *site, const struct hec_expr *expr,
                        const struct hec_node *node) {
    struct hec_checker *checker = site->checker;
    const struct hec_node *x = node->operand[0];
    const struct hec_expr *input = expr->arguments.item[0].value;
    const int last = x->shape.rank - (int)node->attribute.over;
    const int positions = hec_shape_find(&x->shape, checker->positions);
    if (x->integer || x->shape.rank == 0) {
        hec_error(checker, input->at, "`%s` has no dim to normalise over",
                  hec_expr_text(checker->arena, input));
    } else if (positions >= last) {
        hec_error(checker, input->at, "`%s` would mix positions: it normalises over dim `%s`",
                  expr->text, checker->positions);
        hec_detail(checker, "%s is %s", hec_expr_text(checker->arena, input),
                   hec_shape_text(checker->arena, &x->shape));
    } else if (node->attribute.eps <= 0) {
        hec_error(checker, hec_argument(expr, "eps")->value->at, "`eps` must be positive");
    } else {
        return true;
    }
    return false;
}

struct hec_value hec_norm(struct hec_site *site, const struct hec_expr *expr,
                          enum hec_builtin builtin, const char *callee) {
    struct hec_checker *checker = site->checker;
    const bool good = hec_check_builtin(checker, expr, builtin);
    if (expr->arguments.count == 0 || expr->arguments.item[0].name) return broken;
    const struct hec_expr *input = expr->arguments.item[0].value;
    const struct hec_node *x = hec_node_of(site, hec_evaluate(site, input, NULL), input->at);
    if (!x || !good) return broken;

    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = builtin,
                            .shape = x->shape,
                            .batched = x->batched,
                            .at = expr->at,
                            .operands = 1,
                            .operand = {x},
                            .attribute = {.eps = 1e-5}};
    bool gain = true, bias = false;
    if (!read_over(site, expr, x, &node.attribute.over)) return broken;
    if (!hec_argument_real(site, expr, "eps", &node.attribute.eps)) return broken;
    if (!has_zero_centered(expr) && !read_switch(site, expr, "gain", &gain)) return broken;
    if (hec_builtin_takes(builtin, "bias") && !read_switch(site, expr, "bias", &bias))
        return broken;
    if (!check_input(site, expr, &node)) return broken;
    const struct hec_node *last = add_parameters(site, expr, callee, gain, bias, &node);
    const struct hec_node *normed = hec_add_node(site, node);
    if (!last) return hec_node_value(normed);
    return hec_node_value(hec_add_node(site, (struct hec_node){.kind = HEC_NODE_BUILTIN,
                                                               .builtin = HEC_BUILTIN_add,
                                                               .shape = x->shape,
                                                               .batched = x->batched,
                                                               .at = expr->at,
                                                               .operands = 2,
                                                               .operand = {normed, last}}));
}
