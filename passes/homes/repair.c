// Repairs: copies and aliases that let every value have a home.
#include "ir/accessors.h"
#include "passes/homes/homes.h"
#include "passes/rewrite.h"

#include <stdlib.h>

// %c = moe.copy(%v) before `before`; the user's operand reads %c.
static void insert_copy(const struct hec_repair *repair) {
    const MlirValue value = hec_operand(repair->user, repair->index);
    struct hec_builder b = hec_builder_before(repair->before);
    hec_builder_for_value(&b, value);
    const MlirValue copy =
        hec_build_value(&b, HEC_OP_copy, 1, &value, mlirValueGetType(value), 0, NULL);
    mlirOperationSetOperand(repair->user, repair->index, copy);
}

// The stashed value lies in a row of another slot already: its fetches read that row.
static void read_alias(MlirOperation module, const struct hec_repair *repair) {
    const MlirStringRef old = hec_any_slot(repair->user);
    struct hec_ops ops = hec_ops_below(module);
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_fetch) ||
            !mlirStringRefEqual(hec_any_slot(ops.op[k]), old))
            continue;
        struct hec_builder b = hec_builder_before(ops.op[k]);
        b.at = hec_loc_strip(b.at);
        const MlirValue layer = hec_build_index(&b, repair->home.at);
        b.at = mlirOperationGetLocation(ops.op[k]);
        const MlirValue value = hec_fetch_value(ops.op[k]);
        const MlirNamedAttribute slot = hec_attr_symbol(b.context, "slot", repair->home.symbol);
        const MlirValue fetch =
            hec_build_value(&b, HEC_OP_fetch, 1, &layer, mlirValueGetType(value), 1, &slot);
        mlirValueReplaceAllUsesOfWith(value, fetch);
        mlirOperationDestroy(ops.op[k]);
    }
    free(ops.op);
    mlirOperationDestroy(hec_find_symbol(module, old));
    mlirOperationDestroy(repair->user);
}

// %g; accumulate %g @a; accumulate %g @b  ->  each accumulate gets a %g of its own.
static void separate(MlirOperation accumulate) {
    const MlirValue value = hec_accumulate_value(accumulate);
    const MlirOperation maker = hec_defining(value);
    if (mlirOperationIsNull(maker) || hec_is_used_once(value) ||
        mlirOperationGetNumResults(maker) != 1 || !hec_op_traits(maker)->pure)
        return;
    struct hec_builder b = hec_builder_before(accumulate);
    struct hec_map none = {0};
    mlirOperationSetOperand(accumulate, 0, hec_result(hec_clone_mapped(&b, maker, &none), 0));
    hec_map_free(&none);
}

void hec_homes_separate(MlirOperation module) {
    struct hec_ops ops = hec_ops_below(module);
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_accumulate)) continue;
        const MlirOperation param = hec_find_symbol(module, hec_any_param(ops.op[k]));
        if (!mlirOperationIsNull(param) && hec_param_has_set(param)) separate(ops.op[k]);
    }
    free(ops.op);
}

void hec_homes_repair(struct hec_homes *p) {
    for (int i = 0; i < p->repairs.count; i++) {
        if (p->repairs.item[i].alias) {
            read_alias(p->module, &p->repairs.item[i]);
        } else {
            insert_copy(&p->repairs.item[i]);
        }
    }
}
