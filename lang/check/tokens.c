// Functions of the model's token ids: the tokens further on, and where documents begin.
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

// The node of a call on the model's ids; NULL after reporting that they are not its first argument.
static struct hec_node *node_of_ids(struct hec_site *site, const struct hec_expr *expr,
                                    enum hec_builtin builtin) {
    struct hec_checker *checker = site->checker;
    if (!hec_check_builtin(checker, expr, builtin)) return NULL;
    const struct hec_expr *input = expr->arguments.item[0].value;
    const struct hec_node *ids = hec_node_of(site, hec_evaluate(site, input, NULL), input->at);
    if (!ids) return NULL;
    if (site->caller) {
        hec_error(checker, expr->text_at,
                  "`%s` stands in the model: give the block what it needs as an argument",
                  expr->text);
        return NULL;
    }
    if (ids->kind != HEC_NODE_ARGUMENT || !ids->integer) {
        hec_error(checker, input->at, "`%s` takes the model's token ids, not `%s`", expr->text,
                  hec_expr_text(checker->arena, input));
        return NULL;
    }
    struct hec_node *node = HEC_NEW(checker->arena, struct hec_node);
    *node = (struct hec_node){.kind = HEC_NODE_BUILTIN,
                              .builtin = builtin,
                              .shape = ids->shape,
                              .batched = true,
                              .integer = true,
                              .at = expr->at,
                              .operands = 1,
                              .operand = {ids}};
    return node;
}

struct hec_value hec_call_ahead(struct hec_site *site, const struct hec_expr *expr,
                                enum hec_builtin builtin) {
    (void)builtin;
    struct hec_node *node = node_of_ids(site, expr, HEC_BUILTIN_ahead);
    if (!node ||
        !hec_constant_integer(site->checker, site->env, expr->arguments.item[1].value, 1,
                              node->shape.dim[0].size, "a number of positions ahead", &node->ahead))
        return broken;
    return hec_node_value(hec_add_node(site, *node));
}

struct hec_value hec_call_documents(struct hec_site *site, const struct hec_expr *expr,
                                    enum hec_builtin builtin) {
    (void)builtin;
    struct hec_node *node = node_of_ids(site, expr, HEC_BUILTIN_documents);
    if (!node ||
        !hec_constant_integer(site->checker, site->env, expr->arguments.item[1].value, 0, INT32_MAX,
                              "the token that ends documents", &node->attribute.end))
        return broken;
    node->places = true;
    return hec_node_value(hec_add_node(site, *node));
}
