// The roles of parameters in the model: embeddings, heads, routers.
#include <string.h>

#include "lang/check/unit.h"

// A call that values are followed into; `outer` is the one around it.
struct inside {
    const struct hec_node *call;
    const struct inside *outer;
};

// A search for the parameters of one role. Values may be used often: each is looked at once.
struct search {
    struct hec_checker *checker;
    enum hec_role role;
    HEC_VEC(const struct hec_node *) seen;
};

static void mark(const struct search *search, const struct hec_param *param) {
    for (int i = 0; i < search->checker->params.count; i++) {
        struct hec_param *own = search->checker->params.item[i];
        if (own == param) own->role |= search->role;
    }
}

static bool was_seen(struct search *search, const struct hec_node *node) {
    for (int i = 0; i < search->seen.count; i++) {
        if (search->seen.item[i] == node) return true;
    }
    HEC_PUSH(search->checker->arena, &search->seen, node);
    return false;
}

// Marks all parameters in a value that depends on no token.
static void mark_all(struct search *search, const struct hec_node *node) {
    if (was_seen(search, node)) return;
    if (node->kind == HEC_NODE_PARAM) mark(search, node->param);
    if (node->kind != HEC_NODE_BUILTIN || node->batched) return;
    for (int i = 0; i < node->operands; i++) mark_all(search, node->operand[i]);
}

static void mark_tables(struct search *search, const struct hec_body *body) {
    for (int i = 0; i < body->items; i++) {
        const struct hec_node *node = body->item[i].node;
        if (!node)
            mark_tables(search, &body->item[i].loop->body);
        else if (node->kind == HEC_NODE_CALL)
            mark_tables(search, &node->callee->body);
        else if (node->kind == HEC_NODE_BUILTIN && node->builtin == HEC_BUILTIN_gather)
            mark_all(search, node->operand[0]);
    }
}

// Whether each element of the result is made of one of each operand's, or of the same one moved elsewhere.
static bool is_by_element(enum hec_builtin builtin) {
    static const char *const rules[] = {
#define HEC_OPERATOR(id, rule, text) [HEC_BUILTIN_##id] = #rule,
#define HEC_FUNCTION(id, rule, call, text) [HEC_BUILTIN_##id] = #rule,
#include "lang/builtins.def"
    };
    static const char *const known[] = {"elementwise", "transpose", "slice", "concat", "dropout"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(rules[builtin], known[i])) return true;
    }
    return false;
}

// Marks what logits, or values that become logits element by element, are the GEMMs with.
static void mark_heads(struct search *search, const struct hec_node *node,
                       const struct inside *inside) {
    if (was_seen(search, node)) return;
    if (node->kind == HEC_NODE_CALL && node->callee->result) {
        const struct inside deeper = {node, inside};
        mark_heads(search, node->callee->result, &deeper);
    } else if (node->kind == HEC_NODE_ARGUMENT && inside) {
        const struct hec_unit *unit = inside->call->callee;
        if (node->index < unit->arguments && unit->argument[node->index] == node)
            mark_heads(search, inside->call->operand[node->index], inside->outer);
    } else if (node->kind == HEC_NODE_BUILTIN && node->builtin == HEC_BUILTIN_contract) {
        for (int i = 0; i < node->operands; i++) mark_all(search, node->operand[i]);
    } else if (node->kind == HEC_NODE_BUILTIN && is_by_element(node->builtin)) {
        for (int i = 0; i < node->operands; i++) {
            if (node->operand[i]->batched) mark_heads(search, node->operand[i], inside);
        }
    }
}

void hec_find_roles(struct hec_checker *checker) {
    const struct hec_program *program = checker->program;
    struct search tables = {.checker = checker, .role = HEC_ROLE_EMBEDDING};
    struct search heads = {.checker = checker, .role = HEC_ROLE_HEAD};
    const struct search routers = {.checker = checker, .role = HEC_ROLE_ROUTER};
    mark_tables(&tables, &program->model->body);
    mark_heads(&heads, program->model->result, NULL);
    for (int i = 0; i < program->losses; i++) mark_heads(&heads, program->loss[i].logits, NULL);
    for (int i = 0; i < program->moes; i++) mark(&routers, program->moe[i]->router_weight);
}
