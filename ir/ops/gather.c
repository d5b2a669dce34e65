// moe.gather: rows of a table by index; moe.gather_grad adds up what each row received. moe.ahead: tokens further on.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

static bool check_ids(MlirOperation op) {
    const struct hec_tensor ids = hec_tensor_at(hec_rows_by_id_ids(op));
    const struct hec_tensor want = hec_with_element(&ids, hec_i32(op));
    return hec_expect(op, "ids", hec_rows_by_id_ids(op), &want);
}

static bool infer_gather(MlirOperation op, MlirType *result) {
    const struct hec_tensor table = hec_tensor_at(hec_gather_table(op)),
                            ids = hec_tensor_at(hec_gather_ids(op));
    if (!hec_expect_real(op, "table", hec_gather_table(op)) ||
        !hec_expect_rank(op, "table", &table, 1) || !check_ids(op) ||
        !hec_expect_ids(op, "table", table.size[0])) {
        return false;
    }
    if (ids.rank + table.rank - 1 > HEC_IR_RANK_MAX)
        return hec_ir_error(op, "the result has more than %d dimensions", HEC_IR_RANK_MAX);
    const struct hec_tensor row = hec_slice(&table, 1, table.rank);
    struct hec_tensor r = hec_join(&ids, &row);
    r.element = table.element;
    result[0] = hec_tensor_type(&r);
    return true;
}

static void gradient_gather(struct hec_gradient *g, MlirOperation op) {
    const MlirValue table = hec_gather_table(op);
    if (!g->wants(g, table)) return;
    const MlirValue in[] = {g->of(g, hec_gather_r(op), true), g->primal(g, hec_gather_ids(op))};
    const MlirType type = mlirValueGetType(table);
    g->add(g, table, hec_build_value(g->builder, HEC_OP_gather_grad, 2, in, type, 0, NULL));
}

// The rows read and written, not the table.
static struct hec_cost cost_gather(MlirOperation op) {
    const double rows = (double)hec_type_bytes(mlirValueGetType(hec_gather_r(op)));
    return (struct hec_cost){.bytes = 2 * rows};
}

static bool verify_gather_grad(MlirOperation op) {
    const struct hec_tensor ids = hec_tensor_at(hec_gather_grad_ids(op)),
                            table = hec_tensor_at(hec_gather_grad_dtable(op));
    if (!hec_expect_real(op, "dtable", hec_gather_grad_dtable(op)) ||
        !hec_expect_rank(op, "dtable", &table, 1) || !check_ids(op) ||
        !hec_expect_ids(op, "dtable", table.size[0])) {
        return false;
    }
    if (ids.rank + table.rank - 1 > HEC_IR_RANK_MAX)
        return hec_ir_error(op, "dr has more than %d dimensions", HEC_IR_RANK_MAX);
    const struct hec_tensor row = hec_slice(&table, 1, table.rank);
    struct hec_tensor dr = hec_join(&ids, &row);
    dr.element = table.element;
    return hec_expect(op, "dr", hec_gather_grad_dr(op), &dr);
}

static struct hec_cost cost_gather_grad(MlirOperation op) {
    const MlirType rows = mlirValueGetType(hec_gather_grad_dr(op));
    return (struct hec_cost){.flops = (double)hec_type_elements(rows),
                             .bytes = 3 * (double)hec_type_bytes(rows)};
}

static bool infer_ahead(MlirOperation op, MlirType *result) {
    const MlirValue targets = hec_ahead_targets(op);
    const struct hec_tensor t = hec_tensor_at(targets);
    const struct hec_tensor want = hec_with_element(&t, hec_i32(op));
    if (!hec_expect(op, "targets", targets, &want)) return false;
    if (t.rank != 2 || hec_any_by(op) < 0)
        return hec_ir_error(op, "moves tokens [batch, T] by a number of positions, at least 0");
    result[0] = mlirValueGetType(targets);
    return true;
}

const struct hec_traits hec_traits_ahead = {.pure = true, .infer = infer_ahead};

const struct hec_traits hec_traits_gather = {
    .pure = true, .infer = infer_gather, .gradient = gradient_gather, .cost = cost_gather};

const struct hec_traits hec_traits_gather_grad = {
    .pure = true, .adds = 1, .verify = verify_gather_grad, .cost = cost_gather_grad};
