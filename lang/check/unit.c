// Units: each call site of a block or moe is checked with the shapes it gets, and has parameters of
// its own.
#include "lang/check/unit.h"

static struct hec_site site_of(const struct hec_site *caller, const struct hec_declaration *code,
                               const struct hec_env *env, const char *symbol, const char *path) {
    return (struct hec_site){
        .checker = caller->checker,
        .caller = caller,
        .code = code,
        .env = env,
        .symbol = symbol,
        .path = path,
        .layers = caller->layers,
        .index_first = caller->index_first,
        .index_stride = caller->index_stride,
        .expert_of = caller->expert_of,
        .raised_before = caller->checker->diag->raised,
    };
}

enum { CALLS_DEEP_MAX = 64, UNITS_MAX = 4000 }; // Bounds on time and memory for any input.

static bool has_few_arguments(struct hec_checker *checker, const struct hec_declaration *code) {
    if (code->arguments.count <= HEC_OPERANDS_MAX) return true;
    return hec_error(checker, code->arguments.item[HEC_OPERANDS_MAX].at,
                     "`%s` has %d arguments, more than %d", code->name, code->arguments.count,
                     HEC_OPERANDS_MAX);
}

// Reports a call that has no end, or is beyond all measure.
static bool may_call(const struct hec_site *caller, const struct hec_declaration *code,
                     struct hec_span at) {
    struct hec_checker *checker = caller->checker;
    int depth = 0;
    for (const struct hec_site *site = caller; site; site = site->caller, depth++) {
        if (site->code != code) continue;
        hec_error(checker, at, "`%s` calls itself", code->name);
        hec_note(checker, code->name_at, "a block is copied into each call, so this has no end");
        return false;
    }
    if (depth > CALLS_DEEP_MAX)
        return hec_error(checker, at, "calls nest more than %d deep", CALLS_DEEP_MAX);
    if (checker->units++ < UNITS_MAX) return true;
    if (checker->units == UNITS_MAX + 1)
        hec_error(checker, at, "the model has more than %d calls", UNITS_MAX);
    return false;
}

static const struct hec_node *argument_node(struct hec_site *site, int index,
                                            const struct hec_variable *declared,
                                            const struct hec_node *given) {
    struct hec_checker *checker = site->checker;
    struct hec_shape shape;
    const bool good = hec_shape_of(checker, site->env, &declared->dims, declared->dims_at, &shape);
    if (!given && !good) return NULL;
    struct hec_node *node = HEC_NEW(checker->arena, struct hec_node);
    node->kind = HEC_NODE_ARGUMENT;
    node->shape = given ? given->shape : shape;
    node->batched = given ? given->batched : true;
    node->integer = given ? given->integer : false;
    node->places = given ? given->places : false;
    node->ahead = given ? given->ahead : 0;
    node->name = declared->name;
    node->index = index;
    node->at = declared->at;
    return node;
}

static void add_arguments(struct hec_site *site, struct hec_unit *unit,
                          const struct hec_node *const *given) {
    struct hec_checker *checker = site->checker;
    const struct hec_variables *declared = &site->code->arguments;
    const struct hec_node **nodes =
        hec_arena_alloc(checker->arena, (size_t)declared->count, sizeof *nodes);
    for (int i = 0; i < declared->count; i++) {
        const struct hec_variable *variable = &declared->item[i];
        nodes[i] = argument_node(site, i, variable, given ? given[i] : NULL);
        const struct hec_value value = {.node = nodes[i], .broken = !nodes[i]};
        hec_assign(site, variable->name, variable->at, value);
        site->locals.item[site->locals.count - 1].quiet = true;
    }
    unit->arguments = declared->count;
    unit->argument = nodes;
}

static void check_result(struct hec_site *site) {
    struct hec_checker *checker = site->checker;
    struct hec_shape declared;
    if (!hec_shape_of(checker, site->env, &site->code->result, site->code->result_at, &declared))
        return;
    if (!site->returned && !site->broken) {
        hec_error(checker, site->code->name_at, "`%s` does not return anything", site->code->name);
        return;
    }
    const struct hec_node *result = site->result;
    if (!result || hec_shape_same(&declared, &result->shape)) return;
    hec_error(checker, result->at, "`%s` returns %s, but is declared to return %s",
              site->code->name, hec_shape_text_beside(checker->arena, &result->shape, &declared),
              hec_shape_text_beside(checker->arena, &declared, &result->shape));
    hec_note(checker, site->code->result_at, "declared here");
}

static void finish_body(struct hec_site *site, struct hec_unit *unit) {
    check_result(site);
    hec_drop_locals(site, 0);
    unit->body = (struct hec_body){.items = site->items.count, .item = site->items.item};
    unit->result = site->result;
}

static struct hec_unit *elaborate_in(struct hec_site *site, const char *symbol,
                                     const struct hec_node *const *arguments) {
    struct hec_checker *checker = site->checker;
    struct hec_unit *unit = HEC_NEW(checker->arena, struct hec_unit);
    unit->kind = site->code->kind == HEC_ITEM_MODEL ? HEC_UNIT_MODEL
                 : site->code->kind == HEC_ITEM_MOE ? HEC_UNIT_MOE
                                                    : HEC_UNIT_BLOCK;
    unit->name = site->code->name;
    unit->symbol = symbol;
    unit->at = site->code->name_at;
    add_arguments(site, unit, arguments);
    if (unit->kind == HEC_UNIT_MOE) {
        hec_elaborate_moe(site, unit);
    } else {
        hec_statements(site, &site->code->body);
        finish_body(site, unit);
    }
    return unit;
}

// Elaborates `code` for a call with `arguments`, which may hold NULL for broken ones: they then
// look as declared. Never NULL; the result has the declared shape even when the body is broken.
static struct hec_unit *elaborate(const struct hec_site *caller, const struct hec_declaration *code,
                                  const struct hec_env *env, const char *name,
                                  const struct hec_node *const *arguments, struct hec_span at) {
    struct hec_checker *checker = caller->checker;
    if (!has_few_arguments(checker, code) || !may_call(caller, code, at))
        return HEC_NEW(checker->arena, struct hec_unit);
    const char *symbol =
        hec_unique_symbol(checker, hec_arena_format(checker->arena, "%s%s", caller->symbol, name));
    struct hec_site site =
        site_of(caller, code, env, hec_arena_format(checker->arena, "%s.", symbol),
                hec_arena_format(checker->arena, "%s%s.", caller->path, name));
    const uint32_t errors_before = checker->diag->errors;
    struct hec_unit *unit = elaborate_in(&site, symbol, arguments);
    if (checker->diag->errors != errors_before && env != hec_seen_inside(checker, caller->env))
        hec_note(checker, at, "in this call, with the dims it sets");
    return unit;
}

struct hec_unit *hec_elaborate_expert(const struct hec_site *site,
                                      const struct hec_declaration *code, const struct hec_env *env,
                                      const char *name, const char *path_name,
                                      const struct hec_moe *moe, const struct hec_node *argument) {
    struct hec_checker *checker = site->checker;
    const char *symbol =
        hec_unique_symbol(checker, hec_arena_format(checker->arena, "%s%s", site->symbol, name));
    struct hec_site body =
        site_of(site, code, env, hec_arena_format(checker->arena, "%s.", symbol),
                hec_arena_format(checker->arena, "%s%s.", site->path, path_name));
    body.expert_of = moe;
    return elaborate_in(&body, symbol, &argument);
}

static void wrong_count(struct hec_checker *checker, const struct hec_expr *expr,
                        const struct hec_declaration *code, int given) {
    const int wanted = code->arguments.count;
    hec_error(checker, expr->text_at, "`%s` takes %d argument%s, not %d", code->name, wanted,
              wanted == 1 ? "" : "s", given);
    hec_note(checker, code->name_at, "it is declared here");
}

// Whether the value at `argument` fits the declared argument; reports when not.
static bool fits(struct hec_site *site, const struct hec_env *env, const struct hec_expr *value,
                 const struct hec_node *node, const struct hec_declaration *code, int index) {
    struct hec_checker *checker = site->checker;
    const struct hec_variable *declared = &code->arguments.item[index];
    struct hec_shape shape;
    if (!hec_shape_of(checker, env, &declared->dims, declared->dims_at, &shape)) return false;
    if (hec_shape_same(&shape, &node->shape)) return true;
    hec_error(checker, value->at, "`%s` wants `%s%s`, this is %s", code->name, declared->name,
              hec_shape_text_beside(checker->arena, &shape, &node->shape),
              hec_shape_text_beside(checker->arena, &node->shape, &shape));
    hec_note(checker, declared->at, "declared here");
    return false;
}

struct hec_value hec_call_unit(struct hec_site *site, const struct hec_expr *expr,
                               const struct hec_entry *entry) {
    struct hec_checker *checker = site->checker;
    const struct hec_declaration *code = entry->unit;
    const char *name = expr->label ? expr->label : expr->text;
    const struct hec_env *env = hec_rebind(checker, site->env, &expr->arguments, code->name);
    struct hec_node node = {.kind = HEC_NODE_CALL, .at = expr->at};
    const struct hec_node **arguments =
        hec_arena_alloc(checker->arena, (size_t)code->arguments.count + 1, sizeof *arguments);

    // A norm in here is named after the call; if that name is taken, one complaint is enough.
    const char *norm_prefix =
        hec_take_name(site, name, expr->label ? expr->label_at : expr->text_at)
            ? name
            : hec_unique_symbol(checker, name);
    int given = 0;
    for (int i = 0; i < expr->arguments.count; i++) {
        const struct hec_argument *argument = &expr->arguments.item[i];
        if (argument->name) continue;
        const struct hec_value value = hec_evaluate(site, argument->value, norm_prefix);
        const int index = given++;
        if (index >= code->arguments.count || index >= HEC_OPERANDS_MAX) continue;
        const struct hec_node *operand = hec_node_of(site, value, argument->value->at);
        if (operand && !fits(site, env, argument->value, operand, code, index)) operand = NULL;
        arguments[index] = node.operand[index] = operand;
        node.batched |= operand ? operand->batched : true;
    }
    // More of them are an error of the block, which elaborate reports.
    node.operands =
        code->arguments.count < HEC_OPERANDS_MAX ? code->arguments.count : HEC_OPERANDS_MAX;
    if (given != code->arguments.count) wrong_count(checker, expr, code, given);

    node.callee = elaborate(site, code, env, name, arguments, expr->text_at);
    if (!hec_shape_of(checker, env, &code->result, code->result_at, &node.shape))
        return (struct hec_value){.broken = true};
    return hec_node_value(hec_add_node(site, node));
}

static void check_signature(struct hec_checker *checker, const struct hec_declaration *code) {
    struct hec_shape result;
    // As it is written: its dim may be broken, which was reported.
    if (code->arguments.count != 1 || code->arguments.item[0].dims.count != 1) {
        hec_error(checker, code->name_at,
                  "a model takes token ids: one argument of one dim, as "
                  "in `ids[T]`");
    } else if (hec_shape_of(checker, NULL, &code->result, code->result_at, &result) &&
               (result.rank != 2 || result.dim[0].name != checker->positions)) {
        hec_error(checker, code->result_at,
                  "a model returns logits: its positions and its vocabulary, as in `[%s, V]`",
                  checker->positions);
    }
}

// The dim of the model's ids, before anything is elaborated; NULL when that is not clear.
static const char *positions_of(const struct hec_declaration *code) {
    if (code->arguments.count < 1 || code->arguments.item[0].dims.count < 1) return NULL;
    return code->arguments.item[0].dims.item[0].value->text;
}

struct hec_unit *hec_elaborate_model(struct hec_checker *checker,
                                     const struct hec_declaration *code) {
    checker->positions = positions_of(code);
    struct hec_site site = {.checker = checker,
                            .code = code,
                            .symbol = "",
                            .path = "",
                            .raised_before = checker->diag->raised};
    const struct hec_variables *declared = &code->arguments;
    const struct hec_node **arguments =
        hec_arena_alloc(checker->arena, (size_t)declared->count, sizeof *arguments);
    for (int i = 0; i < declared->count; i++) {
        struct hec_node *ids = HEC_NEW(checker->arena, struct hec_node);
        *ids = (struct hec_node){.batched = true, .integer = true};
        const struct hec_variable *variable = &declared->item[i];
        if (hec_shape_of(checker, NULL, &variable->dims, variable->dims_at, &ids->shape))
            arguments[i] = ids;
    }
    const char *symbol = hec_unique_symbol(checker, code->name);
    struct hec_unit *unit = elaborate_in(&site, symbol, arguments);
    check_signature(checker, code);
    return unit;
}

void hec_elaborate_uncalled(struct hec_checker *checker) {
    for (int i = 0; i < checker->entries.count; i++) {
        struct hec_entry *entry = checker->entries.item[i];
        if (!entry->unit || entry->kind == HEC_ITEM_MODEL || entry->elaborated) continue;
        const int params = checker->params.count, moes = checker->moes.count;
        const struct hec_site nobody = {.checker = checker, .symbol = "", .path = ""};
        entry->elaborated = true;
        elaborate(&nobody, entry->unit, NULL, entry->name, NULL, entry->at);
        checker->params.count = params;
        checker->moes.count = moes;
    }
}
