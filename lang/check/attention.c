// rope and sdpa: the two builtins that relate positions.
#include <math.h>
#include <string.h>

#include "lang/check/unit.h"

static const struct hec_value broken = {.broken = true};

bool hec_may_relate_positions(struct hec_site *site, const struct hec_expr *expr) {
    if (!site->expert_of) return true;
    hec_error(site->checker, expr->text_at,
              "an expert must treat every token alone: `%s` relates positions", expr->text);
    hec_note(site->checker, site->expert_of->at, "an expert of this moe");
    return false;
}

// The operand must be [T, heads, width], or without heads where these may be missing; reports when not.
static bool is_heads(struct hec_site *site, const struct hec_expr *call,
                     const struct hec_expr *expr, const struct hec_node *node, int least,
                     const char *wanted) {
    struct hec_checker *checker = site->checker;
    const int rank = node->shape.rank;
    if (rank >= least && rank <= 3 && node->shape.dim[0].name == checker->positions &&
        node->batched)
        return true;
    return hec_error(checker, expr->at, "`%s` wants %s here, not %s", call->text, wanted,
                     hec_shape_text(checker->arena, &node->shape));
}

// `scaling = linear(factor)`: every frequency is divided.
static bool read_linear(struct hec_site *site, const struct hec_expr *call, struct hec_rope *rope) {
    if (!hec_check_arguments(site->checker, call, 1, NULL, 0)) return false;
    *rope = (struct hec_rope){.low = -1, .high = 0, .amplitude = 1};
    return hec_constant_real(site->checker, site->env, call->arguments.item[0].value, "a factor",
                             &rope->factor);
}

// The element whose angle turns `turns` times in `original` positions.
static double element_of(double turns, double theta, double width, double original) {
    return width * log(original / (turns * 2 * M_PI)) / (2 * log(theta));
}

// `scaling = yarn(factor, original = ...)`: slow frequencies are divided, fast ones stay.
static bool read_yarn(struct hec_site *site, const struct hec_expr *call, double theta,
                      double width, struct hec_rope *rope) {
    static const char *const allowed[] = {"original", "fast", "slow", "truncate", "attention"};
    struct hec_checker *checker = site->checker;
    double original = 0, fast = 32, slow = 1, attention = 0;
    bool truncate = true;
    if (!hec_check_arguments(checker, call, 1, allowed, 5) ||
        !hec_constant_real(checker, site->env, call->arguments.item[0].value, "a factor",
                           &rope->factor) ||
        !hec_argument_real(site, call, "original", &original) ||
        !hec_argument_real(site, call, "fast", &fast) ||
        !hec_argument_real(site, call, "slow", &slow) ||
        !hec_argument_real(site, call, "attention", &attention) ||
        !hec_argument_bool(site, call, "truncate", &truncate))
        return false;
    if (!(original >= 1) || !(slow > 0) || !(fast >= slow) || !(theta > 1) || attention < 0)
        return hec_error(checker, call->at,
                         "yarn needs `original`, the positions before scaling, fast >= slow > 0, a "
                         "positive attention, and theta > 1");
    double low = element_of(fast, theta, width, original);
    double high = element_of(slow, theta, width, original);
    if (truncate) low = floor(low), high = ceil(high);
    low = fmax(low, 0), high = fmin(high, width - 1);
    if (!(high > low)) high = low + 1e-3;
    rope->low = low, rope->high = high;
    rope->amplitude = attention > 0 ? attention : 0.1 * log(fmax(rope->factor, 1)) + 1;
    return true;
}

// `scaling = llama3(factor, original = ...)`: frequencies below `low` turns in the original positions are divided,
// those above `high` ones stay.
static bool read_llama3(struct hec_site *site, const struct hec_expr *call, struct hec_rope *rope) {
    static const char *const allowed[] = {"original", "low", "high"};
    struct hec_checker *checker = site->checker;
    *rope = (struct hec_rope){.low = 1, .high = 4, .amplitude = 1};
    if (!hec_check_arguments(checker, call, 1, allowed, 3) ||
        !hec_constant_real(checker, site->env, call->arguments.item[0].value, "a factor",
                           &rope->factor) ||
        !hec_argument_real(site, call, "original", &rope->original) ||
        !hec_argument_real(site, call, "low", &rope->low) ||
        !hec_argument_real(site, call, "high", &rope->high))
        return false;
    if (rope->original >= 1 && rope->low > 0 && rope->high >= rope->low) return true;
    return hec_error(checker, call->at,
                     "llama3 needs `original`, the positions before scaling, and high >= low > 0");
}

static bool read_scaling(struct hec_site *site, const struct hec_expr *expr, double theta,
                         double width, struct hec_rope *rope) {
    struct hec_checker *checker = site->checker;
    const struct hec_argument *argument = hec_argument(expr, "scaling");
    if (!argument) return true;
    const struct hec_expr *value = argument->value;
    const bool call = value->kind == HEC_EXPR_CALL;
    bool read = false;
    if (value->kind == HEC_EXPR_NAME && !strcmp(value->text, "none")) return true;
    if (call && !strcmp(value->text, "linear")) {
        read = read_linear(site, value, rope);
    } else if (call && !strcmp(value->text, "yarn")) {
        read = read_yarn(site, value, theta, width, rope);
    } else if (call && !strcmp(value->text, "llama3")) {
        read = read_llama3(site, value, rope);
    } else {
        hec_error(checker, value->at,
                  "`scaling` is none, linear(factor), yarn(factor, original = ...) or "
                  "llama3(factor, original = ...), not `%s`",
                  hec_expr_text(checker->arena, value));
    }
    if (!read || rope->factor >= 1) return read;
    return hec_error(checker, value->at, "a factor of scaling is at least 1, not %s",
                     hec_number_text(checker->arena, rope->factor));
}

static bool same_rope(const struct hec_rope *a, const struct hec_rope *b) {
    return a->factor == b->factor && a->low == b->low && a->high == b->high &&
           a->amplitude == b->amplitude && a->original == b->original;
}

// The one table of these positions, width, theta and scaling.
static const struct hec_param *rope_table(struct hec_site *site, const struct hec_shape *shape,
                                          double theta, const struct hec_rope *rope,
                                          struct hec_span at) {
    struct hec_checker *checker = site->checker;
    for (int i = 0; i < checker->params.count; i++) {
        const struct hec_param *param = checker->params.item[i];
        if (param->init == HEC_INIT_ROPE && param->init_value == theta &&
            same_rope(&param->rope, rope) && hec_shape_same(&param->shape, shape))
            return param;
    }
    struct hec_param *param = HEC_NEW(checker->arena, struct hec_param);
    param->symbol = hec_unique_symbol(checker, "rope_table");
    param->name = param->path = param->symbol;
    param->shape = *shape;
    param->init = HEC_INIT_ROPE;
    param->init_value = theta;
    param->rope = *rope;
    param->at = at;
    HEC_PUSH(checker->arena, &checker->params, param);
    return param;
}

static const struct hec_node *table_node(struct hec_site *site, const struct hec_param *table) {
    for (int i = 0; i < site->items.count; i++) {
        const struct hec_node *node = site->items.item[i].node;
        if (node && node->kind == HEC_NODE_PARAM && node->param == table) return node;
    }
    return hec_param_node(site, table, &table->shape);
}

struct hec_value hec_call_rope(struct hec_site *site, const struct hec_expr *expr,
                               enum hec_builtin builtin) {
    (void)builtin;
    struct hec_checker *checker = site->checker;
    if (!hec_may_relate_positions(site, expr) ||
        !hec_check_builtin(checker, expr, HEC_BUILTIN_rope))
        return broken;
    const struct hec_expr *input = expr->arguments.item[0].value;
    const struct hec_node *x = hec_node_of(site, hec_evaluate(site, input, NULL), input->at);
    if (!x || !is_heads(site, expr, input, x, 2, "positions, heads if there are any, and width"))
        return broken;
    double theta = 10000;
    if (!hec_argument_real(site, expr, "theta", &theta)) return broken;
    const struct hec_dim width = x->shape.dim[x->shape.rank - 1];
    if (width.size % 2) {
        hec_error(checker, input->at, "`rope` turns pairs, but dim `%s` has odd size %lld",
                  width.name, (long long)width.size);
        return broken;
    }
    if (theta <= 0) {
        hec_error(checker, hec_argument(expr, "theta")->value->at, "`theta` must be positive");
        return broken;
    }
    struct hec_rope rope = {0};
    if (!read_scaling(site, expr, theta, (double)width.size, &rope)) return broken;
    const struct hec_shape shape = {.rank = 2, .dim = {x->shape.dim[0], width}};
    const struct hec_param *table = rope_table(site, &shape, theta, &rope, expr->text_at);
    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = HEC_BUILTIN_rope,
                            .shape = x->shape,
                            .batched = true,
                            .at = expr->at,
                            .operands = 2,
                            .operand = {x, table_node(site, table)}};
    if (!hec_argument_bool(site, expr, "interleaved", &node.attribute.interleaved)) return broken;
    return hec_node_value(hec_add_node(site, node));
}

static bool check_heads(struct hec_site *site, const struct hec_expr *expr,
                        const struct hec_node *const *operand) {
    struct hec_checker *checker = site->checker;
    const struct hec_shape *q = &operand[0]->shape, *k = &operand[1]->shape,
                           *v = &operand[2]->shape;
    const struct hec_dim heads = q->dim[1], groups = k->dim[1];
    const char *fault = NULL;
    if (q->dim[2].name != k->dim[2].name || q->dim[2].size != k->dim[2].size) {
        fault = "queries and keys differ in their width";
    } else if (k->dim[1].name != v->dim[1].name || k->dim[1].size != v->dim[1].size) {
        fault = "keys and values differ in their heads";
    } else if (heads.size % groups.size) {
        fault =
            hec_arena_format(checker->arena, "%lld query heads cannot share %lld key heads evenly",
                             (long long)heads.size, (long long)groups.size);
    }
    if (!fault) return true;
    hec_error(checker, expr->at, "%s", fault);
    static const char *const role[] = {"queries", "keys   ", "values "};
    for (int i = 0; i < 3; i++) {
        hec_detail(checker, "%s are %s", role[i],
                   hec_shape_text(checker->arena, &operand[i]->shape));
    }
    return false;
}

static bool read_mask(struct hec_site *site, const struct hec_expr *expr, struct hec_node *node) {
    struct hec_checker *checker = site->checker;
    if (!hec_argument(expr, "causal"))
        return hec_error(checker, expr->text_at, "say `causal = true` or `causal = false`");
    if (!hec_argument_bool(site, expr, "causal", &node->attribute.causal)) return false;
    if (!hec_argument_integer(site, expr, "window", 0, &node->attribute.window)) return false;
    if (!hec_argument_integer(site, expr, "chunk", 0, &node->attribute.chunk)) return false;
    if (node->attribute.causal || (!node->attribute.window && !node->attribute.chunk)) return true;
    const char *name = node->attribute.window ? "window" : "chunk";
    return hec_error(checker, hec_argument(expr, name)->at, "not yet: a %s without `causal = true`",
                     name);
}

// Reads the factor and the cap of scores.
static bool read_scores(struct hec_site *site, const struct hec_expr *expr, struct hec_node *node) {
    struct hec_checker *checker = site->checker;
    if (!hec_argument_real(site, expr, "scale", &node->attribute.scale)) return false;
    if (!hec_argument_real(site, expr, "cap", &node->attribute.cap)) return false;
    if (hec_argument(expr, "scale") && node->attribute.scale <= 0)
        return hec_error(checker, hec_argument(expr, "scale")->value->at,
                         "`scale` must be positive");
    if (node->attribute.cap < 0)
        return hec_error(checker, hec_argument(expr, "cap")->value->at,
                         "`cap` must be positive, or 0 for none");
    return true;
}

// `documents = d`: where the documents begin that a position sees no other of.
bool hec_read_documents(struct hec_site *site, const struct hec_expr *expr, struct hec_node *node) {
    struct hec_checker *checker = site->checker;
    const struct hec_argument *argument = hec_argument(expr, "documents");
    if (!argument) return true;
    const struct hec_expr *value = argument->value;
    if (value->kind == HEC_EXPR_NAME && !strcmp(value->text, "none")) return true;
    const struct hec_node *places = hec_node_of(site, hec_evaluate(site, value, NULL), value->at);
    if (!places) return false;
    if (places->places) {
        node->operand[node->operands++] = places;
        return node->attribute.documents = true;
    }
    return hec_error(checker, value->at, "documents are what `documents(ids, end)` gives, not `%s`",
                     hec_expr_text(checker->arena, value));
}

// `sinks = s`: a logit for each head of the queries, the same for all tokens.
static bool read_sinks(struct hec_site *site, const struct hec_expr *expr, struct hec_node *node) {
    struct hec_checker *checker = site->checker;
    const struct hec_argument *argument = hec_argument(expr, "sinks");
    if (!argument) return true;
    const struct hec_expr *value = argument->value;
    if (value->kind == HEC_EXPR_NAME && !strcmp(value->text, "none")) return true;
    const struct hec_node *sinks = hec_node_of(site, hec_evaluate(site, value, NULL), value->at);
    if (!sinks) return false;
    const struct hec_dim heads = node->operand[0]->shape.dim[1];
    if (sinks->shape.rank == 1 && sinks->shape.dim[0].name == heads.name && !sinks->batched) {
        node->operand[node->operands++] = sinks;
        return true;
    }
    return hec_error(checker, value->at, "`sinks` are a logit for each head, [%s], not %s",
                     heads.name, hec_shape_text(checker->arena, &sinks->shape));
}

struct hec_value hec_call_sdpa(struct hec_site *site, const struct hec_expr *expr,
                               enum hec_builtin builtin) {
    (void)builtin;
    static const char *const wanted[] = {"queries [T, heads, width]", "keys [T, heads, width]",
                                         "values [T, heads, width]"};
    struct hec_checker *checker = site->checker;
    if (!hec_may_relate_positions(site, expr) ||
        !hec_check_builtin(checker, expr, HEC_BUILTIN_sdpa))
        return broken;
    struct hec_node node = {.kind = HEC_NODE_BUILTIN,
                            .builtin = HEC_BUILTIN_sdpa,
                            .batched = true,
                            .at = expr->at,
                            .operands = 3};
    bool good = true;
    int position = 0;
    for (int i = 0; i < expr->arguments.count; i++) {
        if (expr->arguments.item[i].name) continue;
        const struct hec_expr *operand = expr->arguments.item[i].value;
        const struct hec_node *value =
            hec_node_of(site, hec_evaluate(site, operand, NULL), operand->at);
        good &= value && is_heads(site, expr, operand, value, 3, wanted[position]);
        node.operand[position++] = value;
    }
    if (!good || !check_heads(site, expr, node.operand) || !read_mask(site, expr, &node) ||
        !read_scores(site, expr, &node) || !read_sinks(site, expr, &node) ||
        !hec_read_documents(site, expr, &node))
        return broken;
    const struct hec_shape *q = &node.operand[0]->shape, *v = &node.operand[2]->shape;
    node.shape = (struct hec_shape){3, {q->dim[0], q->dim[1], v->dim[2]}};
    return hec_node_value(hec_add_node(site, node));
}
