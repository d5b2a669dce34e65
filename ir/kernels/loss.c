// Embedding, cross entropy, and the losses of routers.
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/rule.h"

// A tensor whose last dimension is `columns`, and whose others are `rows`.
static void choose(MlirOperation op, const struct hec_tensor *t, const char *rows,
                   const char *columns, struct hec_choice *choice) {
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, rows, t, 0, t->rank - 1);
    hec_choice_size(choice, columns, t, t->rank - 1, t->rank);
}

static void choose_by(MlirOperation op, int operand, const char *rows, const char *columns,
                      struct hec_choice *choice) {
    const struct hec_tensor t = hec_in(op, operand);
    choose(op, &t, rows, columns, choice);
}

void hec_choose_gather(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor table = hec_in(op, 0), ids = hec_in(op, 1);
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "count", &ids, 0, ids.rank);
    hec_choice_size(choice, "columns", &table, 1, table.rank);
}

void hec_choose_gather_grad(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor table = hec_out(op, 0), ids = hec_in(op, 1);
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "count", &ids, 0, ids.rank);
    hec_choice_size(choice, "rows", &table, 0, 1);
    hec_choice_size(choice, "columns", &table, 1, table.rank);
}

void hec_choose_cross_entropy(MlirOperation op, struct hec_choice *choice) {
    choose_by(op, 0, "rows", "columns", choice);
}

void hec_choose_cross_entropy_grad(MlirOperation op, struct hec_choice *choice) {
    choose_by(op, 1, "rows", "columns", choice);
}

void hec_choose_by_token(MlirOperation op, struct hec_choice *choice) {
    choose_by(op, 0, "tokens", "experts", choice);
}

void hec_choose_by_token_grad(MlirOperation op, struct hec_choice *choice) {
    choose_by(op, 1, "tokens", "experts", choice);
}

void hec_choose_mean_scores(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor scores = hec_tensor_at(hec_scored_scores(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "sequences", &scores, 0, 1);
    hec_choice_size(choice, "tokens", &scores, 1, scores.rank - 1);
    hec_choice_size(choice, "experts", &scores, scores.rank - 1, scores.rank);
}

void hec_choose_aux_loss(MlirOperation op, struct hec_choice *choice) {
    choose_by(op, 0, "sequences", "experts", choice);
}

void hec_choose_aux_loss_grad(MlirOperation op, struct hec_choice *choice) {
    choose_by(op, 1, "sequences", "experts", choice);
}
