// The parts of the program for routers.
#include "codegen/host/router.h"

#include <stdlib.h>

#include "codegen/host/back_end.h"
#include "codegen/host/dims.h"
#include "codegen/host/function.h"
#include "codegen/host/rows.h"
#include "codegen/host/symbols.h"
#include "ir/accessors.h"
#include "ir/core/kernel.h"

// Layers of one mixture, or of one call of dropout, are numbered below those of the next.
enum { LAYER_BITS = 16 };

// A router belongs to the set and layer whose loads it counts; one that counts for nobody has no routing.
const char *hec_routing(struct hec_emitter *e, MlirValue loads) {
    const struct hec_home home = hec_value_home(e, loads);
    const MlirOperation set = home.kind == HEC_HOME_SLOT
                                  ? hec_set_of_loads(e, hec_home_symbol(e, &home))
                                  : (MlirOperation){0};
    if (mlirOperationIsNull(set)) return "NULL, NULL";
    const char *place = HEC_TEXT(e, "m->routing.%s%s", hec_member(e, set), hec_home_row(e, &home));
    return HEC_TEXT(e, "%s.forced, %s.record", place, place);
}

const char *hec_layer_number(struct hec_emitter *e, MlirOperation op) {
    const char *layer = hec_layer_text(e, op, 0);
    const int64_t number = hec_any_number(op) << LAYER_BITS;
    return layer ? HEC_TEXT(e, "%" PRId64 " + %s", number, layer) : HEC_TEXT(e, "%" PRId64, number);
}

const char *hec_step_loads(struct hec_emitter *e, MlirOperation op) {
    if (!hec_any_per_step(op)) return "NULL";
    const MlirOperation set = hec_find_symbol(e->module, hec_any_set(op));
    const char *layer = hec_layer_text(e, op, 0);
    return HEC_TEXT(e, "m->step_loads.%s%s", hec_member(e, set),
                    layer ? HEC_TEXT(e, "[%s]", layer) : "");
}

const char *hec_step_iteration(struct hec_emitter *e, MlirOperation op) {
    (void)e;
    return hec_any_per_step(op) ? "m->iteration" : "0";
}

const char *hec_experts_of(struct hec_emitter *e, int64_t experts) {
    const struct hec_ops sets = hec_symbols(e, HEC_OP_set);
    const char *text = NULL;
    for (int i = 0; !text && i < sets.count; i++) {
        if (hec_set_experts(sets.op[i]) == experts) text = hec_experts(e, sets.op[i]);
    }
    free(sets.op);
    return text ? text : HEC_TEXT(e, "%" PRId64, experts);
}

// Groups are of all ranks' sequences.
void hec_emit_fractions(struct hec_emitter *e, MlirOperation op) {
    const MlirValue ids = hec_fractions_ids(op);
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(ids));
    hec_statement(e, "hrt_experts_fractions(%s, %s, %s, %s, %s, %s, %s, %s);", hec_route_key(e, op),
                  hec_ref(e, hec_fractions_fractions(op)), hec_step_loads(e, op), hec_ref(e, ids),
                  hec_product(e, &t, 0, 1), hec_product(e, &t, 1, t.rank - 1),
                  hec_group_tokens(e, op, ids), hec_step_iteration(e, op));
}
