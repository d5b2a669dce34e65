// Units: one private function per call site, its body, loops over layers. A loop carries what the
// repeat carries, and what layers in it add up for the loss.
#include "ir/build_parts.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { CARRIED_MAX = 12 };

static const char *const sum_name[HEC_SUMS] = {"auxiliary", "mean_scores", "fractions"};

static bool unit_has(const struct hec_unit *unit, enum hec_sum sum);

static bool body_has(const struct hec_body *body, enum hec_sum sum) {
    for (int i = 0; i < body->items; i++) {
        const struct hec_item *item = &body->item[i];
        if (item->loop ? body_has(&item->loop->body, sum)
                       : item->node->kind == HEC_NODE_CALL && unit_has(item->node->callee, sum)) {
            return true;
        }
    }
    return false;
}

static bool unit_has(const struct hec_unit *unit, enum hec_sum sum) {
    if (unit->kind != HEC_UNIT_MOE) return body_has(&unit->body, sum);
    const struct hec_moe *moe = unit->moe;
    const bool joint = moe->aux != 0 && moe->aux_per == HEC_AUX_ALL_LAYERS;
    const bool own = sum == HEC_SUM_AUXILIARY ? (moe->aux != 0 && !joint) || moe->z != 0 : joint;
    return own || (moe->shared && unit_has(moe->shared, sum));
}

void hec_build_sum(struct hec_scope *scope, struct hec_sums *sums, const struct hec_sums *more) {
    const MlirLocation at = scope->b.at;
    for (int i = 0; i < HEC_SUMS; i++) {
        const MlirValue both[] = {sums->of[i], more->of[i]};
        if (mlirValueIsNull(more->of[i])) continue;
        sums->of[i] = more->of[i];
        if (mlirValueIsNull(both[0])) continue;
        scope->b.at = hec_loc_named(sum_name[i], hec_loc_strip(at));
        sums->of[i] = hec_build_one(scope, HEC_OP_add, 2, both, 0, NULL);
    }
    scope->b.at = at;
}

// ---- loops

static MlirValue zero(struct hec_scope *scope, enum hec_sum sum) {
    const struct hec_build *build = scope->build;
    const struct hec_moe *moe = NULL;
    struct hec_tensor t = {.element = build->real};
    if (sum != HEC_SUM_AUXILIARY) {
        hec_build_joint(build->program, &moe);
        hec_tensor_append(&t, HEC_STR("batch"), build->batch);
        hec_tensor_append(&t, HEC_STR(moe->experts.name), moe->experts.size);
    }
    return hec_build_fill(&scope->b, hec_tensor_type(&t), 0);
}

// Appends to `value` the sums that the loop's layers add to, as they are before it. Returns their number,
// and which they are.
static int begin_sums(struct hec_scope *scope, const struct hec_loop *loop, MlirValue *value,
                      enum hec_sum sum[HEC_SUMS]) {
    int sums = 0;
    for (enum hec_sum i = 0; i < HEC_SUMS; i++) {
        if (!body_has(&loop->body, i)) continue;
        const MlirValue before = scope->sums.of[i];
        hec_build_at(scope, loop->at, sum_name[i]);
        value[sums] = mlirValueIsNull(before) ? zero(scope, i) : before;
        sum[sums++] = i;
    }
    return sums;
}

static void build_loop(struct hec_scope *scope, const struct hec_loop *loop) {
    struct hec_build *build = scope->build;
    MlirValue value[CARRIED_MAX + HEC_SUMS];
    enum hec_sum sum[HEC_SUMS];
    assert(mlirValueIsNull(scope->layer)); // The checker refuses a repeat inside a repeat.
    if (loop->carried > CARRIED_MAX) {
        hec_build_error(build, loop->at, "not yet: more than %d variables change in a repeat",
                        CARRIED_MAX);
        return;
    }
    for (int i = 0; i < loop->carried; i++) value[i] = hec_build_value_of(scope, loop->init[i]);
    const int sums = begin_sums(scope, loop, value + loop->carried, sum);
    const int carried = loop->carried + sums;
    hec_build_at(scope, loop->at, carried == 1 ? loop->argument[0]->name : NULL);
    struct hec_for built = hec_build_for(&scope->b, loop->count, false, carried, value);
    *hec_map_at(&build->loop, loop) = (intptr_t)built.op.ptr;

    struct hec_scope inside = *scope;
    inside.b = hec_builder_end(built.body, scope->b.at);
    inside.layer = built.layer;
    for (int i = 0; i < loop->carried; i++) {
        *hec_map_at(&build->value, loop->argument[i]) = (intptr_t)hec_for_argument(&built, i).ptr;
    }
    for (int i = 0; i < sums; i++)
        inside.sums.of[sum[i]] = hec_for_argument(&built, loop->carried + i);
    hec_build_body(&inside, &loop->body);
    if (build->failed) return;
    for (int i = 0; i < loop->carried; i++) value[i] = hec_build_value_of(scope, loop->yield[i]);
    for (int i = 0; i < sums; i++) value[loop->carried + i] = inside.sums.of[sum[i]];
    hec_for_yield(&built, hec_loc_strip(scope->b.at), value);
    for (int i = 0; i < sums; i++) scope->sums.of[sum[i]] = hec_result(built.op, loop->carried + i);
}

void hec_build_body(struct hec_scope *scope, const struct hec_body *body) {
    for (int i = 0; i < body->items && !scope->build->failed; i++) {
        if (body->item[i].loop) {
            build_loop(scope, body->item[i].loop);
        } else {
            hec_build_node(scope, body->item[i].node);
        }
    }
}

// ---- functions

struct hec_scope hec_build_begin(struct hec_scope *caller, const struct hec_unit *unit,
                                 const char *name, const struct hec_moe *expert_of) {
    struct hec_build *build = caller->build;
    struct hec_scope scope = {.build = build, .expert_of = expert_of};
    MlirType type[HEC_OPERANDS_MAX + 2];
    MlirLocation at[HEC_OPERANDS_MAX + 2];
    int count = 0;
    assert(unit->arguments <= HEC_OPERANDS_MAX);
    for (; count < unit->arguments; count++) {
        const struct hec_node *node = unit->argument[count];
        type[count] = hec_build_type(&scope, &node->shape, node->batched, node->integer);
        at[count] = hec_build_location(build, node->at, node->name);
    }
    if (expert_of) {
        struct hec_tensor first = {.element = build->i32};
        hec_tensor_append(&first, HEC_STR("first"), expert_of->experts.size + 1);
        type[count] = hec_tensor_type(&first);
        at[count++] = hec_build_location(build, unit->at, "first");
    }
    const bool layered = !mlirValueIsNull(caller->layer);
    if (layered) {
        type[count] = build->index;
        at[count++] = hec_build_location(build, unit->at, "i");
    }
    char *symbol = hec_build_symbol(build, name);
    const MlirLocation place = hec_build_location(build, unit->at, NULL);
    MlirBlock entry;
    scope.func = hec_build_func(hec_module_body(build->module), caller->func, symbol, count, type,
                                at, place, &entry);
    free(symbol);
    hec_set_attr(scope.func, hec_attr_string(build->context, "sym_visibility", "private"));
    scope.b = hec_builder_end(entry, place);
    for (int i = 0; i < unit->arguments; i++) {
        *hec_map_at(&build->value, unit->argument[i]) =
            (intptr_t)mlirBlockGetArgument(entry, i).ptr;
    }
    if (expert_of) scope.first = mlirBlockGetArgument(entry, unit->arguments);
    if (layered) scope.layer = mlirBlockGetArgument(entry, count - 1);
    return scope;
}

// What the function of `unit` returns, built at its end.
static struct hec_called build_content(struct hec_scope *scope, const struct hec_unit *unit) {
    if (unit->kind == HEC_UNIT_MOE) {
        return hec_build_moe(scope, unit->moe, hec_build_value_of(scope, unit->argument[0]));
    }
    hec_build_body(scope, &unit->body);
    if (scope->build->failed) return (struct hec_called){0};
    return (struct hec_called){hec_build_value_of(scope, unit->result), scope->sums};
}

// A moe's own symbol names its set, so its function is called after one layer of it.
static void function_name(const struct hec_unit *unit, char *name, size_t room) {
    snprintf(name, room, unit->kind == HEC_UNIT_MOE ? "%s.layer" : "%s", unit->symbol);
}

static void name_mixture(struct hec_build *build, const struct hec_moe *moe, MlirOperation func) {
    const MlirOperation set = {(void *)hec_map_get(&build->symbol, moe)};
    hec_set_attr(set, hec_attr_symbol(build->context, "mixture", hec_get_string(func, "sym_name")));
}

struct hec_called hec_build_call(struct hec_scope *scope, const struct hec_unit *unit, int operands,
                                 const MlirValue *operand) {
    struct hec_build *build = scope->build;
    char name[512];
    function_name(unit, name, sizeof name);
    struct hec_scope inside = hec_build_begin(scope, unit, name, scope->expert_of);
    if (unit->kind == HEC_UNIT_MOE) name_mixture(build, unit->moe, inside.func);
    const struct hec_called content = build_content(&inside, unit);
    if (build->failed) return content;
    MlirValue returned[1 + HEC_SUMS] = {content.value};
    int results = 1;
    for (int i = 0; i < HEC_SUMS; i++) {
        if (!mlirValueIsNull(content.sums.of[i])) returned[results++] = content.sums.of[i];
    }
    hec_build_return(&inside.b, inside.func, results, returned);

    MlirValue in[HEC_OPERANDS_MAX + 2];
    for (int i = 0; i < operands; i++) in[i] = operand[i];
    if (scope->expert_of) in[operands++] = scope->first;
    if (!mlirValueIsNull(scope->layer)) in[operands++] = scope->layer;
    MlirType type[1 + HEC_SUMS];
    for (int i = 0; i < results; i++) type[i] = mlirValueGetType(returned[i]);
    const MlirNamedAttribute callee =
        hec_attr_symbol(build->context, "callee", hec_get_string(inside.func, "sym_name"));
    const MlirOperation call =
        hec_build_op(&scope->b, HEC_OP_CALL, operands, in, results, type, 1, &callee);
    struct hec_called called = {.value = hec_result(call, 0)};
    for (int i = 0, k = 1; i < HEC_SUMS; i++) {
        if (!mlirValueIsNull(content.sums.of[i])) called.sums.of[i] = hec_result(call, k++);
    }
    return called;
}
