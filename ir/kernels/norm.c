// Sums over rows or columns, norms, softmax.
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/rule.h"

static void add_matrix(struct hec_choice *choice, const struct hec_tensor *t, int split) {
    hec_choice_size(choice, "rows", t, 0, split);
    hec_choice_size(choice, "columns", t, split, t->rank);
}

// Over the trailing or the leading dimensions; any other sum is a loop.
void hec_choose_sum(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor a = hec_tensor_at(hec_sum_a(op)), r = hec_tensor_at(hec_sum_r(op));
    if (r.rank > a.rank) return;
    const struct hec_tensor front = hec_slice(&a, 0, r.rank);
    const struct hec_tensor back = hec_slice(&a, a.rank - r.rank, a.rank);
    if (hec_same_dims(&front, &r)) {
        hec_choice_kernel(choice, "sum_columns");
        add_matrix(choice, &a, r.rank);
    } else if (hec_same_dims(&back, &r)) {
        hec_choice_kernel(choice, "sum_rows");
        add_matrix(choice, &a, a.rank - r.rank);
    }
}

static void choose(MlirOperation op, MlirValue x, struct hec_choice *choice) {
    const struct hec_tensor t = hec_tensor_at(x);
    hec_choice_own_kernel(choice, op);
    add_matrix(choice, &t, t.rank - (int)hec_any_over(op));
}

void hec_choose_norm(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_norm_x(op), choice);
}

void hec_choose_norm_grad(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_norm_grad_x(op), choice);
}

void hec_choose_softmax(MlirOperation op, struct hec_choice *choice) {
    choose(op, hec_result(op, 0), choice);
}
