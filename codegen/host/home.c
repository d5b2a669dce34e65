// Where values live, for the emitter.
#include "codegen/host/home.h"

struct hec_home hec_value_home(struct hec_emitter *e, MlirValue value) {
    struct hec_home home;
    if (hec_home_of(value, &home)) return home;
    const bool result = mlirValueIsAOpResult(value);
    const MlirOperation holder =
        result ? hec_defining(value)
               : mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value));
    hec_emit_fault(
        e, holder, "has no home for value %d: run place-buffers first",
        (int)(result ? mlirOpResultGetResultNumber(value) : mlirBlockArgumentGetArgNumber(value)));
    return home;
}

MlirOperation hec_home_symbol(struct hec_emitter *e, const struct hec_home *home) {
    if (!home->symbol.length) return (MlirOperation){0};
    return hec_find_symbol(e->module, home->symbol);
}
