// Building operations.
#include "ir/core/op.h"

#include <assert.h>

enum { RESULTS_MAX = 8 };

struct hec_builder hec_builder_before(MlirOperation op) {
    return (struct hec_builder){.context = mlirOperationGetContext(op),
                                .block = mlirOperationGetBlock(op),
                                .before = op,
                                .at = mlirOperationGetLocation(op),
                                .unit = hec_unit_of(op)};
}

struct hec_builder hec_builder_end(MlirBlock block, MlirLocation at) {
    return (struct hec_builder){.context = mlirLocationGetContext(at), .block = block, .at = at};
}

void hec_builder_insert(struct hec_builder *b, MlirOperation op) {
    if (!mlirAttributeIsNull(b->unit) && !hec_has_attr(op, HEC_UNIT)) {
        hec_set_attr(op, hec_attr(b->context, HEC_UNIT, b->unit));
    }
    hec_rows_inherit(op);
    if (mlirOperationIsNull(b->before)) {
        mlirBlockAppendOwnedOperation(b->block, op);
    } else {
        mlirBlockInsertOwnedOperationBefore(b->block, b->before, op);
    }
}

MlirOperation hec_build_op(struct hec_builder *b, int op, int operands, const MlirValue *operand,
                           int results, const MlirType *result, int attributes,
                           const MlirNamedAttribute *attribute) {
    MlirOperationState state = mlirOperationStateGet(HEC_STR(hec_op_row(op)->name), b->at);
    mlirOperationStateAddOperands(&state, operands, operand);
    mlirOperationStateAddResults(&state, results, result);
    mlirOperationStateAddAttributes(&state, attributes, attribute);
    const MlirOperation built = mlirOperationCreate(&state);
    assert(!mlirOperationIsNull(built));
    hec_builder_insert(b, built);
    return built;
}

// How many results the row names; a trailing optional or variadic one does not count.
static int results_named(const char *results) {
    int count = 0;
    for (const char *at = results; *at;) {
        while (*at == ' ') at++;
        if (!*at) break;
        const char *start = at;
        while (*at && *at != ' ') at++;
        if (at > start && at[-1] != '?' && at[-1] != '*') count++;
    }
    return count;
}

// IRDL has no type inference: a twin with placeholder types is built first, its row infers, and the
// types are set. Rows that infer have a fixed number of results.
MlirOperation hec_build_inferred(struct hec_builder *b, int op, int operands,
                                 const MlirValue *operand, int attributes,
                                 const MlirNamedAttribute *attribute) {
    const struct hec_op_row *row = hec_op_row(op);
    assert(hec_traits_of(op)->infer);
    const int results = results_named(row->results);
    assert(results <= RESULTS_MAX);
    MlirType type[RESULTS_MAX];
    for (int i = 0; i < results; i++) {
        type[i] =
            mlirRankedTensorTypeGet(0, NULL, mlirF32TypeGet(b->context), mlirAttributeGetNull());
    }
    const MlirOperation built =
        hec_build_op(b, op, operands, operand, results, type, attributes, attribute);
    if (!hec_traits_of(op)->infer(built, type)) {
        mlirOperationDestroy(built);
        return (MlirOperation){0};
    }
    for (int i = 0; i < results; i++) mlirValueSetType(hec_result(built, i), type[i]);
    return built;
}

MlirValue hec_build_value(struct hec_builder *b, int op, int operands, const MlirValue *operand,
                          MlirType type, int attributes, const MlirNamedAttribute *attribute) {
    return hec_result(hec_build_op(b, op, operands, operand, 1, &type, attributes, attribute), 0);
}

MlirValue hec_build_index(struct hec_builder *b, int64_t value) {
    const MlirType type = mlirIndexTypeGet(b->context);
    const MlirNamedAttribute attribute =
        hec_attr(b->context, "value", mlirIntegerAttrGet(type, value));
    return hec_build_value(b, HEC_OP_CONSTANT, 0, NULL, type, 1, &attribute);
}

MlirValue hec_build_fill(struct hec_builder *b, MlirType type, double value) {
    const MlirNamedAttribute attribute = hec_attr_float(b->context, "value", value);
    return hec_build_value(b, HEC_OP_fill, 0, NULL, type, 1, &attribute);
}

MlirOperation hec_build_func(MlirBlock module, MlirOperation before, const char *name,
                             int arguments, const MlirType *type, const MlirLocation *at,
                             MlirLocation func_at, MlirBlock *entry) {
    const MlirContext c = mlirLocationGetContext(func_at);
    *entry = mlirBlockCreate(arguments, type, at);
    MlirRegion region = mlirRegionCreate();
    mlirRegionAppendOwnedBlock(region, *entry);

    MlirOperationState state = mlirOperationStateGet(HEC_STR("func.func"), func_at);
    const MlirNamedAttribute attribute[] = {
        hec_attr_string(c, "sym_name", name),
        hec_attr_type(c, "function_type", mlirFunctionTypeGet(c, arguments, type, 0, NULL)),
    };
    mlirOperationStateAddAttributes(&state, 2, attribute);
    mlirOperationStateAddOwnedRegions(&state, 1, &region);
    const MlirOperation func = mlirOperationCreate(&state);
    struct hec_builder b = {.context = c, .block = module, .before = before, .at = func_at};
    hec_builder_insert(&b, func);
    return func;
}

void hec_build_return(struct hec_builder *b, MlirOperation func, int results,
                      const MlirValue *result) {
    enum { MOST = 16 };
    MlirType in[MOST], out[MOST];
    const MlirBlock body = hec_func_body(func);
    const int arguments = (int)mlirBlockGetNumArguments(body);
    assert(arguments <= MOST);
    assert(results <= MOST);
    for (int i = 0; i < arguments; i++) {
        in[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
    }
    for (int i = 0; i < results; i++) out[i] = mlirValueGetType(result[i]);
    hec_build_op(b, HEC_OP_RETURN, results, result, 0, NULL, 0, NULL);
    hec_set_attr(func, hec_attr_type(b->context, "function_type",
                                     mlirFunctionTypeGet(b->context, arguments, in, results, out)));
}
