// The function of a unit: its arguments.
#include "ir/build/function.h"

#include <assert.h>
#include <stdlib.h>

#include "ir/build/recompute.h"

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
    const MlirLocation location = hec_build_location(build, unit->at, NULL);
    MlirBlock entry;
    scope.func = hec_build_func(hec_module_body(build->module), caller->func, symbol, count, type,
                                at, location, &entry);
    free(symbol);
    hec_set_attr(scope.func, hec_attr_string(build->context, "sym_visibility", "private"));
    hec_build_recompute(build, unit, scope.func);
    scope.b = hec_builder_end(entry, location);
    for (int i = 0; i < unit->arguments; i++) {
        *hec_map_at(&build->value, unit->argument[i]) =
            (intptr_t)mlirBlockGetArgument(entry, i).ptr;
    }
    if (expert_of) scope.first = mlirBlockGetArgument(entry, unit->arguments);
    if (layered) scope.layer = mlirBlockGetArgument(entry, count - 1);
    return scope;
}
