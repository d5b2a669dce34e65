// Norms.
#include "codegen/c/ops.h"

// Rows and columns of a tensor that is normalised over its last `over` dimensions.
struct matrix {
    const char *rows, *columns;
};

static struct matrix matrix_of(struct hec_emitter *e, MlirOperation op, MlirValue x) {
    const struct hec_tensor t = hec_tensor_of(mlirValueGetType(x));
    int64_t over = hec_get_int(op, "over");
    if (over < 1 || over > t.rank) {
        hec_emit_fault(e, op, "normalises over %" PRId64 " of %d dimensions", over, t.rank);
        over = 0;
    }
    const int split = t.rank - (int)over;
    return (struct matrix){hec_product(e, &t, 0, split), hec_product(e, &t, split, t.rank)};
}

static const char *operand_or_null(struct hec_emitter *e, MlirOperation op, int index) {
    if (index >= (int)mlirOperationGetNumOperands(op)) return "NULL";
    return hec_ref(e, hec_operand(op, index));
}

static const char *result_or_null(struct hec_emitter *e, MlirOperation op, int index) {
    if (index >= (int)mlirOperationGetNumResults(op)) return "NULL";
    return hec_ref(e, hec_result(op, index));
}

static const char *mode_of(struct hec_emitter *e, MlirOperation op, int index) {
    if (index >= (int)mlirOperationGetNumResults(op)) return "HK_STORE";
    return hec_write_mode(e, op, index);
}

void hec_emit_rmsnorm(struct hec_emitter *e, MlirOperation op) {
    const struct matrix m = matrix_of(e, op, hec_operand(op, 0));
    hec_statement(e, "hk_rmsnorm_%s(%s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, hec_result(op, 1)),
                  hec_ref(e, hec_operand(op, 0)), operand_or_null(e, op, 1), m.rows, m.columns,
                  hec_number(e, hec_get_float(op, "eps")));
}

void hec_emit_rmsnorm_grad(struct hec_emitter *e, MlirOperation op) {
    const struct matrix m = matrix_of(e, op, hec_operand(op, 1));
    hec_statement(e, "hk_rmsnorm_grad_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), result_or_null(e, op, 1),
                  hec_ref(e, hec_operand(op, 0)), hec_ref(e, hec_operand(op, 1)),
                  hec_ref(e, hec_operand(op, 2)), operand_or_null(e, op, 3), m.rows, m.columns,
                  hec_write_mode(e, op, 0), mode_of(e, op, 1));
}

void hec_emit_layernorm(struct hec_emitter *e, MlirOperation op) {
    const struct matrix m = matrix_of(e, op, hec_operand(op, 0));
    hec_statement(e, "hk_layernorm_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s);", e->suffix,
                  hec_ref(e, hec_result(op, 0)), hec_ref(e, hec_result(op, 1)),
                  hec_ref(e, hec_result(op, 2)), hec_ref(e, hec_operand(op, 0)),
                  operand_or_null(e, op, 1), operand_or_null(e, op, 2), m.rows, m.columns,
                  hec_number(e, hec_get_float(op, "eps")));
}

void hec_emit_layernorm_grad(struct hec_emitter *e, MlirOperation op) {
    const struct matrix m = matrix_of(e, op, hec_operand(op, 1));
    const int results = (int)mlirOperationGetNumResults(op);
    if (results == 3 && hec_home_adds(hec_result(op, 1)) != hec_home_adds(hec_result(op, 2))) {
        hec_emit_fault(e, op, "adds to one of dgain and dbias and stores the other");
        return;
    }
    hec_statement(e, "hk_layernorm_grad_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s);",
                  e->suffix, hec_ref(e, hec_result(op, 0)), result_or_null(e, op, 1),
                  result_or_null(e, op, 2), hec_ref(e, hec_operand(op, 0)),
                  hec_ref(e, hec_operand(op, 1)), hec_ref(e, hec_operand(op, 2)),
                  hec_ref(e, hec_operand(op, 3)), operand_or_null(e, op, 4), m.rows, m.columns,
                  hec_write_mode(e, op, 0), mode_of(e, op, 1));
}
