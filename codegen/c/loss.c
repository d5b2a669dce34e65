// Embedding and loss.
#include "codegen/c/ops.h"

void hec_emit_gather(struct hec_emitter *e, MlirOperation op) {
    const struct hec_tensor table = hec_tensor_of(mlirValueGetType(hec_operand(op, 0)));
    hec_statement(e, "hk_gather_%s(%s, %s, %s, %s, %s);", e->suffix, hec_ref(e, hec_result(op, 0)),
                  hec_ref(e, hec_operand(op, 0)), hec_ref(e, hec_operand(op, 1)),
                  hec_elements(e, mlirValueGetType(hec_operand(op, 1))),
                  hec_product(e, &table, 1, table.rank));
}

void hec_emit_gather_grad(struct hec_emitter *e, MlirOperation op) {
    const struct hec_tensor table = hec_tensor_of(mlirValueGetType(hec_result(op, 0)));
    hec_statement(e, "hk_gather_grad_%s(%s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, hec_operand(op, 0)),
                  hec_ref(e, hec_operand(op, 1)),
                  hec_elements(e, mlirValueGetType(hec_operand(op, 1))),
                  hec_product(e, &table, 0, 1), hec_product(e, &table, 1, table.rank),
                  hec_write_mode(e, op, 0));
}

void hec_emit_cross_entropy(struct hec_emitter *e, MlirOperation op) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(hec_operand(op, 0)));
    hec_statement(e, "hk_cross_entropy_%s(%s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, hec_result(op, 1)),
                  hec_ref(e, hec_operand(op, 0)), hec_ref(e, hec_operand(op, 1)),
                  hec_ref(e, hec_operand(op, 2)), hec_product(e, &t, 0, t.rank - 1),
                  hec_product(e, &t, t.rank - 1, t.rank));
}

void hec_emit_cross_entropy_grad(struct hec_emitter *e, MlirOperation op) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(hec_operand(op, 1)));
    hec_statement(e, "hk_cross_entropy_grad_%s(%s, %s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, hec_operand(op, 0)),
                  hec_ref(e, hec_operand(op, 1)), hec_ref(e, hec_operand(op, 2)),
                  hec_ref(e, hec_operand(op, 3)), hec_ref(e, hec_operand(op, 4)),
                  hec_product(e, &t, 0, t.rank - 1), hec_product(e, &t, t.rank - 1, t.rank));
}
