// Cross-entropy, fused with the softmax: scale times the sum of the tokens' losses.
#include "ir/accessors.h"
#include "ir/ops/rule.h"

// logits [tokens.., V], targets [tokens..], a scale; `lse` gets the dimensions of the tokens.
static bool check(MlirOperation op, struct hec_tensor *lse) {
    const struct hec_tensor logits = hec_tensor_at(hec_token_loss_logits(op));
    if (!hec_expect_real(op, "logits", hec_token_loss_logits(op)) ||
        !hec_expect_rank(op, "logits", &logits, 2)) {
        return false;
    }
    *lse = hec_slice(&logits, 0, logits.rank - 1);
    const struct hec_tensor targets = hec_with_element(lse, hec_i32(op));
    const struct hec_tensor scale = hec_scalar(logits.element);
    return hec_expect_ids(op, "logits", logits.size[logits.rank - 1]) &&
           hec_expect(op, "targets", hec_token_loss_targets(op), &targets) &&
           hec_expect(op, "scale", hec_token_loss_scale(op), &scale);
}

static bool infer_cross_entropy(MlirOperation op, MlirType *result) {
    struct hec_tensor lse;
    if (!check(op, &lse)) return false;
    const struct hec_tensor loss = hec_scalar(lse.element);
    result[0] = hec_tensor_type(&loss);
    result[1] = hec_tensor_type(&lse);
    return true;
}

static bool infer_cross_entropy_grad(MlirOperation op, MlirType *result) {
    struct hec_tensor lse;
    if (!check(op, &lse)) return false;
    const struct hec_tensor loss = hec_scalar(lse.element);
    if (!hec_expect(op, "dloss", hec_cross_entropy_grad_dloss(op), &loss) ||
        !hec_expect(op, "lse", hec_cross_entropy_grad_lse(op), &lse)) {
        return false;
    }
    result[0] = mlirValueGetType(hec_cross_entropy_grad_logits(op));
    return true;
}

static void gradient(struct hec_gradient *g, MlirOperation op) {
    const MlirValue logits = hec_cross_entropy_logits(op);
    if (!g->wants(g, logits)) return;
    const MlirValue in[] = {g->of(g, hec_cross_entropy_loss(op), true), g->primal(g, logits),
                            g->primal(g, hec_cross_entropy_lse(op)),
                            g->primal(g, hec_cross_entropy_targets(op)),
                            g->primal(g, hec_cross_entropy_scale(op))};
    hec_rule_add(g, logits, hec_rule_build(g, HEC_OP_cross_entropy_grad, 5, in));
}

// Per logit: subtract the maximum, exponential, add.
static struct hec_cost cost(MlirOperation op) {
    const MlirType logits = mlirValueGetType(hec_cross_entropy_logits(op));
    return (struct hec_cost){.flops = 3 * (double)hec_type_elements(logits),
                             .bytes = hec_io_bytes(op)};
}

static struct hec_cost cost_grad(MlirOperation op) {
    return hec_cost_per_element(op, 3);
}

const struct hec_traits hec_traits_cross_entropy = {
    .pure = true, .infer = infer_cross_entropy, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_cross_entropy_grad = {
    .pure = true, .in_place = 1u << 1, .infer = infer_cross_entropy_grad, .cost = cost_grad};
