// The router: scores of the experts, the choice of `topk` of them, gate weights, counts.
#include "ir/accessors.h"
#include "ir/ops/rule.h"
#include "lang/program.h"

// The last dimension of `t` is the experts'; the others are the tokens'.
static struct hec_tensor tokens_of(const struct hec_tensor *t) {
    return hec_slice(t, 0, t->rank - 1);
}

static bool check_word(MlirOperation op, const char *key, const char *const *word) {
    const MlirStringRef value = hec_get_string(op, key);
    for (int i = 0; word[i]; i++) {
        if (mlirStringRefEqual(value, HEC_STR(word[i]))) return true;
    }
    return hec_ir_error(op, "%s is \"%.*s\"", key, (int)value.length, value.data);
}

static bool check_score(MlirOperation op) {
    return check_word(op, "score", hec_score_words);
}

static bool check_rule(MlirOperation op, int64_t experts) {
    static const char *const weights[] = {"scores", "renormalized", "softmax_of_topk", NULL};
    if (!check_score(op) || !check_word(op, "weight", weights) || !hec_expect_int(op, "topk", 1) ||
        (hec_any_has_groups(op) && !hec_expect_int(op, "groups", 1)) ||
        (hec_any_has_topk_groups(op) && !hec_expect_int(op, "topk_groups", 1))) {
        return false;
    }
    const int64_t topk = hec_any_topk(op);
    const int64_t groups = hec_any_has_groups(op) ? hec_any_groups(op) : 1;
    const int64_t topk_groups = hec_any_has_topk_groups(op) ? hec_any_topk_groups(op) : 1;
    if (hec_any_has_groups(op) != hec_any_has_topk_groups(op))
        return hec_ir_error(op, "has only one of groups and topk_groups");
    if (experts > HEC_IR_EXPERTS_MAX)
        return hec_ir_error(op, "%" PRId64 " experts are more than %d", experts,
                            HEC_IR_EXPERTS_MAX);
    if (experts % groups != 0)
        return hec_ir_error(op, "%" PRId64 " experts do not divide into %" PRId64 " groups",
                            experts, groups);
    if (topk_groups > groups)
        return hec_ir_error(op, "topk_groups is %" PRId64 " of %" PRId64 " groups", topk_groups,
                            groups);
    if (topk > experts / groups * topk_groups)
        return hec_ir_error(op,
                            "topk is %" PRId64 ", but only %" PRId64 " experts can be chosen from",
                            topk, experts / groups * topk_groups);
    return true;
}

static bool verify_noise(MlirOperation op) {
    const double amount = hec_any_amount(op);
    const struct hec_tensor y = hec_tensor_of(mlirValueGetType(hec_noise_y(op)));
    if (!(amount > 0) || hec_any_number(op) < 0)
        return hec_ir_error(op, "amount is %g, number %" PRId64, amount, hec_any_number(op));
    return hec_expect_real(op, "the result", hec_noise_y(op)) &&
           hec_expect_rank(op, "the result", &y, 3);
}

static bool verify_dropout(MlirOperation op) {
    const double rate = hec_any_rate(op);
    const struct hec_tensor y = hec_tensor_of(mlirValueGetType(hec_dropout_y(op)));
    if (!(rate > 0 && rate < 1) || hec_any_number(op) < 0)
        return hec_ir_error(op, "rate is %g, number %" PRId64, rate, hec_any_number(op));
    return hec_expect_real(op, "the result", hec_dropout_y(op)) &&
           hec_expect_rank(op, "the result", &y, 2);
}

static struct hec_cost cost_noise(MlirOperation op) {
    const double elements = (double)hec_type_elements(mlirValueGetType(hec_result(op, 0)));
    return (struct hec_cost){.flops = 4 * elements, .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_noise = {
    .pure = true, .verify = verify_noise, .cost = cost_noise};

const struct hec_traits hec_traits_dropout = {
    .pure = true, .cheap = true, .verify = verify_dropout, .cost = cost_noise};

static bool infer_router(MlirOperation op, MlirType *result) {
    const struct hec_tensor logits = hec_tensor_at(hec_router_logits(op));
    if (!hec_expect_real(op, "logits", hec_router_logits(op)) ||
        !hec_expect_rank(op, "logits", &logits, 2)) {
        return false;
    }
    static const char *const group_scores[] = {"best", "two_best", NULL};
    const struct hec_tensor experts = hec_slice(&logits, logits.rank - 1, logits.rank);
    if (!check_rule(op, experts.size[0])) return false;
    if (hec_any_has_group_score(op) && !check_word(op, "group_score", group_scores)) {
        return false;
    }
    const MlirValue bias = hec_router_bias(op);
    if (!mlirValueIsNull(bias) && !hec_expect(op, "bias", bias, &experts)) return false;
    struct hec_tensor weights = tokens_of(&logits);
    hec_tensor_append(&weights, HEC_STR("picks"), hec_any_topk(op));
    const struct hec_tensor ids = hec_with_element(&weights, hec_i32(op));
    const struct hec_tensor loads = hec_with_element(&experts, hec_i32(op));
    result[0] = mlirValueGetType(hec_router_logits(op));
    result[1] = hec_tensor_type(&weights);
    result[2] = hec_tensor_type(&ids);
    result[3] = hec_tensor_type(&loads);
    return true;
}

static bool infer_router_grad(MlirOperation op, MlirType *result) {
    const struct hec_tensor scores = hec_tensor_at(hec_router_grad_scores(op));
    if (!hec_expect_real(op, "scores", hec_router_grad_scores(op)) ||
        !hec_expect_rank(op, "scores", &scores, 2) ||
        !check_rule(op, scores.size[scores.rank - 1])) {
        return false;
    }
    struct hec_tensor weights = tokens_of(&scores);
    hec_tensor_append(&weights, HEC_STR("picks"), hec_any_topk(op));
    const struct hec_tensor ids = hec_with_element(&weights, hec_i32(op));
    if (!hec_expect(op, "dweights", hec_router_grad_dweights(op), &weights) ||
        !hec_expect(op, "weights", hec_router_grad_weights(op), &weights) ||
        !hec_expect(op, "ids", hec_router_grad_ids(op), &ids)) {
        return false;
    }
    const MlirValue dscores = hec_router_grad_dscores(op);
    if (!mlirValueIsNull(dscores) && !hec_expect(op, "dscores", dscores, &scores)) return false;
    result[0] = mlirValueGetType(hec_router_grad_scores(op));
    return true;
}

// The choice itself has no gradient, nor has the bias, which only takes part in it. The scores have
// one of their own only where an auxiliary loss reads them.
static void gradient_router(struct hec_gradient *g, MlirOperation op) {
    static const char *const keys[] = {"score",  "weight",      "topk", "scale",
                                       "groups", "topk_groups", NULL};
    const MlirValue logits = hec_router_logits(op);
    if (!g->wants(g, logits)) return;
    const MlirValue dscores = g->of(g, hec_router_scores(op), false);
    MlirNamedAttribute attribute[6];
    const int attributes = hec_rule_attributes(op, keys, attribute);
    const MlirValue in[] = {
        g->of(g, hec_router_weights(op), true), g->primal(g, hec_router_scores(op)),
        g->primal(g, hec_router_weights(op)), g->primal(g, hec_router_ids(op)), dscores};
    const int operands = mlirValueIsNull(dscores) ? 4 : 5;
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_router_grad, operands, in, attributes, attribute);
    hec_rule_add(g, logits, hec_router_grad_dlogits(grad));
}

static struct hec_cost cost(MlirOperation op) {
    return hec_cost_per_element(op, 4);
}

const struct hec_traits hec_traits_router = {
    .pure = true, .infer = infer_router, .gradient = gradient_router, .cost = cost};

static struct hec_cost cost_router_grad(MlirOperation op) {
    return (struct hec_cost){
        .flops = 4 * (double)hec_type_elements(mlirValueGetType(hec_router_grad_dlogits(op))),
        .bytes = hec_io_bytes(op)};
}

const struct hec_traits hec_traits_router_grad = {
    .pure = true, .infer = infer_router_grad, .cost = cost_router_grad};

// ---- losses that balance the experts, one scalar per layer

// [batch, E] for scores [batch, tokens.., E].
static struct hec_tensor of_sequences(const struct hec_tensor *scores) {
    struct hec_tensor t = hec_slice(scores, 0, 1);
    hec_tensor_append(&t, scores->dim[scores->rank - 1], scores->size[scores->rank - 1]);
    return t;
}

bool hec_check_group(MlirOperation op) {
    if (!hec_any_has_group(op) || hec_any_group(op) > 0) return true;
    return hec_ir_error(op, "group is %" PRId64, hec_any_group(op));
}

static bool verify_fractions(MlirOperation op) {
    const MlirStringRef name = hec_any_set(op);
    const MlirOperation set = hec_find_symbol(hec_module_of(op), name);
    if (!hec_op_is(set, HEC_OP_set))
        return hec_ir_error(op, "there is no moe.set @%.*s", (int)name.length, name.data);
    const bool layered = !mlirValueIsNull(hec_fractions_layer(op));
    if (layered != (hec_set_layers(set) > 0))
        return hec_ir_error(op, "the set has %s layers", layered ? "no" : "several");
    struct hec_tensor ids = hec_tensor_at(hec_fractions_ids(op));
    const struct hec_tensor out = hec_tensor_at(hec_fractions_fractions(op));
    if (!hec_expect_rank(op, "ids", &ids, 3) ||
        !hec_expect_real(op, "fractions", hec_fractions_fractions(op)))
        return false;
    const struct hec_tensor lead = hec_slice(&ids, 0, 1), batch = hec_slice(&out, 0, 1);
    if (ids.size[ids.rank - 1] != hec_set_topk(set) || !mlirTypeEqual(ids.element, hec_i32(op)))
        return hec_ir_error(op, "ids is %s, expected the set's top-k choices",
                            hec_type_text(hec_tensor_type(&ids)).text);
    if (out.rank != 2 || !hec_same_dims(&lead, &batch) || out.size[1] != hec_set_experts(set))
        return hec_ir_error(op, "fractions is %s, expected one of each expert for each sequence",
                            hec_type_text(hec_tensor_type(&out)).text);
    return hec_check_group(op);
}

// Not pure: it may count a step.
const struct hec_traits hec_traits_fractions = {.verify = verify_fractions};

static bool check_scores(MlirOperation op) {
    const struct hec_tensor scores = hec_tensor_at(hec_scored_scores(op));
    return hec_expect_real(op, "scores", hec_scored_scores(op)) &&
           hec_expect_rank(op, "scores", &scores, 3) && check_score(op);
}

static bool infer_mean_scores(MlirOperation op, MlirType *result) {
    if (!check_scores(op)) return false;
    const struct hec_tensor scores = hec_tensor_at(hec_mean_scores_scores(op)),
                            means = of_sequences(&scores);
    result[0] = hec_tensor_type(&means);
    return true;
}

static bool infer_mean_scores_grad(MlirOperation op, MlirType *result) {
    if (!check_scores(op)) return false;
    const struct hec_tensor scores = hec_tensor_at(hec_mean_scores_grad_scores(op)),
                            means = of_sequences(&scores);
    result[0] = mlirValueGetType(hec_mean_scores_grad_scores(op));
    return hec_expect(op, "dmeans", hec_mean_scores_grad_dmeans(op), &means);
}

static void gradient_mean_scores(struct hec_gradient *g, MlirOperation op) {
    static const char *const keys[] = {"score", NULL};
    const MlirValue scores = hec_mean_scores_scores(op);
    if (!g->wants(g, scores)) return;
    MlirNamedAttribute attribute[1];
    const int attributes = hec_rule_attributes(op, keys, attribute);
    const MlirValue in[] = {g->of(g, hec_mean_scores_means(op), true), g->primal(g, scores)};
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_mean_scores_grad, 2, in, attributes, attribute);
    hec_rule_add(g, scores, hec_mean_scores_grad_dscores(grad));
}

static struct hec_cost cost_loss(MlirOperation op) {
    return hec_cost_per_element(op, 2);
}

const struct hec_traits hec_traits_mean_scores = {
    .pure = true, .infer = infer_mean_scores, .gradient = gradient_mean_scores, .cost = cost_loss};

const struct hec_traits hec_traits_mean_scores_grad = {
    .pure = true, .infer = infer_mean_scores_grad, .cost = cost_loss};

static MlirType scalar_like(MlirValue v) {
    const struct hec_tensor t = hec_tensor_at(v);
    const struct hec_tensor loss = hec_scalar(t.element);
    return hec_tensor_type(&loss);
}

static bool infer_aux_loss(MlirOperation op, MlirType *result) {
    const struct hec_tensor means = hec_tensor_at(hec_aux_loss_means(op));
    if (!hec_expect_real(op, "means", hec_aux_loss_means(op)) ||
        !hec_expect_rank(op, "means", &means, 2) ||
        !hec_expect(op, "fractions", hec_aux_loss_fractions(op), &means)) {
        return false;
    }
    result[0] = scalar_like(hec_aux_loss_means(op));
    return true;
}

static bool check_dloss(MlirOperation op, const struct hec_tensor *like) {
    const struct hec_tensor loss = hec_scalar(like->element);
    return hec_expect(op, "dloss", hec_router_loss_grad_dloss(op), &loss);
}

static bool infer_aux_loss_grad(MlirOperation op, MlirType *result) {
    const struct hec_tensor fractions = hec_tensor_at(hec_aux_loss_grad_fractions(op));
    if (!hec_expect_real(op, "fractions", hec_aux_loss_grad_fractions(op)) ||
        !hec_expect_rank(op, "fractions", &fractions, 2) || !check_dloss(op, &fractions)) {
        return false;
    }
    result[0] = mlirValueGetType(hec_aux_loss_grad_fractions(op));
    return true;
}

// Fractions are constants to the derivative.
static void gradient_aux_loss(struct hec_gradient *g, MlirOperation op) {
    const MlirValue means = hec_aux_loss_means(op);
    if (!g->wants(g, means)) return;
    const MlirNamedAttribute coef = hec_attr_float(g->builder->context, "coef", hec_any_coef(op));
    const MlirValue in[] = {g->of(g, hec_aux_loss_loss(op), true),
                            g->primal(g, hec_aux_loss_fractions(op))};
    const MlirOperation grad =
        hec_build_inferred(g->builder, HEC_OP_aux_loss_grad, 2, in, 1, &coef);
    hec_rule_add(g, means, hec_aux_loss_grad_dmeans(grad));
}

const struct hec_traits hec_traits_aux_loss = {
    .pure = true, .infer = infer_aux_loss, .gradient = gradient_aux_loss, .cost = cost_loss};

const struct hec_traits hec_traits_aux_loss_grad = {
    .pure = true, .infer = infer_aux_loss_grad, .cost = cost_loss};

static bool infer_z_loss(MlirOperation op, MlirType *result) {
    const struct hec_tensor logits = hec_tensor_at(hec_z_loss_logits(op));
    if (!hec_expect_real(op, "logits", hec_z_loss_logits(op)) ||
        !hec_expect_rank(op, "logits", &logits, 2)) {
        return false;
    }
    result[0] = scalar_like(hec_z_loss_logits(op));
    return true;
}

static bool infer_z_loss_grad(MlirOperation op, MlirType *result) {
    const struct hec_tensor logits = hec_tensor_at(hec_z_loss_grad_logits(op));
    if (!hec_expect_real(op, "logits", hec_z_loss_grad_logits(op)) ||
        !hec_expect_rank(op, "logits", &logits, 2) || !check_dloss(op, &logits)) {
        return false;
    }
    result[0] = mlirValueGetType(hec_z_loss_grad_logits(op));
    return true;
}

static void gradient_z_loss(struct hec_gradient *g, MlirOperation op) {
    const MlirValue logits = hec_z_loss_logits(op);
    if (!g->wants(g, logits)) return;
    const MlirNamedAttribute coef = hec_attr_float(g->builder->context, "coef", hec_any_coef(op));
    const MlirValue in[] = {g->of(g, hec_z_loss_loss(op), true), g->primal(g, logits)};
    const MlirOperation grad = hec_build_inferred(g->builder, HEC_OP_z_loss_grad, 2, in, 1, &coef);
    hec_rule_add(g, logits, hec_z_loss_grad_dlogits(grad));
}

const struct hec_traits hec_traits_z_loss = {
    .pure = true, .infer = infer_z_loss, .gradient = gradient_z_loss, .cost = cost_loss};

const struct hec_traits hec_traits_z_loss_grad = {
    .pure = true, .adds = 1, .infer = infer_z_loss_grad, .cost = cost_loss};
