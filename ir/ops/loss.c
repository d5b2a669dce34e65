// Cross-entropy, fused with the softmax: scale times the sum of the tokens' losses. With targets, or with teacher
// entries.
#include <math.h>

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

// ---- distill

static bool check_teacher_loss(MlirOperation op, struct hec_tensor *lse) {
    const MlirValue logits = hec_teacher_loss_logits(op);
    const struct hec_tensor of = hec_tensor_at(logits);
    if (!hec_expect_real(op, "logits", logits) || !hec_expect_rank(op, "logits", &of, 2))
        return false;
    *lse = hec_slice(&of, 0, of.rank - 1);
    const struct hec_tensor scale = hec_scalar(of.element);
    if (!hec_expect_ids(op, "logits", of.size[of.rank - 1]) ||
        !hec_expect(op, "scale", hec_teacher_loss_scale(op), &scale))
        return false;
    const double temperature = hec_get_float(op, "temperature");
    if (isfinite(temperature) && temperature > 0) return true;
    return hec_ir_error(op, "temperature is %g, expected a positive number", temperature);
}

static bool infer_distill(MlirOperation op, MlirType *result) {
    struct hec_tensor lse;
    if (!check_teacher_loss(op, &lse)) return false;
    const struct hec_tensor loss = hec_scalar(lse.element);
    result[0] = hec_tensor_type(&loss);
    result[1] = result[2] = hec_tensor_type(&lse);
    return true;
}

static bool infer_distill_grad(MlirOperation op, MlirType *result) {
    struct hec_tensor lse;
    if (!check_teacher_loss(op, &lse)) return false;
    const struct hec_tensor loss = hec_scalar(lse.element);
    if (!hec_expect(op, "dloss", hec_distill_grad_dloss(op), &loss) ||
        !hec_expect(op, "lse", hec_distill_grad_lse(op), &lse))
        return false;
    result[0] = mlirValueGetType(hec_distill_grad_logits(op));
    return true;
}

static void gradient_of_distill(struct hec_gradient *g, MlirOperation op) {
    static const char *const keys[] = {"temperature", NULL};
    const MlirValue logits = hec_distill_logits(op);
    if (!g->wants(g, logits)) return;
    MlirNamedAttribute temperature;
    const int attributes = hec_rule_attributes(op, keys, &temperature);
    const MlirValue in[] = {g->of(g, hec_distill_loss(op), true), g->primal(g, logits),
                            g->primal(g, hec_distill_lse(op)), g->primal(g, hec_distill_scale(op))};
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_distill_grad, 4, in, attributes, &temperature);
    hec_rule_add(g, logits, hec_result(grad, 0));
}

static struct hec_cost cost_of_distill(MlirOperation op) {
    const MlirType logits = mlirValueGetType(hec_distill_logits(op));
    return (struct hec_cost){.flops = 3 * (double)hec_type_elements(logits),
                             .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_distill = {
    .pure = true, .infer = infer_distill, .gradient = gradient_of_distill, .cost = cost_of_distill};

const struct hec_traits hec_traits_distill_grad = {
    .pure = true, .in_place = 1u << 1, .infer = infer_distill_grad, .cost = cost_grad};

// ---- losses of a policy

static bool infer_policy_loss(MlirOperation op, MlirType *result) {
    struct hec_tensor lse;
    if (!check(op, &lse)) return false;
    const struct hec_tensor loss = hec_scalar(lse.element);
    result[0] = hec_tensor_type(&loss);
    result[1] = result[2] = hec_tensor_type(&lse);
    return true;
}

static bool infer_dpo(MlirOperation op, MlirType *result) {
    if (!infer_policy_loss(op, result)) return false;
    const struct hec_tensor lse = hec_tensor_of(result[1]);
    const double beta = hec_get_float(op, "beta");
    if (lse.rank != 2)
        return hec_ir_error(op, "logits have %d dimensions, expected sequences, positions, words",
                            lse.rank + 1);
    return (isfinite(beta) && beta > 0) ||
           hec_ir_error(op, "beta is %g, expected a positive number", beta);
}

static bool infer_policy(MlirOperation op, MlirType *result) {
    const double clip = hec_get_float(op, "clip"), kl = hec_get_float(op, "kl");
    if (!(clip >= 0 && kl >= 0 && isfinite(clip) && isfinite(kl)))
        return hec_ir_error(op, "clip is %g and kl %g, expected numbers of at least 0", clip, kl);
    return infer_policy_loss(op, result);
}

static bool infer_policy_grad(MlirOperation op, MlirType *result) {
    struct hec_tensor lse;
    if (!check(op, &lse)) return false;
    const struct hec_tensor loss = hec_scalar(lse.element);
    if (!hec_expect(op, "dloss", hec_policy_grad_dloss(op), &loss) ||
        !hec_expect(op, "slopes", hec_policy_grad_slopes(op), &lse) ||
        !hec_expect(op, "lse", hec_policy_grad_lse(op), &lse))
        return false;
    result[0] = mlirValueGetType(hec_policy_grad_logits(op));
    return true;
}

static void gradient_of_policy(struct hec_gradient *g, MlirOperation op) {
    const MlirValue logits = hec_policy_loss_logits(op);
    if (!g->wants(g, logits)) return;
    const MlirValue in[] = {
        g->of(g, hec_policy_loss_loss(op), true),  g->primal(g, logits),
        g->primal(g, hec_policy_loss_slopes(op)),  g->primal(g, hec_policy_loss_lse(op)),
        g->primal(g, hec_policy_loss_targets(op)), g->primal(g, hec_policy_loss_scale(op))};
    hec_rule_add(g, logits, hec_rule_build(g, HEC_OP_policy_grad, 6, in));
}

static struct hec_cost cost_of_policy(MlirOperation op) {
    const MlirType logits = mlirValueGetType(hec_policy_loss_logits(op));
    return (struct hec_cost){.flops = 3 * (double)hec_type_elements(logits),
                             .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_dpo = {
    .pure = true, .infer = infer_dpo, .gradient = gradient_of_policy, .cost = cost_of_policy};

const struct hec_traits hec_traits_policy = {
    .pure = true, .infer = infer_policy, .gradient = gradient_of_policy, .cost = cost_of_policy};

const struct hec_traits hec_traits_policy_grad = {
    .pure = true, .in_place = 1u << 1, .infer = infer_policy_grad, .cost = cost_grad};
