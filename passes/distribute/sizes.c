#include "passes/distribute/sizes.h"

#include "ir/accessors.h"
#include "ir/core/setting.h"

enum { RANK_ROOM = 64 };

// ---- losses

void hec_divide_losses(MlirOperation module, double world) {
    HEC_EACH (op, hec_ops_below(module)) {
        const enum hec_op id = hec_op_of(op);
        if (id != HEC_OP_z_loss && id != HEC_OP_z_loss_grad && id != HEC_OP_aux_loss &&
            id != HEC_OP_aux_loss_grad)
            continue;
        const double coef = hec_any_coef(op) / world;
        hec_set_attr(op, hec_attr_float(mlirOperationGetContext(module), "coef", coef));
    }
}

// ---- room for the rows of a wave

// `most` 0: as many as five quarters of the rank's own rows, up to the next RANK_ROOM. All ranks' rows are enough.
static MlirType resized(MlirType type, int64_t most, int64_t world) {
    if (!mlirTypeIsARankedTensor(type)) return type;
    struct hec_tensor t = hec_tensor_of(type);
    const int at = hec_tensor_find(&t, HEC_STR("rows"));
    if (at < 0) return type;
    const int64_t wanted = (5 * t.size[at] + 3) / 4;
    const int64_t all = world * t.size[at];
    const int64_t room = most ? most : (wanted + RANK_ROOM - 1) / RANK_ROOM * RANK_ROOM;
    t.size[at] = most > all ? all : room;
    return hec_tensor_type(&t);
}

void hec_resize_rows(MlirOperation module) {
    const MlirContext c = mlirOperationGetContext(module);
    const int64_t most = hec_setting_count(module, HEC_KEY_parallel_rows_max, 0);
    const int64_t world = hec_module_world(module);
    HEC_EACH (op, hec_ops_below(module)) {
        for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
            const MlirValue v = hec_result(op, i);
            mlirValueSetType(v, resized(mlirValueGetType(v), most, world));
            const bool sends = i == 0 && hec_op_is(op, HEC_OP_dispatch);
            if (!sends) continue;
            const MlirOperation set = hec_find_symbol(module, hec_any_set(op));
            const int64_t rows = hec_tensor_of(mlirValueGetType(v)).size[0];
            hec_set_put_owned(set, true);
            hec_set_put_wave_rows(set, rows);
        }
        if (!hec_op_is(op, HEC_OP_slot)) continue;
        const MlirType type = hec_any_type(op);
        hec_set_attr(op, hec_attr_type(c, "type", resized(type, most, world)));
    }
}
