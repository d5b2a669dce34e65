// accumulate: where it adds.
#include "codegen/host/gradient.h"

#include "ir/accessors.h"

struct hec_home hec_gradient_home(MlirOperation accumulate) {
    struct hec_home home = {.kind = HEC_HOME_GRAD, .symbol = hec_any_param(accumulate)};
    const MlirValue layer = hec_layer_of(accumulate);
    if (mlirValueIsNull(layer)) return home;
    home.row = HEC_ROW_LAYER;
    if (!hec_op_is(hec_defining(layer), HEC_OP_CONSTANT)) return home;
    home.row = HEC_ROW_FIXED;
    home.at = hec_get_int(hec_defining(layer), "value");
    return home;
}

bool hec_is_in_place(struct hec_emitter *e, MlirOperation accumulate) {
    const struct hec_home home = hec_value_home(e, hec_accumulate_value(accumulate));
    const struct hec_home target = hec_gradient_home(accumulate);
    return hec_home_equal(&home, &target);
}
