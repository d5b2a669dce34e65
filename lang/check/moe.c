// moe: experts, router and balance of one call site.
#include <string.h>

#include "lang/check/moe_settings.h"
#include "lang/check/unit.h"

// `E * swiglu`, `E * swiglu(F = 512)`.
struct replicated {
    const struct hec_expr *count; // NULL: not given.
    const struct hec_entry *block;
    const struct hec_env *env;
    const struct hec_expr *body;
};

static bool find_block(struct hec_site *site, const struct hec_expr *expr,
                       struct replicated *result) {
    struct hec_checker *checker = site->checker;
    const bool call = expr->kind == HEC_EXPR_CALL && !expr->label;
    struct hec_entry *entry = hec_find_entry(checker, expr->text);
    if ((call || expr->kind == HEC_EXPR_NAME) && entry && entry->kind != HEC_ITEM_BLOCK) {
        hec_error(checker, expr->at, "`%s` is not a block", expr->text);
        hec_note(checker, entry->at, "it is defined here");
        return false;
    }
    if ((!call && expr->kind != HEC_EXPR_NAME) || !entry) {
        HEC_VEC(const char *) blocks = {0};
        for (int i = 0; i < checker->entries.count; i++) {
            const struct hec_entry *known = checker->entries.item[i];
            if (known->kind == HEC_ITEM_BLOCK) HEC_PUSH(checker->arena, &blocks, known->name);
        }
        hec_unknown(checker, expr->at, "block", hec_expr_text(checker->arena, expr), blocks.item,
                    blocks.count);
        return false;
    }
    entry->elaborated = true;
    result->block = entry;
    result->body = expr;
    for (int i = 0; i < expr->arguments.count; i++) {
        if (expr->arguments.item[i].name) continue;
        return hec_error(checker, expr->arguments.item[i].at,
                         "an expert gets its tokens from the router: only dims are given here");
    }
    result->env = hec_rebind(checker, site->env, &expr->arguments, entry->name);
    return true;
}

static bool read_replicated(struct hec_site *site, const struct hec_set *set,
                            struct replicated *result) {
    const struct hec_expr *expr = set->value;
    if (expr->kind == HEC_EXPR_BINARY && expr->operation == HEC_OP_MUL) {
        result->count = expr->left;
        return find_block(site, expr->right, result);
    }
    return find_block(site, expr, result);
}

// An expert takes [T, D] and gives it back.
static bool fits_moe(struct hec_site *site, const struct replicated *body,
                     const struct hec_node *x) {
    struct hec_checker *checker = site->checker;
    const struct hec_declaration *code = body->block->unit;
    struct hec_shape in, out;
    if (code->arguments.count != 1) {
        hec_error(checker, body->body->at, "an expert takes one argument, `%s` takes %d",
                  code->name, code->arguments.count);
        hec_note(checker, code->name_at, "declared here");
        return false;
    }
    const struct hec_variable *argument = &code->arguments.item[0];
    if (!hec_shape_of(checker, body->env, &argument->dims, argument->dims_at, &in) ||
        !hec_shape_of(checker, body->env, &code->result, code->result_at, &out))
        return false;
    if (hec_shape_same(&in, &x->shape) && hec_shape_same(&out, &x->shape)) return true;
    hec_error(checker, body->body->at, "an expert here takes and returns %s",
              hec_shape_text_beside(checker->arena, &x->shape, &in));
    hec_note(checker, code->name_at, "`%s` takes %s and returns %s", code->name,
             hec_shape_text_beside(checker->arena, &in, &x->shape),
             hec_shape_text_beside(checker->arena, &out, &x->shape));
    return false;
}

static const struct hec_unit *make_body(struct hec_site *site, const struct replicated *body,
                                        const struct hec_node *x, const char *name,
                                        const char *path_name, const struct hec_moe *moe) {
    if (!fits_moe(site, body, x)) return NULL;
    return site->checker->walk->expert(site, body->block->unit, body->env, name, path_name, moe, x);
}

static void make_experts(struct hec_site *site, const struct hec_node *x, struct hec_moe *moe,
                         const struct hec_set *set) {
    struct hec_checker *checker = site->checker;
    struct replicated body = {0};
    if (!set) {
        hec_error(checker, site->code->name_at, "moe `%s` has no experts", site->code->name);
        hec_note(checker, HEC_NOWHERE, "say which block they are: `experts = E * swiglu`");
        return;
    }
    if (!read_replicated(site, set, &body)) return;
    if (!body.count) {
        hec_error(checker, set->value->at, "say how many experts: `experts = E * %s`",
                  hec_expr_text(checker->arena, set->value));
        return;
    }
    if (body.count->kind != HEC_EXPR_NAME) {
        const char *count = hec_expr_text(checker->arena, body.count);
        hec_error(checker, body.count->at, "experts are counted by a dim, `%s` is not a name",
                  count);
        hec_note(checker, HEC_NOWHERE, "define `dim N = %s`, and write `experts = N * %s`", count,
                 body.block->name);
        return;
    }
    if (!hec_dim_of(checker, site->env, body.count, &moe->experts)) return;
    if (moe->experts.size > HEC_EXPERTS_MAX) {
        hec_error(checker, body.count->at, "a moe has at most %d experts, `%s` is %lld",
                  HEC_EXPERTS_MAX, moe->experts.name, (long long)moe->experts.size);
        return;
    }
    moe->expert = make_body(site, &body, x, "experts", "experts.{e}", moe);
}

static void make_shared(struct hec_site *site, const struct hec_node *x, struct hec_moe *moe,
                        const struct hec_set *set) {
    struct hec_checker *checker = site->checker;
    if (!set || hec_moe_is_none(set)) return;
    struct replicated body = {0};
    if (!read_replicated(site, set, &body)) return;
    int64_t count = 1;
    if (body.count && !hec_constant_integer(checker, site->env, body.count, 1, HEC_SHARED_MAX,
                                            "the number of shared experts", &count))
        return;
    const struct hec_unit **shared = hec_arena_alloc(checker->arena, (size_t)count, sizeof *shared);
    for (int64_t i = 0; i < count; i++) {
        const char *name = "shared", *path = "shared";
        if (count > 1) name = hec_arena_format(checker->arena, "shared%lld", (long long)i);
        if (count > 1) path = hec_arena_format(checker->arena, "shared.%lld", (long long)i);
        shared[i] = make_body(site, &body, x, name, path, NULL);
        if (!shared[i]) return; // The others would get the same message.
    }
    moe->shared = shared;
    moe->shared_count = (int)count;
}

// Adds a parameter of the moe itself: the router's and the shared gate's.
static struct hec_param *own_param(struct hec_site *site, const char *name, struct hec_span at,
                                   const struct hec_dim *dims, int rank, enum hec_init init) {
    struct hec_shape shape = {.rank = rank};
    memcpy(shape.dim, dims, (size_t)rank * sizeof *dims);
    return hec_add_param(site, name, at, &shape, init, init == HEC_INIT_NORMAL ? 0.02 : 0);
}

static void make_router(struct hec_site *site, const struct hec_node *x, struct hec_moe *moe,
                        const struct hec_moe_settings *settings) {
    const struct hec_dim dims[2] = {x->shape.dim[1], moe->experts};
    moe->router_weight = own_param(site, "router", moe->at, dims, 2, HEC_INIT_NORMAL);
    if (settings->router_bias) {
        moe->router_bias =
            own_param(site, "router_bias", settings->router_bias_at, &dims[1], 1, HEC_INIT_ZEROS);
    }
    if (settings->select_bias) {
        struct hec_param *bias =
            own_param(site, "select_bias", settings->select_bias_at, &dims[1], 1, HEC_INIT_ZEROS);
        bias->trainable = false;
        bias->balances = true;
        moe->select_bias = bias;
    }
    if (settings->shared_gate) {
        moe->shared_gate =
            own_param(site, "shared_gate", settings->shared_gate_at, dims, 1, HEC_INIT_NORMAL);
    }
}

static bool check_signature(struct hec_site *site, const struct hec_unit *unit) {
    struct hec_checker *checker = site->checker;
    const struct hec_declaration *code = site->code;
    struct hec_shape result;
    if (!hec_shape_of(checker, site->env, &code->result, code->result_at, &result)) return false;
    const struct hec_node *x = unit->arguments == 1 ? unit->argument[0] : NULL;
    if (unit->arguments == 1 && !x) return false;
    const bool good = x && x->shape.rank == 2 && x->shape.dim[0].name == checker->positions &&
                      hec_shape_same(&x->shape, &result);
    if (good) return true;
    return hec_error(checker, code->name_at,
                     "a moe takes tokens and returns tokens, as in "
                     "`(x[T, D]) -> [T, D]`");
}

void hec_elaborate_moe(struct hec_site *site, struct hec_unit *unit) {
    struct hec_checker *checker = site->checker;
    if (!check_signature(site, unit)) return;
    const struct hec_node *x = unit->argument[0];
    struct hec_moe *moe = HEC_NEW(checker->arena, struct hec_moe);
    moe->symbol = unit->symbol;
    moe->layers = site->layers;
    moe->at = site->code->name_at;
    const struct hec_moe_settings settings = hec_moe_read(site, moe);
    make_experts(site, x, moe, settings.experts);
    if (!moe->expert) return;
    make_router(site, x, moe, &settings);
    make_shared(site, x, moe, settings.shared);
    hec_moe_check(site, moe, &settings);
    unit->moe = moe;
    HEC_PUSH(checker->arena, &checker->moes, moe);
}
