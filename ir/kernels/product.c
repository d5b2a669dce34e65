// GEMMs: which of the three GEMMs a contraction is, told by dimension names.
#include "ir/accessors.h"
#include "ir/kernels/choose.h"
#include "ir/ops/contract.h"
#include "ir/ops/rule.h"

static void add_group(struct hec_choice *choice, const char *name, const struct hec_tensor *group) {
    hec_choice_size(choice, name, group, 0, group->rank);
}

// A contraction in another order is refused where it is made: it would need a transpose.
void hec_choose_contract(MlirOperation op, struct hec_choice *choice) {
    static const char *const kernel[] = {[HEC_CONTRACT_NN] = "matmul_nn",
                                         [HEC_CONTRACT_NT] = "matmul_nt",
                                         [HEC_CONTRACT_TN] = "matmul_tn"};
    struct hec_contract c;
    if (!hec_contract_of(op, &c)) return;
    hec_choice_kernel(choice, kernel[c.form]);
    add_group(choice, "m", &c.m);
    add_group(choice, "n", &c.n);
    add_group(choice, "k", &c.k);
}

static void choose_by_expert(MlirOperation op, const char *const *kernel,
                             const struct hec_contract *c, struct hec_choice *choice) {
    const struct hec_tensor by_expert =
        hec_tensor_at(c->form == HEC_CONTRACT_TN ? hec_product_r(op) : hec_product_b(op));
    hec_choice_kernel(choice, kernel[c->form]);
    hec_choice_size(choice, "experts", &by_expert, 0, 1);
    add_group(choice, "n", &c->n);
    add_group(choice, "k", &c->k);
}

void hec_choose_grouped(MlirOperation op, struct hec_choice *choice) {
    static const char *const kernel[] = {[HEC_CONTRACT_NN] = "grouped_nn",
                                         [HEC_CONTRACT_NT] = "grouped_nt",
                                         [HEC_CONTRACT_TN] = "grouped_tn"};
    struct hec_contract c;
    if (hec_contract_of(op, &c)) choose_by_expert(op, kernel, &c, choice);
}

// In TN either operand may be the gathered one.
void hec_choose_gathered(MlirOperation op, struct hec_choice *choice) {
    const bool a = hec_is_gathered(op, hec_product_a(op));
    const char *const kernel[] = {[HEC_CONTRACT_NN] = "gathered_nn",
                                  [HEC_CONTRACT_NT] = "gathered_nt",
                                  [HEC_CONTRACT_TN] = a ? "gathered_tn_a" : "gathered_tn_c"};
    const struct hec_tensor slot = hec_tensor_at(hec_routed_slot(op));
    struct hec_contract c;
    if (!hec_contract_of(op, &c)) return;
    choose_by_expert(op, kernel, &c, choice);
    hec_choice_size(choice, "picks", &slot, slot.rank - 1, slot.rank);
}

void hec_choose_gated(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor a = hec_rows_at(op, hec_gated_product_a(op)),
                            b = hec_tensor_at(hec_gated_product_b(op)),
                            r = hec_tensor_at(hec_gated_product_gated(op));
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "experts", &b, 0, 1);
    hec_choice_size(choice, "n", &r, 1, r.rank);
    hec_choice_size(choice, "k", &a, 1, a.rank);
    if (hec_op_computes(op) != HEC_OP_gathered_swiglu) return;
    const struct hec_tensor slot = hec_tensor_at(hec_routed_slot(op));
    hec_choice_size(choice, "picks", &slot, slot.rank - 1, slot.rank);
}

static void choose_spread(MlirOperation op, const struct hec_tensor *t, struct hec_choice *choice) {
    hec_choice_own_kernel(choice, op);
    hec_choice_size(choice, "experts", t, 0, 1);
    hec_choice_size(choice, "columns", t, 1, t->rank);
}

void hec_choose_spread(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor a = hec_tensor_at(hec_spread_a(op));
    choose_spread(op, &a, choice);
}

void hec_choose_spread_grad(MlirOperation op, struct hec_choice *choice) {
    const struct hec_tensor da = hec_tensor_at(hec_spread_grad_da(op));
    choose_spread(op, &da, choice);
}
