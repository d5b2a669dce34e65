// moe.linear_cross_entropy: cross-entropy of a GEMM's results, of which there is a block of tokens at a time.
#include "ir/ops/head_loss.h"

#include "ir/accessors.h"
#include "ir/core/kernel.h"
#include "ir/ops/rule.h"
#include "ir/target/target.h"

bool hec_is_head_loss(MlirOperation op) {
    if (mlirOperationIsNull(op)) return false;
    const enum hec_op computes = hec_op_computes(op);
    return computes == HEC_OP_linear_cross_entropy || computes == HEC_OP_linear_cross_entropy_grad;
}

struct hec_head hec_head_of(MlirOperation op) {
    const struct hec_tensor x = hec_tensor_at(hec_head_loss_x(op)),
                            w = hec_tensor_at(hec_head_loss_w(op)),
                            targets = hec_tensor_at(hec_head_loss_targets(op));
    const int rows = hec_any_turned(op) ? 1 : x.rank - targets.rank;
    return (struct hec_head){.m = hec_slice(&x, 0, targets.rank),
                             .n = hec_slice(&w, rows, w.rank),
                             .k = hec_slice(&w, 0, rows)};
}

static double product(MlirOperation op) {
    const struct hec_head head = hec_head_of(op);
    const struct hec_tensor *group[] = {&head.m, &head.n, &head.k};
    double flops = 2;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < group[i]->rank; j++) flops *= (double)group[i]->size[j];
    }
    return flops;
}

// The number of gradients: dx, and dw where it is wanted.
static int gradients(MlirOperation op) {
    return hec_call_of(op).results - 1;
}

double hec_head_flops(MlirOperation op) {
    const bool grad = hec_op_computes(op) == HEC_OP_linear_cross_entropy_grad;
    return (grad ? gradients(op) : 1) * product(op);
}

// ---- checks

static bool is_rounded(MlirValue v) {
    return hec_type_is_rounded(mlirValueGetType(v));
}

// The matrix is read rounded exactly where the GEMM rounds. There, where values may be bf16, x, dx and logits are or
// none is.
static bool check_elements(MlirOperation op) {
    const bool rounds = hec_any_rounds(op), kept = is_rounded(hec_head_loss_x(op));
    const bool may = rounds && hec_target_of(op)->bf16_values;
    const bool grad = hec_op_computes(op) == HEC_OP_linear_cross_entropy_grad;
    if (is_rounded(hec_head_loss_w(op)) == rounds && (may || !kept) &&
        is_rounded(hec_head_loss_block(op)) == kept &&
        (!grad || is_rounded(hec_linear_cross_entropy_grad_dx(op)) == kept))
        return true;
    return hec_ir_error(op, rounds ? "with rounds w must be of bf16, and x and logits of one type"
                                   : "operands and results must all be of f32, or of f64");
}

// x [tokens.., K..], w [K.., V] or, turned, [V, K..], targets [tokens..], block [block, V].
static bool check(MlirOperation op, struct hec_tensor *lse) {
    const struct hec_tensor x = hec_tensor_at(hec_head_loss_x(op)),
                            block = hec_tensor_at(hec_head_loss_block(op)),
                            targets = hec_tensor_at(hec_head_loss_targets(op));
    if (!hec_expect_real(op, "x", hec_head_loss_x(op)) ||
        !hec_expect_rank(op, "targets", &targets, 1) ||
        !hec_expect_rank(op, "x", &x, targets.rank + 1))
        return false;
    if (block.rank != 2 || !mlirStringRefEqual(block.dim[0], HEC_STR("block")))
        return hec_ir_error(op, "block is %s, expected [block, V]",
                            hec_type_text(hec_tensor_type(&block)).text);
    const struct hec_tensor rows = hec_vector(x.element, block.dim[0], block.size[0]),
                            words = hec_vector(x.element, block.dim[1], block.size[1]),
                            width = hec_slice(&x, targets.rank, x.rank),
                            logits = hec_join(&rows, &words), scale = hec_scalar(x.element);
    const bool turned = hec_any_turned(op);
    const struct hec_tensor w = turned ? hec_join(&words, &width) : hec_join(&width, &words);
    *lse = hec_slice(&x, 0, targets.rank);
    const struct hec_tensor ids = hec_with_element(lse, hec_i32(op));
    return hec_expect(op, "targets", hec_head_loss_targets(op), &ids) &&
           hec_expect(op, "w", hec_head_loss_w(op), &w) &&
           hec_expect(op, "block", hec_head_loss_block(op), &logits) &&
           hec_expect(op, "scale", hec_head_loss_scale(op), &scale) &&
           hec_expect_ids(op, "block", block.size[1]) && check_elements(op);
}

static bool verify(MlirOperation op) {
    struct hec_tensor lse;
    if (!check(op, &lse)) return false;
    const struct hec_tensor loss = hec_scalar(lse.element);
    return hec_expect(op, "loss", hec_linear_cross_entropy_loss(op), &loss) &&
           hec_expect(op, "lse", hec_linear_cross_entropy_lse(op), &lse);
}

static bool verify_grad(MlirOperation op) {
    struct hec_tensor lse;
    if (!check(op, &lse)) return false;
    const struct hec_tensor x = hec_tensor_at(hec_head_loss_x(op)),
                            w = hec_tensor_at(hec_head_loss_w(op)), dloss = hec_scalar(lse.element);
    const MlirValue dw = hec_linear_cross_entropy_grad_dw(op);
    return hec_expect(op, "dloss", hec_linear_cross_entropy_grad_dloss(op), &dloss) &&
           hec_expect(op, "lse", hec_linear_cross_entropy_grad_lse(op), &lse) &&
           hec_expect(op, "dx", hec_linear_cross_entropy_grad_dx(op), &x) &&
           (mlirValueIsNull(dw) || hec_expect(op, "dw", dw, &w));
}

// ---- gradient and costs

static void gradient(struct hec_gradient *g, MlirOperation op) {
    static const char *const keys[] = {"turned", "rounds", NULL};
    const MlirValue x = hec_linear_cross_entropy_x(op), w = hec_linear_cross_entropy_w(op);
    const MlirValue in[] = {g->of(g, hec_linear_cross_entropy_loss(op), true),
                            g->primal(g, x),
                            g->primal(g, w),
                            g->primal(g, hec_linear_cross_entropy_lse(op)),
                            g->primal(g, hec_linear_cross_entropy_targets(op)),
                            g->primal(g, hec_linear_cross_entropy_scale(op))};
    const MlirType type[] = {mlirValueGetType(x),
                             mlirValueGetType(hec_linear_cross_entropy_block(op)),
                             hec_type_unrounded(mlirValueGetType(w))};
    MlirNamedAttribute attribute[2];
    const int attributes = hec_rule_attributes(op, keys, attribute);
    const bool both = g->wants(g, w);
    if (!both && !g->wants(g, x)) return;
    const MlirOperation grad = hec_build_op(g->builder, HEC_OP_linear_cross_entropy_grad, 6, in,
                                            both ? 3 : 2, type, attributes, attribute);
    hec_rule_add(g, x, hec_result(grad, 0));
    if (both) g->add(g, w, hec_result(grad, 2)); // In f32 where w is read rounded.
}

// `products` of them, and passes over all logits: read or written so often.
static struct hec_cost cost_of(MlirOperation op, int products, double passes) {
    const struct hec_tensor block = hec_tensor_at(hec_head_loss_block(op)),
                            targets = hec_tensor_at(hec_head_loss_targets(op));
    const double logits =
        (double)block.size[1] * (double)hec_type_elements(hec_tensor_type(&targets));
    const MlirType type = mlirValueGetType(hec_head_loss_block(op));
    const double bytes = (double)hec_type_bytes(type) / (double)hec_type_elements(type);
    return (struct hec_cost){.flops = products * product(op) + 3 * logits,
                             .bytes = hec_io_bytes(op) + passes * bytes * logits};
}

static struct hec_cost cost(MlirOperation op) {
    return cost_of(op, 1, 2);
}

static struct hec_cost cost_grad(MlirOperation op) {
    const int wanted = gradients(op);
    return cost_of(op, 1 + wanted, 3 + wanted);
}

const struct hec_traits hec_traits_linear_cross_entropy = {
    .pure = true, .verify = verify, .gradient = gradient, .cost = cost};

const struct hec_traits hec_traits_linear_cross_entropy_grad = {
    .pure = true, .adds = 1u << 0 | 1u << 2, .verify = verify_grad, .cost = cost_grad};
