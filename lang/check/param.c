// Parameters: declared ones, and those that norms, tables and routers bring along.
#include <string.h>

#include "lang/check/unit.h"

const char *hec_unique_symbol(struct hec_checker *checker, const char *base) {
    const char *symbol = base;
    for (int copy = 1;; copy++) {
        const size_t before = checker->symbols.count;
        symbol = hec_intern_text(&checker->symbols, symbol);
        if (checker->symbols.count > before) return symbol;
        symbol = hec_arena_format(checker->arena, "%s.%d", base, copy);
    }
}

bool hec_take_name(struct hec_site *site, const char *name, struct hec_span at) {
    for (int i = 0; i < site->taken.count; i++) {
        const struct hec_taken *taken = &site->taken.item[i];
        if (strcmp(taken->name, name)) continue;
        hec_error(site->checker, at, "a second `%s` in one body needs a name of its own", name);
        hec_note(site->checker, taken->at, "the first one");
        hec_note(site->checker, HEC_NOWHERE,
                 "put a label before the call, as in `second: %s`; parameters are named by it",
                 hec_span_text(site->checker->arena, at));
        return false;
    }
    HEC_PUSH(site->checker->arena, &site->taken, (struct hec_taken){name, at});
    return true;
}

static struct hec_shape with_experts(const struct hec_moe *moe, const struct hec_shape *shape) {
    if (!moe) return *shape;
    struct hec_shape whole = {.rank = shape->rank + 1};
    whole.dim[0] = moe->experts;
    memcpy(whole.dim + 1, shape->dim, (size_t)shape->rank * sizeof *shape->dim);
    return whole;
}

struct hec_param *hec_add_param(struct hec_site *site, const char *name, struct hec_span at,
                                const struct hec_shape *shape, enum hec_init init, double value) {
    struct hec_checker *checker = site->checker;
    struct hec_param *param = HEC_NEW(checker->arena, struct hec_param);
    param->name = name;
    param->symbol =
        hec_unique_symbol(checker, hec_arena_format(checker->arena, "%s%s", site->symbol, name));
    param->path = hec_arena_format(checker->arena, "%s%s", site->path, name);
    param->shape = with_experts(site->expert_of, shape);
    param->layers = site->layers;
    param->index_first = site->index_first;
    param->index_stride = site->index_stride;
    param->init = init;
    param->init_value = value;
    param->rates.decay = shape->rank >= 2;
    param->trainable = true;
    param->expert_of = site->expert_of;
    param->at = at;
    HEC_PUSH(checker->arena, &checker->params, param);
    return param;
}

struct hec_param *hec_add_param_of(struct hec_checker *checker, const struct hec_param *weight,
                                   enum hec_lora lora, const struct hec_shape *shape,
                                   enum hec_init init, double value) {
    static const char *const suffix[] = {[HEC_LORA_A] = "lora_a", [HEC_LORA_B] = "lora_b"};
    struct hec_param *param = HEC_NEW(checker->arena, struct hec_param);
    struct hec_arena *arena = checker->arena;
    *param = *weight;
    param->name = hec_arena_format(arena, "%s_%s", weight->name, suffix[lora]);
    param->symbol =
        hec_unique_symbol(checker, hec_arena_format(arena, "%s.%s", weight->symbol, suffix[lora]));
    param->path = hec_arena_format(arena, "%s.%s", weight->path, suffix[lora]);
    param->shape = with_experts(weight->expert_of, shape);
    param->init = init;
    param->init_value = value;
    param->rates.decay = true;
    param->lora = lora;
    HEC_PUSH(arena, &checker->params, param);
    return param;
}

const struct hec_node *hec_param_node(struct hec_site *site, const struct hec_param *param,
                                      const struct hec_shape *shape) {
    return hec_add_node(site, (struct hec_node){.kind = HEC_NODE_PARAM,
                                                .shape = *shape,
                                                .name = param->name,
                                                .param = param,
                                                .at = param->at});
}

static void read_init(struct hec_site *site, const struct hec_expr *value,
                      struct hec_param *param) {
    struct hec_checker *checker = site->checker;
    const bool call = value->kind == HEC_EXPR_CALL;
    const char *text = call || value->kind == HEC_EXPR_NAME ? value->text : "";
    if (!call && !strcmp(text, "zeros")) {
        param->init = HEC_INIT_ZEROS;
    } else if (!call && !strcmp(text, "ones")) {
        param->init = HEC_INIT_ONES;
    } else if (call && !strcmp(text, "normal") && value->arguments.count == 1) {
        param->init = HEC_INIT_NORMAL;
        const struct hec_expr *deviation = value->arguments.item[0].value;
        if (!hec_constant_real(checker, site->env, deviation, "a standard deviation",
                               &param->init_value))
            return;
        if (param->init_value >= 0) return;
        hec_error(checker, deviation->at, "a standard deviation cannot be negative");
    } else {
        hec_error(checker, value->at, "`init` is normal(deviation), zeros or ones, not `%s`",
                  hec_expr_text(checker->arena, value));
    }
}

static void read_options(struct hec_site *site, const struct hec_variable *variable,
                         struct hec_param *param) {
    static const char *const known[] = {"init", "decay"};
    struct hec_checker *checker = site->checker;
    for (int i = 0; i < variable->options.count; i++) {
        const struct hec_argument *option = &variable->options.item[i];
        if (!option->name) {
            hec_error(checker, option->at,
                      "a parameter's options have names: `init = normal(0.02)`, `decay = false`");
        } else if (!strcmp(option->name, "init")) {
            read_init(site, option->value, param);
        } else if (!strcmp(option->name, "decay")) {
            hec_constant_bool(checker, site->env, option->value, "`decay`", &param->rates.decay);
        } else {
            hec_unknown(checker, option->at, "option", option->name, known, 2);
        }
    }
}

static void declare_param(struct hec_site *site, const struct hec_variable *variable) {
    struct hec_checker *checker = site->checker;
    struct hec_shape shape;
    if (!hec_shape_of(checker, site->env, &variable->dims, variable->dims_at, &shape)) {
        hec_assign(site, variable->name, variable->at, (struct hec_value){.broken = true});
        return;
    }
    const int per_position = hec_shape_find(&shape, checker->positions);
    if (site->expert_of && per_position >= 0) {
        hec_error(checker, variable->dims_at,
                  "an expert must treat every token alike, but `%s` has a value per position",
                  variable->name);
        hec_note(checker, site->expert_of->at, "an expert of this moe");
    }
    const struct hec_local *before = hec_find_local(site, variable->name);
    if (before) {
        hec_error(checker, variable->at, "`%s` already has a meaning here", variable->name);
        hec_note(checker, before->at, "given here");
        return;
    }
    if (!hec_take_name(site, variable->name, variable->at)) return;
    struct hec_param *param =
        hec_add_param(site, variable->name, variable->at, &shape, HEC_INIT_NORMAL, 0.02);
    read_options(site, variable, param);
    hec_assign(site, variable->name, variable->at,
               hec_node_value(hec_param_node(site, param, &shape)));
}

void hec_declare_params(struct hec_site *site, const struct hec_stmt *stmt) {
    for (int i = 0; i < stmt->params.count; i++) declare_param(site, &stmt->params.item[i]);
}
