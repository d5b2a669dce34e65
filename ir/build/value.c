// Values of the scope: of nodes, parameters, operations and products.
#include "ir/build/value.h"

#include "ir/accessors.h"

#include <assert.h>

static bool starts_with(MlirValue v, const char *dim) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(v));
    return t.rank > 0 && mlirStringRefEqual(t.dim[0], HEC_STR(dim));
}

bool hec_build_has_rows(MlirValue v) {
    return starts_with(v, "rows");
}

bool hec_build_is_by_expert(const struct hec_scope *scope, MlirValue v) {
    return scope->expert_of && starts_with(v, scope->expert_of->experts.name);
}

MlirValue hec_build_value_of(struct hec_scope *scope, const struct hec_node *node) {
    const MlirValue v = {(void *)hec_map_get(&scope->build->value, node)};
    assert(!mlirValueIsNull(v));
    return v;
}

MlirValue hec_build_one(struct hec_scope *scope, int op, int operands, const MlirValue *operand,
                        int attributes, const MlirNamedAttribute *attribute) {
    if (scope->build->failed) return (MlirValue){0};
    const MlirOperation built =
        hec_build_inferred(&scope->b, op, operands, operand, attributes, attribute);
    if (!mlirOperationIsNull(built)) return hec_result(built, 0);
    scope->build->failed = true;
    return (MlirValue){0};
}

MlirValue hec_build_of_type(struct hec_scope *scope, int op, int operands, const MlirValue *operand,
                            MlirType type, int attributes, const MlirNamedAttribute *attribute) {
    if (scope->build->failed) return (MlirValue){0};
    const MlirOperation built =
        hec_build_op(&scope->b, op, operands, operand, 1, &type, attributes, attribute);
    if (!hec_op_verify(built)) scope->build->failed = true;
    return hec_result(built, 0);
}

MlirValue hec_build_get(struct hec_scope *scope, const struct hec_param *param) {
    const MlirOperation symbol = {(void *)hec_map_get(&scope->build->symbol, param)};
    assert(!mlirOperationIsNull(symbol));
    assert(param->layers == 0 || !mlirValueIsNull(scope->layer));
    const MlirNamedAttribute name =
        hec_attr_symbol(scope->build->context, "param", hec_any_sym_name(symbol));
    return hec_build_value(&scope->b, HEC_OP_get, param->layers > 0, &scope->layer,
                           hec_any_type(symbol), 1, &name);
}

// ---- products

// The dimensions that both have are summed (the checker refuses the tokens'); a's others come first.
// `skip` of b's are the experts'.
static MlirType product_type(MlirValue a, MlirValue b, int skip) {
    const struct hec_tensor left = hec_tensor_of(mlirValueGetType(a));
    const struct hec_tensor right = hec_tensor_of(mlirValueGetType(b));
    struct hec_tensor r = {.element = left.element};
    for (int i = 0; i < left.rank; i++) {
        if (hec_tensor_find(&right, left.dim[i]) >= 0) continue;
        hec_tensor_append(&r, left.dim[i], left.size[i]);
    }
    for (int i = skip; i < right.rank; i++) {
        if (hec_tensor_find(&left, right.dim[i]) >= 0) continue;
        hec_tensor_append(&r, right.dim[i], right.size[i]);
    }
    return hec_tensor_type(&r);
}

MlirValue hec_build_contract(struct hec_scope *scope, MlirValue a, MlirValue b) {
    if (scope->build->failed) return (MlirValue){0};
    const bool grouped = hec_build_has_rows(a) && hec_build_is_by_expert(scope, b);
    const MlirValue in[] = {a, b, scope->first};
    const MlirType type = product_type(a, b, grouped ? 1 : 0);
    const enum hec_op op = grouped ? HEC_OP_grouped_contract : HEC_OP_contract;
    return hec_build_of_type(scope, op, grouped ? 3 : 2, in, type, 0, NULL);
}
