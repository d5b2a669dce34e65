// Units: the calls that an operation came from. inline writes them as the attribute `unit`, an array of
// the callees' symbols, outermost first; operations built by passes take the one of their origin. An
// operation of the model itself has none.
#include "ir/core/op.h"

enum { DEEPEST = 64 }; // Calls are no deeper (inline).

MlirAttribute hec_unit_of(MlirOperation op) {
    return mlirOperationGetAttributeByName(op, HEC_STR(HEC_UNIT));
}

MlirStringRef hec_unit_at(MlirOperation op, int depth) {
    const MlirAttribute unit = hec_unit_of(op);
    if (mlirAttributeIsNull(unit) || depth >= mlirArrayAttrGetNumElements(unit)) return HEC_STR("");
    return mlirFlatSymbolRefAttrGetValue(mlirArrayAttrGetElement(unit, depth));
}

MlirStringRef hec_unit_name(MlirOperation op) {
    const MlirAttribute unit = hec_unit_of(op);
    return mlirAttributeIsNull(unit) ? HEC_STR("")
                                     : hec_unit_at(op, (int)mlirArrayAttrGetNumElements(unit) - 1);
}

bool hec_unit_is_in(MlirOperation op, MlirStringRef unit) {
    for (int depth = 0;; depth++) {
        const MlirStringRef at = hec_unit_at(op, depth);
        if (!at.length) return false;
        if (mlirStringRefEqual(at, unit)) return true;
    }
}

MlirAttribute hec_unit_around(MlirOperation op) {
    const MlirAttribute unit = hec_unit_of(op);
    const int count = mlirAttributeIsNull(unit) ? 0 : (int)mlirArrayAttrGetNumElements(unit);
    MlirAttribute path[DEEPEST];
    if (count < 2 || count > DEEPEST) return (MlirAttribute){0};
    for (int i = 0; i < count - 1; i++) path[i] = mlirArrayAttrGetElement(unit, i);
    return mlirArrayAttrGet(mlirOperationGetContext(op), count - 1, path);
}

MlirAttribute hec_unit_called(MlirOperation call, MlirStringRef callee) {
    const MlirContext c = mlirOperationGetContext(call);
    const MlirAttribute outer = hec_unit_of(call);
    const int count = mlirAttributeIsNull(outer) ? 0 : (int)mlirArrayAttrGetNumElements(outer);
    MlirAttribute path[DEEPEST + 1];
    if (count > DEEPEST) return outer; // Text may claim anything.
    for (int i = 0; i < count; i++) path[i] = mlirArrayAttrGetElement(outer, i);
    path[count] = mlirFlatSymbolRefAttrGet(c, callee);
    return mlirArrayAttrGet(c, count + 1, path);
}

bool hec_unit_verify(MlirOperation op) {
    const MlirAttribute unit = hec_unit_of(op);
    if (mlirAttributeIsNull(unit)) return true;
    bool sound = mlirAttributeIsAArray(unit) && mlirArrayAttrGetNumElements(unit) > 0 &&
                 mlirArrayAttrGetNumElements(unit) <= DEEPEST;
    for (intptr_t i = 0; sound && i < mlirArrayAttrGetNumElements(unit); i++) {
        sound = mlirAttributeIsAFlatSymbolRef(mlirArrayAttrGetElement(unit, i));
    }
    if (!sound) hec_ir_error(op, "'unit' must be a list of 1 to %d symbols", DEEPEST);
    return sound;
}
