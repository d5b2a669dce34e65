// causal_conv and delta_rule: functions that carry values from position to position.
#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

static const struct hec_node *node_of(struct hec_site *site, const struct hec_expr *expr) {
    return hec_node_of(site, hec_evaluate(site, expr, NULL), expr->at);
}

// Real values of each position.
static bool is_of_positions(const struct hec_site *site, const struct hec_node *x) {
    return !x->integer && x->batched && x->shape.rank > 0 &&
           x->shape.dim[0].name == site->checker->positions;
}

// w has the dims of x behind T, and its taps.
static bool check_taps(struct hec_site *site, const struct hec_expr *expr, const struct hec_node *x,
                       const struct hec_node *w) {
    struct hec_checker *checker = site->checker;
    const int channels = x->shape.rank - 1;
    bool fits = !w->batched && !w->integer && w->shape.rank == channels + 1;
    for (int i = 0; fits && i < channels; i++)
        fits = w->shape.dim[i].name == x->shape.dim[1 + i].name;
    if (!fits)
        return hec_error(checker, expr->arguments.item[1].value->at,
                         "the weights of `causal_conv` have the dims of %s behind `%s`, and one "
                         "more for the taps; they are %s",
                         hec_shape_text(checker->arena, &x->shape), checker->positions,
                         hec_shape_text(checker->arena, &w->shape));
    const struct hec_dim taps = w->shape.dim[channels];
    if (taps.size <= x->shape.dim[0].size) return true;
    return hec_error(checker, expr->arguments.item[1].value->at,
                     "dim `%s` has %lld taps, more than there are positions", taps.name,
                     (long long)taps.size);
}

struct hec_value hec_call_causal_conv(struct hec_site *site, const struct hec_expr *expr,
                                      enum hec_builtin builtin) {
    struct hec_checker *checker = site->checker;
    if (!hec_may_relate_positions(site, expr) || !hec_check_builtin(checker, expr, builtin))
        return broken;
    const struct hec_expr *input = expr->arguments.item[0].value;
    const struct hec_node *x = node_of(site, input);
    const struct hec_node *w = node_of(site, expr->arguments.item[1].value);
    if (!x || !w) return broken;
    if (!is_of_positions(site, x) || x->shape.rank < 2) {
        hec_error(checker, input->at, "`causal_conv` wants [%s, channels] here, not %s",
                  checker->positions, hec_shape_text(checker->arena, &x->shape));
        return broken;
    }
    if (!check_taps(site, expr, x, w)) return broken;
    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = builtin,
                            .shape = x->shape,
                            .batched = true,
                            .at = expr->at,
                            .operands = 2,
                            .operand = {x, w}};
    if (!hec_read_documents(site, expr, &node)) return broken;
    return hec_node_value(hec_add_node(site, node));
}

// ---- delta_rule

enum { Q, K, V, DECAY, BETA, OPERANDS };

// The operand must be of positions and have `rank` dims; reports when not.
static bool is_operand(struct hec_site *site, const struct hec_expr *expr,
                       const struct hec_node *node, int rank, const char *wanted) {
    struct hec_checker *checker = site->checker;
    if (is_of_positions(site, node) && node->shape.rank == rank) return true;
    return hec_error(checker, expr->at, "`delta_rule` wants %s here, not %s", wanted,
                     hec_shape_text(checker->arena, &node->shape));
}

static bool same_dim(const struct hec_node *a, int i, const struct hec_node *b, int k) {
    return a->shape.dim[i].name == b->shape.dim[k].name;
}

// The first fault among shapes; NULL: all fit.
static const char *fault_of(struct hec_checker *checker, const struct hec_node *const *operand) {
    const struct hec_node *q = operand[Q], *k = operand[K], *v = operand[V];
    if (!same_dim(q, 1, k, 1)) return "queries and keys differ in their heads";
    if (!same_dim(q, 2, k, 2)) return "queries and keys differ in their width";
    if (!same_dim(operand[DECAY], 1, v, 1)) return "decay and values differ in their heads";
    if (!same_dim(operand[BETA], 1, v, 1)) return "beta and values differ in their heads";
    const struct hec_dim heads = v->shape.dim[1], groups = k->shape.dim[1];
    if (heads.size % groups.size == 0) return NULL;
    return hec_arena_format(checker->arena, "%lld value heads cannot share %lld key heads evenly",
                            (long long)heads.size, (long long)groups.size);
}

static bool check_operands(struct hec_site *site, const struct hec_expr *expr,
                           const struct hec_node *const *operand) {
    static const char *const role[] = {"queries", "keys   ", "values ", "decay  ", "beta   "};
    struct hec_checker *checker = site->checker;
    const char *fault = fault_of(checker, operand);
    if (!fault) return true;
    hec_error(checker, expr->at, "%s", fault);
    for (int i = 0; i < OPERANDS; i++) {
        hec_detail(checker, "%s are %s", role[i],
                   hec_shape_text(checker->arena, &operand[i]->shape));
    }
    return false;
}

struct hec_value hec_call_delta_rule(struct hec_site *site, const struct hec_expr *expr,
                                     enum hec_builtin builtin) {
    static const char *const wanted[] = {"queries [T, heads, width]", "keys [T, heads, width]",
                                         "values [T, heads, width]", "decay [T, heads]",
                                         "beta [T, heads]"};
    struct hec_checker *checker = site->checker;
    if (!hec_may_relate_positions(site, expr) || !hec_check_builtin(checker, expr, builtin))
        return broken;
    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = builtin,
                            .batched = true,
                            .at = expr->at,
                            .operands = OPERANDS};
    bool good = true;
    int position = 0;
    for (int i = 0; i < expr->arguments.count; i++) {
        if (expr->arguments.item[i].name) continue;
        const struct hec_expr *operand = expr->arguments.item[i].value;
        const struct hec_node *value = node_of(site, operand);
        good &=
            value && is_operand(site, operand, value, position < DECAY ? 3 : 2, wanted[position]);
        node.operand[position++] = value;
    }
    if (!good || !check_operands(site, expr, node.operand) ||
        !hec_argument_real(site, expr, "scale", &node.attribute.scale))
        return broken;
    if (hec_argument(expr, "scale") && node.attribute.scale <= 0) {
        hec_error(checker, hec_argument(expr, "scale")->value->at, "`scale` must be positive");
        return broken;
    }
    if (!hec_read_documents(site, expr, &node)) return broken;
    node.shape = node.operand[V]->shape;
    return hec_node_value(hec_add_node(site, node));
}
