// Units: one private function per call site, and its call.
#include "ir/build/unit.h"

#include <stdio.h>

#include "ir/accessors.h"
#include "ir/build/body.h"
#include "ir/build/function.h"
#include "ir/build/moe.h"
#include "ir/build/value.h"

// Builds the function of `unit`, and the values that it returns at its end.
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
    hec_set_put_mixture(set, hec_any_sym_name(func));
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
        hec_attr_symbol(build->context, "callee", hec_any_sym_name(inside.func));
    const MlirOperation call =
        hec_build_op(&scope->b, HEC_OP_FUNC_CALL, operands, in, results, type, 1, &callee);
    struct hec_called called = {.value = hec_result(call, 0)};
    for (int i = 0, k = 1; i < HEC_SUMS; i++) {
        if (!mlirValueIsNull(content.sums.of[i])) called.sums.of[i] = hec_result(call, k++);
    }
    return called;
}
