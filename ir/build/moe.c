// One layer of a mixture of experts: router, losses that balance it, experts, shared expert.
#include "ir/build/moe.h"

#include "ir/accessors.h"
#include "ir/build/body.h"
#include "ir/build/function.h"
#include "ir/build/sums.h"
#include "ir/build/value.h"

static MlirNamedAttribute score_of(MlirContext c, const struct hec_moe *moe) {
    return hec_attr_string(c, "score", hec_score_words[moe->score]);
}

static MlirOperation build_router(struct hec_scope *scope, const struct hec_moe *moe,
                                  MlirValue logits) {
    static const char *const weight[] = {
        [HEC_WEIGHT_SCORES] = "scores",
        [HEC_WEIGHT_RENORMALIZED] = "renormalized",
        [HEC_WEIGHT_SOFTMAX_OF_TOPK] = "softmax_of_topk",
    };
    const MlirContext c = scope->build->context;
    const bool grouped = moe->groups > 1;
    const MlirNamedAttribute rule[] = {
        score_of(c, moe),
        hec_attr_string(c, "weight", weight[moe->weight]),
        hec_attr_int(c, "topk", moe->topk),
        hec_attr_float(c, "scale", moe->scale),
        hec_attr_int(c, "groups", moe->groups),
        hec_attr_int(c, "topk_groups", moe->topk_groups),
        hec_attr_string(c, "group_score", moe->group_score == HEC_GROUP_BEST ? "best" : "two_best"),
    };
    // Said only where it is not what goes with the score.
    const bool two = moe->score != HEC_SCORE_SOFTMAX;
    const bool said = (moe->group_score == HEC_GROUP_TWO_BEST) != two;
    const int attributes = !grouped ? 4 : said ? 7 : 6;
    MlirValue in[2] = {logits};
    if (moe->select_bias) {
        hec_build_at(scope, moe->select_bias->at, moe->select_bias->name);
        in[1] = hec_build_get(scope, moe->select_bias);
    }
    hec_build_at(scope, moe->at, NULL);
    const MlirOperation router = hec_build_inferred(&scope->b, HEC_OP_router,
                                                    moe->select_bias ? 2 : 1, in, attributes, rule);
    if (mlirOperationIsNull(router)) scope->build->failed = true;
    return router;
}

// The counts of this layer, kept for the runtime.
static void keep_loads(struct hec_scope *scope, const struct hec_moe *moe, MlirValue loads) {
    const struct hec_build *build = scope->build;
    const MlirOperation slot = {(void *)hec_map_get(&build->loads, moe)};
    const MlirNamedAttribute name =
        hec_attr_symbol(build->context, "slot", hec_slot_sym_name(slot));
    const MlirValue in[] = {loads, scope->layer};
    hec_build_op(&scope->b, HEC_OP_stash, moe->layers > 0 ? 2 : 1, in, 0, NULL, 1, &name);
}

// Appends the attribute `group`, unless all sequences of an iteration are one.
static int add_group(const struct hec_build *build, int attributes, MlirNamedAttribute *attribute) {
    if (build->group) attribute[attributes++] = hec_attr_int(build->context, "group", build->group);
    return attributes;
}

// The experts' fractions of the top-k choices, which the auxiliary loss weighs mean scores with.
static MlirValue build_fractions(struct hec_scope *scope, const struct hec_moe *moe,
                                 MlirOperation router, MlirType type) {
    const struct hec_build *build = scope->build;
    const MlirContext c = build->context;
    const MlirOperation set = {(void *)hec_map_get(&build->symbol, moe)};
    MlirNamedAttribute attribute[3] = {hec_attr_symbol(c, "set", hec_set_sym_name(set))};
    int attributes = 1;
    if (moe->aux_per == HEC_AUX_SEQUENCE) {
        attribute[attributes++] = hec_attr_int(c, "group", 1);
    } else {
        attributes = add_group(build, attributes, attribute);
    }
    if (moe->aux_per == HEC_AUX_BATCH) attribute[attributes++] = hec_attr_bool(c, "per_step", true);
    const MlirValue in[] = {hec_router_ids(router), scope->layer};
    hec_build_at(scope, moe->at, "fractions");
    return hec_build_value(&scope->b, HEC_OP_fractions, moe->layers > 0 ? 2 : 1, in, type,
                           attributes, attribute);
}

// The auxiliary loss of this layer; or, where layers have one together, its part of that.
static void build_aux(struct hec_scope *scope, const struct hec_moe *moe, MlirOperation router,
                      struct hec_sums *sums) {
    const MlirNamedAttribute score = score_of(scope->build->context, moe);
    const MlirNamedAttribute coef = hec_attr_float(scope->build->context, "coef", moe->aux);
    const MlirValue scores = hec_router_scores(router);
    hec_build_at(scope, moe->at, "mean_scores");
    const MlirValue means = hec_build_one(scope, HEC_OP_mean_scores, 1, &scores, 1, &score);
    const MlirType type = mlirValueGetType(means);
    const MlirValue in[] = {means, build_fractions(scope, moe, router, type)};
    if (moe->aux_per == HEC_AUX_ALL_LAYERS) {
        sums->of[HEC_SUM_MEANS] = in[0];
        sums->of[HEC_SUM_FRACTIONS] = in[1];
        return;
    }
    hec_build_at(scope, moe->at, moe->z != 0 ? "aux" : "auxiliary");
    sums->of[HEC_SUM_AUXILIARY] = hec_build_one(scope, HEC_OP_aux_loss, 2, in, 1, &coef);
}

// Auxiliary loss plus z-loss.
static struct hec_sums build_losses(struct hec_scope *scope, const struct hec_moe *moe,
                                    MlirValue logits, MlirOperation router) {
    struct hec_sums sums = {0}, z = {0};
    if (moe->aux != 0) build_aux(scope, moe, router, &sums);
    if (moe->z != 0) {
        const MlirNamedAttribute coef = hec_attr_float(scope->build->context, "coef", moe->z);
        const bool alone = mlirValueIsNull(sums.of[HEC_SUM_AUXILIARY]);
        hec_build_at(scope, moe->at, alone ? "auxiliary" : "z");
        z.of[HEC_SUM_AUXILIARY] = hec_build_one(scope, HEC_OP_z_loss, 1, &logits, 1, &coef);
    }
    hec_build_at(scope, moe->at, NULL);
    hec_build_sum(scope, &sums, &z);
    return sums;
}

// The function of the experts' body, for the rows of all of them. Returns its symbol.
static MlirStringRef build_expert(struct hec_scope *scope, const struct hec_moe *moe) {
    const struct hec_unit *unit = moe->expert;
    struct hec_scope inside = hec_build_begin(scope, unit, unit->symbol, moe);
    hec_build_body(&inside, &unit->body);
    if (!scope->build->failed) {
        const MlirValue result = hec_build_value_of(&inside, unit->result);
        hec_build_return(&inside.b, inside.func, 1, &result);
    }
    return hec_any_sym_name(inside.func);
}

static MlirValue build_experts(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x,
                               MlirOperation router) {
    const struct hec_build *build = scope->build;
    const MlirStringRef expert = build_expert(scope, moe);
    const MlirOperation set = {(void *)hec_map_get(&build->symbol, moe)};
    const MlirContext c = build->context;
    int attributes = 2;
    MlirNamedAttribute attribute[6] = {
        hec_attr_symbol(c, "set", hec_set_sym_name(set)),
        hec_attr_symbol(c, "expert", expert),
    };
    if (moe->weight_on_input) attribute[attributes++] = hec_attr_bool(c, "on_input", true);
    if (moe->capacity > 0) {
        const char *drop = moe->drop == HEC_DROP_POSITION ? "position" : "lowest";
        attribute[attributes++] = hec_attr_float(c, "capacity", moe->capacity);
        attribute[attributes++] = hec_attr_string(c, "drop", drop);
        attributes = add_group(build, attributes, attribute);
    }
    const MlirValue in[] = {x, hec_router_weights(router), hec_router_ids(router), scope->layer};
    hec_build_at(scope, moe->at, moe->shared_count ? "routed" : "y");
    return hec_build_one(scope, HEC_OP_experts, mlirValueIsNull(scope->layer) ? 3 : 4, in,
                         attributes, attribute);
}

// The sum of the shared experts' results; the sums of their own layers are added to the scope's.
static MlirValue build_shared_sum(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x) {
    MlirValue sum = {0};
    for (int i = 0; i < moe->shared_count; i++) {
        hec_build_at(scope, moe->at, "shared");
        const struct hec_called called = scope->build->call(scope, moe->shared[i], 1, &x);
        if (scope->build->failed) return called.value;
        hec_build_at(scope, moe->at, NULL);
        hec_build_sum(scope, &scope->sums, &called.sums);
        const MlirValue both[] = {sum, called.value};
        hec_build_at(scope, moe->at, "shared");
        sum = i ? hec_build_one(scope, HEC_OP_add, 2, both, 0, NULL) : called.value;
    }
    return sum;
}

// Adds the output of the shared experts to `routed`.
static MlirValue build_shared(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x,
                              MlirValue routed) {
    MlirValue shared = build_shared_sum(scope, moe, x);
    if (scope->build->failed) return shared;
    if (moe->shared_gate) {
        const struct hec_span at = moe->shared_gate->at;
        hec_build_at(scope, at, moe->shared_gate->name);
        const MlirValue weight = hec_build_get(scope, moe->shared_gate);
        hec_build_at(scope, at, "x_shared_gate");
        const MlirValue logit = hec_build_contract(scope, x, weight);
        hec_build_at(scope, at, "gate");
        const MlirValue gated[] = {hec_build_one(scope, HEC_OP_sigmoid, 1, &logit, 0, NULL),
                                   shared};
        hec_build_at(scope, moe->at, "gated");
        shared = hec_build_one(scope, HEC_OP_mul, 2, gated, 0, NULL);
    }
    hec_build_at(scope, moe->at, "y");
    const MlirValue sum[] = {routed, shared};
    return hec_build_one(scope, HEC_OP_add, 2, sum, 0, NULL);
}

// x times the noise of the router's input, which training steps switch on.
static MlirValue build_jitter(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x) {
    const struct hec_program *program = scope->build->program;
    const MlirContext c = scope->build->context;
    int number = 0;
    while (program->moe[number] != moe) number++;
    const MlirNamedAttribute attribute[] = {hec_attr_float(c, "amount", moe->jitter),
                                            hec_attr_int(c, "number", number)};
    hec_build_at(scope, moe->at, "noise");
    const MlirValue noise =
        hec_build_value(&scope->b, HEC_OP_noise, mlirValueIsNull(scope->layer) ? 0 : 1,
                        &scope->layer, mlirValueGetType(x), 2, attribute);
    const MlirValue factors[] = {x, noise};
    hec_build_at(scope, moe->at, "jittered");
    return hec_build_one(scope, HEC_OP_mul, 2, factors, 0, NULL);
}

static MlirValue build_logits(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x) {
    const struct hec_param *weight = moe->router_weight, *bias = moe->router_bias;
    hec_build_at(scope, weight->at, weight->name);
    const MlirValue router = hec_build_get(scope, weight);
    if (moe->jitter > 0) x = build_jitter(scope, moe, x);
    hec_build_at(scope, moe->at, bias ? "x_router" : "logits");
    const MlirValue logits = hec_build_contract(scope, x, router);
    if (!bias) return logits;
    hec_build_at(scope, bias->at, bias->name);
    const MlirValue sum[] = {logits, hec_build_get(scope, bias)};
    hec_build_at(scope, moe->at, "logits");
    return hec_build_one(scope, HEC_OP_add, 2, sum, 0, NULL);
}

struct hec_called hec_build_moe(struct hec_scope *scope, const struct hec_moe *moe, MlirValue x) {
    struct hec_build *build = scope->build;
    struct hec_called called = {0};
    const MlirValue logits = build_logits(scope, moe, x);
    if (build->failed) return called;
    const MlirOperation router = build_router(scope, moe, logits);
    if (build->failed) return called;
    keep_loads(scope, moe, hec_router_loads(router));
    called.sums = build_losses(scope, moe, logits, router);
    called.value = build_experts(scope, moe, x, router);
    if (moe->shared_count && !build->failed)
        called.value = build_shared(scope, moe, x, called.value);
    if (build->failed) return called;
    hec_build_at(scope, moe->at, NULL);
    hec_build_sum(scope, &called.sums, &scope->sums);
    return called;
}
