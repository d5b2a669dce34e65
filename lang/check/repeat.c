// repeat: iterations that do the same become one loop. Which ones do is read off the decisions that
// depend on the repeat's variable; the shortest period that covers most iterations wins:
//
//   A A A B B B B B ...   a loop over A A A, then a loop over the B
//   A B A B A B ...       one loop whose body is A B
//
// So do the groups of parameters that an iteration's may belong to.
//
// A repeat inside a repeat is no loop: its iterations stand one behind another in the body of the outer one.
#include <string.h>

#include "lang/check/groups.h"
#include "lang/check/unit.h"

enum { ITERATIONS_MAX = 4096, INNER_MAX = 64 };

struct names {
    const char **item;
    int count, room;
};

static bool mentions(const struct hec_expr *expr, const char *name) {
    if (!expr) return false;
    if (expr->kind == HEC_EXPR_NAME && expr->text == name) return true;
    for (int i = 0; i < expr->arguments.count; i++) {
        if (mentions(expr->arguments.item[i].value, name)) return true;
    }
    return mentions(expr->left, name) || mentions(expr->right, name);
}

// Whether a repeat's variable is in it, that of an outer one included.
static bool depends(const struct hec_site *site, const struct hec_expr *expr) {
    const struct hec_env *seen = hec_seen_inside(site->checker, site->env);
    bool found = false;
    for (const struct hec_env *env = site->env; env != seen; env = env->outer)
        found |= mentions(expr, env->name);
    return found;
}

// Appends to `text` the value of every part of `expr` that repeats' variables decide.
static const char *sign_expr(struct hec_site *site, const struct hec_expr *expr, const char *text) {
    struct hec_checker *checker = site->checker;
    if (!expr || !depends(site, expr)) return text;
    if (hec_is_constant(checker, site->env, expr)) {
        struct hec_constant value;
        if (!hec_constant_of(checker, site->env, expr, &value)) return text;
        return hec_arena_format(checker->arena, "%s %s", text, hec_constant_text(checker, &value));
    }
    text = sign_expr(site, expr->left, text);
    text = sign_expr(site, expr->right, text);
    for (int i = 0; i < expr->arguments.count; i++) {
        text = sign_expr(site, expr->arguments.item[i].value, text);
    }
    return text;
}

static struct hec_env iteration(const struct hec_env *outer, const char *variable, int64_t index) {
    struct hec_env env = {.outer = outer, .name = variable};
    env.constant.number = (struct hec_number){.value = (double)index, .integral = true};
    return env;
}

static const char *sign(struct hec_site *site, const struct hec_stmts *stmts, const char *text,
                        struct names *assigned);

// Adds all iterations of an inner repeat, one behind another.
static const char *sign_inner(struct hec_site *site, const struct hec_stmt *stmt, const char *text,
                              struct names *assigned) {
    const struct hec_env *outer = site->env;
    struct hec_constant count;
    if (!hec_is_constant(site->checker, outer, stmt->value) ||
        !hec_constant_of(site->checker, outer, stmt->value, &count))
        return text;
    for (int i = 0; i < count.number.value && i < INNER_MAX; i++) {
        struct hec_env env = iteration(outer, stmt->name, i);
        site->env = &env;
        text = sign(site, &stmt->body, text, assigned);
    }
    site->env = outer;
    return text;
}

// The decisions of one iteration, as text; adds the variables it sets to `assigned`.
static const char *sign(struct hec_site *site, const struct hec_stmts *stmts, const char *text,
                        struct names *assigned) {
    struct hec_checker *checker = site->checker;
    for (int i = 0; i < stmts->count; i++) {
        const struct hec_stmt *stmt = &stmts->item[i];
        if (stmt->kind == HEC_STMT_REPEAT) text = sign_inner(site, stmt, text, assigned);
        if (stmt->kind == HEC_STMT_IF) {
            bool taken = false;
            if (!hec_constant_bool(checker, site->env, stmt->value, "a condition", &taken))
                continue;
            text = hec_arena_format(checker->arena, "%s %s", text, taken ? "then" : "else");
            text = sign(site, taken ? &stmt->body : &stmt->otherwise, text, assigned);
            continue;
        }
        if (stmt->kind == HEC_STMT_ASSIGN) HEC_PUSH(checker->arena, assigned, stmt->name);
        text = sign_expr(site, stmt->value, text);
        for (int j = 0; j < stmt->params.count; j++) {
            const struct hec_arguments *options = &stmt->params.item[j].options;
            for (int k = 0; k < options->count; k++) {
                text = sign_expr(site, options->item[k].value, text);
            }
        }
    }
    return text;
}

struct iterations {
    const char **signature;
    struct names *assigned;
    int count;
};

static int repeats_of(const struct iterations *all, int first, int period) {
    int covered = period;
    while (first + covered < all->count &&
           !strcmp(all->signature[first + covered], all->signature[first + covered - period])) {
        covered++;
    }
    return covered / period;
}

// The shortest period from `first` on that covers most iterations.
static int choose_period(const struct iterations *all, int first) {
    int best = 1, best_covered = repeats_of(all, first, 1);
    for (int period = 2; period <= (all->count - first) / 2; period++) {
        const int repeats = repeats_of(all, first, period);
        if (repeats < 2 || repeats * period <= best_covered) continue;
        best = period;
        best_covered = repeats * period;
    }
    return best;
}

struct carried {
    const char *name;
    const struct hec_node *init, *argument, *yield;
};

struct loop {
    struct hec_loop *made;
    HEC_VEC(struct carried) carried;
};

static const struct hec_node *carried_node(struct hec_site *site, const struct hec_node *like,
                                           const char *name, int index) {
    struct hec_node *node = HEC_NEW(site->checker->arena, struct hec_node);
    *node = (struct hec_node){.kind = HEC_NODE_ARGUMENT,
                              .shape = like->shape,
                              .batched = like->batched,
                              .integer = like->integer,
                              .places = like->places,
                              .ahead = like->ahead,
                              .name = name,
                              .index = index,
                              .at = like->at};
    return node;
}

// Makes every variable that exists before the loop and is set in it an argument of its body.
static void carry(struct hec_site *site, struct loop *loop, const struct names *assigned) {
    for (int i = 0; i < assigned->count; i++) {
        const char *name = assigned->item[i];
        bool known = false;
        for (int j = 0; j < loop->carried.count; j++) known |= loop->carried.item[j].name == name;
        struct hec_local *local = hec_find_local(site, name);
        if (known || !local || local->value.broken) continue;
        const struct hec_node *init = hec_node_of(site, local->value, local->at);
        if (init->kind == HEC_NODE_PARAM) continue; // An error when it is assigned.
        const struct hec_node *argument = carried_node(site, init, name, loop->carried.count);
        local->value = hec_node_value(argument);
        HEC_PUSH(site->checker->arena, &loop->carried,
                 (struct carried){.name = name, .init = init, .argument = argument});
    }
}

static void check_carried(struct hec_site *site, const struct carried *carried) {
    struct hec_checker *checker = site->checker;
    const struct hec_node *before = carried->argument, *after = carried->yield;
    if (!after) return;
    if (!hec_shape_same(&before->shape, &after->shape)) {
        hec_error(checker, after->at, "`%s` changes its shape in each iteration", carried->name);
        hec_detail(checker, "before it is %s",
                   hec_shape_text_beside(checker->arena, &before->shape, &after->shape));
        hec_detail(checker, "after it is %s",
                   hec_shape_text_beside(checker->arena, &after->shape, &before->shape));
    } else if (before->batched != after->batched || before->integer != after->integer ||
               before->places != after->places) {
        hec_error(checker, after->at,
                  "not yet: `%s` depends on the tokens only after the first iteration",
                  carried->name);
    }
}

// Elaborates the body once; names and locals of one iteration end with it.
static void iterate(struct hec_site *site, const struct hec_stmt *stmt, int index) {
    const int locals = site->locals.count;
    const struct hec_env *outer = site->env;
    const struct hec_taken_names taken = site->taken;
    const int64_t before = site->layers_before;
    struct hec_env env = iteration(outer, stmt->name, index);
    site->env = &env;
    site->taken = (struct hec_taken_names){0};
    site->layers_before = 0; // For inner repeats.
    site->checker->walk->statements(site, &stmt->body);
    if (site->returned) {
        hec_error(site->checker, stmt->at, "a repeat cannot return");
        site->returned = false;
    }
    hec_drop_locals(site, locals);
    site->env = outer;
    site->taken = taken;
    site->layers_before = before;
}

static void finish_loop(struct hec_site *site, struct loop *loop, struct hec_items outside) {
    struct hec_checker *checker = site->checker;
    const size_t count = (size_t)loop->carried.count;
    const struct hec_node **init = hec_arena_alloc(checker->arena, count, sizeof *init);
    const struct hec_node **argument = hec_arena_alloc(checker->arena, count, sizeof *argument);
    const struct hec_node **yield = hec_arena_alloc(checker->arena, count, sizeof *yield);
    for (int i = 0; i < loop->carried.count; i++) {
        struct carried *carried = &loop->carried.item[i];
        struct hec_local *local = hec_find_local(site, carried->name);
        carried->yield = hec_node_of(site, local->value, local->at);
        check_carried(site, carried);
        init[i] = carried->init;
        argument[i] = carried->argument;
        yield[i] = carried->yield;
    }
    int64_t ahead = 0; // The largest of all: the next iteration may make it that of the others.
    for (int i = 0; i < loop->carried.count; i++) {
        if (yield[i] && yield[i]->ahead > ahead) ahead = yield[i]->ahead;
    }
    loop->made->body = (struct hec_body){.items = site->items.count, .item = site->items.item};
    loop->made->carried = loop->carried.count;
    loop->made->init = init;
    loop->made->argument = argument;
    loop->made->yield = yield;

    site->items = outside;
    HEC_PUSH(checker->arena, &site->items, (struct hec_item){.loop = loop->made});
    for (int i = 0; i < loop->carried.count; i++) {
        const struct carried *carried = &loop->carried.item[i];
        struct hec_local *local = hec_find_local(site, carried->name);
        struct hec_node after = *carried->argument;
        after.kind = HEC_NODE_CARRIED;
        after.ahead = ahead;
        after.loop = loop->made;
        after.at = local->at;
        const bool broken = local->value.broken;
        local->value = hec_node_value(hec_add_node(site, after));
        local->value.broken = broken;
    }
}

static void make_loop(struct hec_site *site, const struct hec_stmt *stmt,
                      const struct iterations *all, int first, int period, int count) {
    struct hec_checker *checker = site->checker;
    struct loop loop = {.made = HEC_NEW(checker->arena, struct hec_loop)};
    loop.made->variable = stmt->name;
    loop.made->count = count;
    loop.made->at = stmt->at;
    for (int i = 0; i < period; i++) carry(site, &loop, &all->assigned[first + i]);

    const struct hec_items outside = site->items;
    site->items = (struct hec_items){0};
    for (int i = 0; i < period; i++) {
        site->layers = count;
        site->index_first = site->layers_before + first + i;
        site->index_stride = period;
        iterate(site, stmt, first + i);
    }
    site->layers = site->index_first = site->index_stride = 0;
    finish_loop(site, &loop, outside);
}

static struct iterations sign_all(struct hec_site *site, const struct hec_stmt *stmt, int count) {
    struct hec_checker *checker = site->checker;
    struct iterations all = {.count = count};
    all.signature = hec_arena_alloc(checker->arena, (size_t)count, sizeof *all.signature);
    all.assigned = hec_arena_alloc(checker->arena, (size_t)count, sizeof *all.assigned);
    const struct hec_env *outer = site->env;
    for (int i = 0; i < count; i++) {
        struct hec_env env = iteration(outer, stmt->name, i);
        site->env = &env;
        all.signature[i] = sign(site, &stmt->body, "", &all.assigned[i]);
        const long long layer = site->layers_before + i;
        const char *path = hec_arena_format(checker->arena, "%slayers.%lld.", site->path, layer);
        all.signature[i] = hec_groups_sign(checker, path, all.signature[i]);
    }
    site->env = outer;
    return all;
}

// A repeat inside a repeat. After an error the other iterations would repeat it.
static void unroll(struct hec_site *site, const struct hec_stmt *stmt, int count) {
    struct hec_checker *checker = site->checker;
    const char *path = site->path;
    const uint32_t raised_before = checker->diag->raised;
    for (int i = 0; i < count && checker->diag->raised == raised_before; i++) {
        const long long layer = site->layers_before + i;
        site->path = hec_arena_format(checker->arena, "%slayers.%lld.", path, layer);
        iterate(site, stmt, i);
    }
    site->path = path;
    site->layers_before += count;
}

static void make_loops(struct hec_site *site, const struct hec_stmt *stmt, int count) {
    struct hec_checker *checker = site->checker;
    const char *path = site->path;
    const uint32_t raised_before = checker->diag->raised;
    const struct iterations all = sign_all(site, stmt, count);
    site->path = hec_arena_format(checker->arena, "%slayers.{}.", path);
    // One loop at least is checked; after an error the others would repeat it.
    for (int first = 0; first == 0 || (first < count && checker->diag->raised == raised_before);) {
        const int period = choose_period(&all, first);
        const int repeats = repeats_of(&all, first, period);
        make_loop(site, stmt, &all, first, period, repeats);
        first += period * repeats;
    }
    site->path = path;
    site->layers_before += count;
}

static bool is_variable(const struct hec_site *site, const char *name) {
    const struct hec_env *seen = hec_seen_inside(site->checker, site->env);
    bool found = false;
    for (const struct hec_env *env = site->env; env != seen; env = env->outer)
        found |= env->name == name;
    return found;
}

void hec_repeat(struct hec_site *site, const struct hec_stmt *stmt) {
    struct hec_checker *checker = site->checker;
    int64_t count = 0;
    if (hec_find_entry(checker, stmt->name) || hec_find_local(site, stmt->name) ||
        is_variable(site, stmt->name)) {
        hec_error(checker, stmt->name_at, "`%s` already has a meaning here", stmt->name);
        site->broken = true;
        return;
    }
    const bool inside = site->layers > 0;
    const char *what =
        inside ? "the number of iterations of an inner repeat" : "the number of iterations";
    if (!hec_constant_integer(checker, site->env, stmt->value, 1,
                              inside ? INNER_MAX : ITERATIONS_MAX, what, &count)) {
        site->broken = true;
        return;
    }
    if (inside)
        unroll(site, stmt, (int)count);
    else
        make_loops(site, stmt, (int)count);
}
