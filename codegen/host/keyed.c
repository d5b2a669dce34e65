// stash and accumulate: where they write.
#include "codegen/host/keyed.h"

struct hec_home hec_keyed_home(struct hec_emitter *e, MlirOperation op) {
    const bool stash = hec_op_is(op, HEC_OP_stash);
    struct hec_home home = {.kind = stash ? HEC_HOME_SLOT : HEC_HOME_GRAD, .row = -1};
    home.symbol = hec_find_symbol(e->module, hec_get_string(op, stash ? "slot" : "param"));
    if (mlirOperationGetNumOperands(op) > 1) {
        const MlirOperation index = hec_defining(hec_operand(op, 1));
        const bool constant = hec_op_is(index, HEC_OP_CONSTANT);
        home.layered = !constant;
        home.row = constant ? hec_get_int(index, "value") : 0;
    }
    return home;
}

bool hec_is_in_place(struct hec_emitter *e, MlirOperation op) {
    const struct hec_home target = hec_keyed_home(e, op);
    const struct hec_home home = hec_value_home(e, hec_operand(op, 0));
    return home.kind == target.kind && mlirOperationEqual(home.symbol, target.symbol) &&
           home.layered == target.layered && home.row == target.row;
}
