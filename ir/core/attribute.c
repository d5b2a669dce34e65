// Attributes, symbols and names.
#include "ir/core/op.h"

#include <assert.h>

MlirNamedAttribute hec_attr(MlirContext c, const char *key, MlirAttribute value) {
    return mlirNamedAttributeGet(mlirIdentifierGet(c, HEC_STR(key)), value);
}

MlirNamedAttribute hec_attr_int(MlirContext c, const char *key, int64_t value) {
    return hec_attr(c, key, mlirIntegerAttrGet(mlirIntegerTypeGet(c, 64), value));
}

MlirNamedAttribute hec_attr_float(MlirContext c, const char *key, double value) {
    return hec_attr(c, key, mlirFloatAttrDoubleGet(c, mlirF64TypeGet(c), value));
}

MlirNamedAttribute hec_attr_bool(MlirContext c, const char *key, bool value) {
    return hec_attr(c, key, mlirBoolAttrGet(c, value));
}

MlirNamedAttribute hec_attr_string(MlirContext c, const char *key, const char *value) {
    return hec_attr(c, key, mlirStringAttrGet(c, HEC_STR(value)));
}

MlirNamedAttribute hec_attr_symbol(MlirContext c, const char *key, MlirStringRef symbol) {
    return hec_attr(c, key, mlirFlatSymbolRefAttrGet(c, symbol));
}

MlirNamedAttribute hec_attr_type(MlirContext c, const char *key, MlirType type) {
    return hec_attr(c, key, mlirTypeAttrGet(type));
}

MlirAttribute hec_get_attr(MlirOperation op, const char *key) {
    return mlirOperationGetAttributeByName(op, HEC_STR(key));
}

bool hec_has_attr(MlirOperation op, const char *key) {
    return !mlirAttributeIsNull(hec_get_attr(op, key));
}

int64_t hec_get_int(MlirOperation op, const char *key) {
    const MlirAttribute value = hec_get_attr(op, key);
    assert(!mlirAttributeIsNull(value) && mlirAttributeIsAInteger(value));
    return mlirIntegerAttrGetValueInt(value);
}

double hec_get_float(MlirOperation op, const char *key) {
    const MlirAttribute value = hec_get_attr(op, key);
    assert(!mlirAttributeIsNull(value) && mlirAttributeIsAFloat(value));
    return mlirFloatAttrGetValueDouble(value);
}

bool hec_get_bool(MlirOperation op, const char *key) {
    const MlirAttribute value = hec_get_attr(op, key);
    assert(mlirAttributeIsNull(value) || mlirAttributeIsABool(value));
    return !mlirAttributeIsNull(value) && mlirBoolAttrGetValue(value);
}

MlirStringRef hec_get_string(MlirOperation op, const char *key) {
    const MlirAttribute value = hec_get_attr(op, key);
    if (mlirAttributeIsNull(value)) return mlirStringRefCreate("", 0);
    if (mlirAttributeIsAFlatSymbolRef(value)) return mlirFlatSymbolRefAttrGetValue(value);
    assert(mlirAttributeIsAString(value));
    return mlirStringAttrGetValue(value);
}

MlirType hec_get_type(MlirOperation op, const char *key) {
    const MlirAttribute value = hec_get_attr(op, key);
    assert(!mlirAttributeIsNull(value));
    assert(mlirAttributeIsAType(value));
    return mlirTypeAttrGetValue(value);
}

void hec_set_attr(MlirOperation op, MlirNamedAttribute attribute) {
    mlirOperationSetAttributeByName(op, mlirIdentifierStr(attribute.name), attribute.attribute);
}

MlirBlock hec_module_body(MlirOperation module) {
    return mlirRegionGetFirstBlock(mlirOperationGetRegion(module, 0));
}

MlirBlock hec_func_body(MlirOperation func) {
    return mlirRegionGetFirstBlock(mlirOperationGetRegion(func, 0));
}

// The symbols of a module that nothing changes meanwhile, by their names' attributes, which are unique in
// a context. Without this a module with thousands of symbols is searched from the start for each use.
static _Thread_local struct {
    MlirOperation module;
    struct hec_map symbol;
} held;

// Empty where it has none; an operation of another dialect may have anything.
static MlirStringRef symbol_name(MlirOperation op) {
    const MlirAttribute name = hec_get_attr(op, "sym_name");
    const bool named = !mlirAttributeIsNull(name) && mlirAttributeIsAString(name);
    return named ? mlirStringAttrGetValue(name) : HEC_STR("");
}

static const void *name_key(MlirOperation module, MlirStringRef name) {
    return mlirStringAttrGet(mlirOperationGetContext(module), name).ptr;
}

void hec_symbols_hold(MlirOperation module) {
    hec_symbols_release();
    HEC_EACH_IN (op, hec_module_body(module)) {
        const MlirStringRef own = symbol_name(op);
        intptr_t *symbol = own.length ? hec_map_at(&held.symbol, name_key(module, own)) : NULL;
        if (symbol && !*symbol) *symbol = (intptr_t)op.ptr;
    }
    held.module = module;
}

void hec_symbols_release(void) {
    hec_map_free(&held.symbol);
    held.module = (MlirOperation){0};
}

MlirOperation hec_find_symbol(MlirOperation module, MlirStringRef name) {
    if (held.module.ptr && mlirOperationEqual(held.module, module)) {
        return (MlirOperation){(void *)hec_map_get(&held.symbol, name_key(module, name))};
    }
    HEC_EACH_IN (op, hec_module_body(module)) {
        const MlirStringRef own = symbol_name(op);
        if (own.length && mlirStringRefEqual(own, name)) return op;
    }
    return (MlirOperation){0};
}

MlirOperation hec_find_slot(MlirOperation module, const char *holds, MlirOperation set) {
    const MlirStringRef of =
        mlirOperationIsNull(set) ? HEC_STR("") : hec_get_string(set, "sym_name");
    HEC_EACH_IN (op, hec_module_body(module)) {
        if (hec_op_is(op, HEC_OP_slot) &&
            mlirStringRefEqual(hec_get_string(op, "holds"), HEC_STR(holds)) &&
            mlirStringRefEqual(hec_get_string(op, "set"), of))
            return op;
    }
    return (MlirOperation){0};
}

int hec_count_losses(MlirOperation module) {
    int count = HEC_LOSSES;
    HEC_EACH_IN (op, hec_module_body(module))
        count += hec_op_is(op, HEC_OP_slot) && hec_has_attr(op, "loss");
    return count;
}

MlirOperation hec_module_of(MlirOperation op) {
    for (;;) {
        const MlirOperation parent = mlirOperationGetParentOperation(op);
        if (mlirOperationIsNull(parent)) return op;
        op = parent;
    }
}

MlirOperation hec_func_of(MlirOperation op) {
    const MlirStringRef func = HEC_STR("func.func");
    while (!mlirOperationIsNull(op) &&
           !mlirStringRefEqual(mlirIdentifierStr(mlirOperationGetName(op)), func)) {
        op = mlirOperationGetParentOperation(op);
    }
    return op;
}

MlirBlock hec_block_of(MlirValue v) {
    return mlirValueIsABlockArgument(v) ? mlirBlockArgumentGetOwner(v)
                                        : mlirOperationGetBlock(mlirOpResultGetOwner(v));
}
