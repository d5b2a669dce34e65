// Repairs: copies and aliases that let every value have a home.
#include "ir/accessors.h"
#include "passes/homes/homes.h"

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
    HEC_EACH_OF (op, hec_ops_below(module), HEC_OP_fetch) {
        if (!mlirStringRefEqual(hec_any_slot(op), old)) continue;
        struct hec_builder b = hec_builder_before(op);
        b.at = hec_loc_strip(b.at);
        const MlirValue layer = hec_build_index(&b, repair->home.at);
        b.at = mlirOperationGetLocation(op);
        const MlirValue value = hec_fetch_value(op);
        const MlirNamedAttribute slot = hec_attr_symbol(b.context, "slot", repair->home.symbol);
        const MlirValue fetch =
            hec_build_value(&b, HEC_OP_fetch, 1, &layer, mlirValueGetType(value), 1, &slot);
        mlirValueReplaceAllUsesOfWith(value, fetch);
        mlirOperationDestroy(op);
    }
    mlirOperationDestroy(hec_find_symbol(module, old));
    mlirOperationDestroy(repair->user);
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
