// The meaning of names of dims and lets inside a call.
#include "lang/check/unit.h"

const struct hec_env *hec_seen_inside(const struct hec_checker *checker,
                                      const struct hec_env *env) {
    while (env && !env->is_dim && !hec_find_entry(checker, env->name)) env = env->outer;
    return env;
}

static struct hec_env *bind(struct hec_checker *checker, const struct hec_env *outer,
                            const char *name) {
    struct hec_env *env = HEC_NEW(checker->arena, struct hec_env);
    env->outer = outer;
    env->name = name;
    return env;
}

// `D = M` makes D mean dim M; `F = 18432` keeps the name and changes the size.
static bool bind_dim(struct hec_checker *checker, const struct hec_env *env,
                     const struct hec_argument *argument, struct hec_env *bound) {
    const struct hec_expr *value = argument->value;
    const struct hec_entry *entry =
        value->kind == HEC_EXPR_NAME ? hec_find_entry(checker, value->text) : NULL;
    bound->is_dim = true;
    if (entry && entry->kind == HEC_ITEM_DIM) return hec_dim_of(checker, env, value, &bound->dim);
    bound->dim.name = argument->name;
    const char *what = hec_arena_format(checker->arena, "dim `%s`", argument->name);
    return hec_constant_integer(checker, env, value, 1, (int64_t)1 << 40, what, &bound->dim.size);
}

static void unknown_rebinding(struct hec_checker *checker, const struct hec_argument *argument,
                              const char *callee) {
    HEC_VEC(const char *) known = {0};
    for (int i = 0; i < checker->entries.count; i++) {
        const struct hec_entry *entry = checker->entries.item[i];
        if (!entry->unit) HEC_PUSH(checker->arena, &known, entry->name);
    }
    hec_unknown(checker, argument->at, "dim or let", argument->name, known.item, known.count);
    hec_note(checker, HEC_NOWHERE, "an argument by name sets a dim or let inside `%s`", callee);
}

const struct hec_env *hec_rebind(struct hec_checker *checker, const struct hec_env *env,
                                 const struct hec_arguments *arguments, const char *callee) {
    const struct hec_env *inner = hec_seen_inside(checker, env);
    for (int i = 0; i < arguments->count; i++) {
        const struct hec_argument *argument = &arguments->item[i];
        if (!argument->name) continue;
        const struct hec_entry *entry = hec_find_entry(checker, argument->name);
        if (!entry || entry->unit) {
            unknown_rebinding(checker, argument, callee);
            continue;
        }
        struct hec_env *bound = bind(checker, inner, argument->name);
        const bool good = entry->kind == HEC_ITEM_DIM
                              ? bind_dim(checker, env, argument, bound)
                              : hec_constant_of(checker, env, argument->value, &bound->constant);
        if (good) inner = bound;
    }
    return inner;
}
