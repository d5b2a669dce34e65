// Rows by expert: between [batch, T, D] and [rows, D]; `slot` is [batch, T, picks].
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/rule.h"

static void choose_move(MlirOperation op, const struct hec_tensor *rows,
                        struct hec_choice *choice) {
    const struct hec_tensor slot = hec_tensor_at(hec_routed_slot(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "tokens", &slot, 0, slot.rank - 1);
    hec_choice_size(choice, "picks", &slot, slot.rank - 1, slot.rank);
    hec_choice_size(choice, "columns", rows, 1, rows->rank);
}

void hec_choose_permute(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor rows = hec_tensor_at(hec_permute_rows(op));
    choose_move(op, &rows, choice);
}

void hec_choose_combine(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor rows = hec_tensor_at(hec_combine_rows(op));
    choose_move(op, &rows, choice);
}

static void choose_gate(MlirOperation op, const struct hec_tensor *g, struct hec_choice *choice) {
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "count", g, 0, g->rank);
}

void hec_choose_gate_rows(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor g = hec_tensor_at(hec_gate_rows_g(op));
    choose_gate(op, &g, choice);
}

void hec_choose_gate_rows_grad(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor dg = hec_tensor_at(hec_gate_rows_grad_dg(op));
    choose_gate(op, &dg, choice);
}
