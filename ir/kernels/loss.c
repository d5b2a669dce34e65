// Embedding, cross entropy, and the losses of routers.
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/head_loss.h"
#include "ir/ops/rule.h"

// By a tensor whose last dimension is `columns`, and whose others are `rows`.
static void choose(MlirOperation op, MlirValue v, const char *rows, const char *columns,
                   struct hec_choice *choice) {
    const struct hec_tensor t = hec_tensor_at(v);
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, rows, &t, 0, t.rank - 1);
    hec_choice_size(choice, columns, &t, t.rank - 1, t.rank);
}

void hec_choose_gather(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor table = hec_tensor_at(hec_gather_table(op)),
                            ids = hec_tensor_at(hec_gather_ids(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "count", &ids, 0, ids.rank);
    hec_choice_size(choice, "columns", &table, 1, table.rank);
}

void hec_choose_gather_grad(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor table = hec_tensor_at(hec_gather_grad_dtable(op)),
                            ids = hec_tensor_at(hec_gather_grad_ids(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "count", &ids, 0, ids.rank);
    hec_choice_size(choice, "rows", &table, 0, 1);
    hec_choice_size(choice, "columns", &table, 1, table.rank);
}

void hec_choose_ahead(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor ids = hec_tensor_at(hec_ahead_ids(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "batch", &ids, 0, 1);
    hec_choice_size(choice, "positions", &ids, 1, 2);
}

void hec_choose_cross_entropy(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_token_loss_logits(op), "rows", "columns", choice);
}

void hec_choose_cross_entropy_grad(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_token_loss_logits(op), "rows", "columns", choice);
}

void hec_choose_distill(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_teacher_loss_logits(op), "rows", "columns", choice);
}

void hec_choose_distill_grad(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_teacher_loss_logits(op), "rows", "columns", choice);
}

void hec_choose_dpo(MlirOperation op, struct hec_choice *choice) {
    const MlirValue logits = hec_token_loss_logits(op);
    const struct hec_tensor t = hec_tensor_at(logits);
    choose(op, logits, "rows", "columns", choice);
    hec_choice_size(choice, "positions", &t, t.rank - 2, t.rank - 1);
}

void hec_choose_policy_loss(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_token_loss_logits(op), "rows", "columns", choice);
}

void hec_choose_policy_grad(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_token_loss_logits(op), "rows", "columns", choice);
}

void hec_choose_head_loss(MlirOperation op, struct hec_choice *choice) {
    const struct hec_head head = hec_head_of(op);
    const struct hec_tensor block = hec_tensor_at(hec_head_loss_block(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "m", &head.m, 0, head.m.rank);
    hec_choice_size(choice, "n", &head.n, 0, head.n.rank);
    hec_choice_size(choice, "k", &head.k, 0, head.k.rank);
    hec_choice_size(choice, "block", &block, 0, 1);
}

void hec_choose_by_token(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_z_loss_logits(op), "tokens", "experts", choice);
}

void hec_choose_by_token_grad(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_z_loss_grad_logits(op), "tokens", "experts", choice);
}

void hec_choose_mean_scores(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor scores = hec_tensor_at(hec_scored_scores(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "sequences", &scores, 0, 1);
    hec_choice_size(choice, "tokens", &scores, 1, scores.rank - 1);
    hec_choice_size(choice, "experts", &scores, scores.rank - 1, scores.rank);
}

void hec_choose_aux_loss(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_aux_loss_means(op), "sequences", "experts", choice);
}

void hec_choose_aux_loss_grad(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_aux_loss_grad_fractions(op), "sequences", "experts", choice);
}
