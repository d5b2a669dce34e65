// Sums over layers for the loss: the bodies that have some, and the additions.
#include "ir/build/sums.h"

#include "ir/build/value.h"

const char *const hec_build_sum_name[HEC_SUMS] = {"auxiliary", "mean_scores", "fractions"};

static bool unit_has(const struct hec_unit *unit, enum hec_sum sum);

bool hec_build_body_has(const struct hec_body *body, enum hec_sum sum) {
    for (int i = 0; i < body->items; i++) {
        const struct hec_item *item = &body->item[i];
        if (item->loop ? hec_build_body_has(&item->loop->body, sum)
                       : item->node->kind == HEC_NODE_CALL && unit_has(item->node->callee, sum)) {
            return true;
        }
    }
    return false;
}

static bool unit_has(const struct hec_unit *unit, enum hec_sum sum) {
    if (unit->kind != HEC_UNIT_MOE) return hec_build_body_has(&unit->body, sum);
    const struct hec_moe *moe = unit->moe;
    const bool joint = moe->aux != 0 && moe->aux_per == HEC_AUX_ALL_LAYERS;
    const bool own = sum == HEC_SUM_AUXILIARY ? (moe->aux != 0 && !joint) || moe->z != 0 : joint;
    return own || (moe->shared_count && unit_has(moe->shared[0], sum)); // They are of one block.
}

void hec_build_sum(struct hec_scope *scope, struct hec_sums *sums, const struct hec_sums *more) {
    const MlirLocation at = scope->b.at;
    for (int i = 0; i < HEC_SUMS; i++) {
        const MlirValue both[] = {sums->of[i], more->of[i]};
        if (mlirValueIsNull(more->of[i])) continue;
        sums->of[i] = more->of[i];
        if (mlirValueIsNull(both[0])) continue;
        scope->b.at = hec_loc_named(hec_build_sum_name[i], hec_loc_strip(at));
        sums->of[i] = hec_build_one(scope, HEC_OP_add, 2, both, 0, NULL);
    }
    scope->b.at = at;
}

int64_t hec_build_joint(const struct hec_program *program, const struct hec_moe **moe) {
    int64_t layers = 0;
    for (int i = 0; i < program->moes; i++) {
        const struct hec_moe *other = program->moe[i];
        if (other->aux == 0 || other->aux_per != HEC_AUX_ALL_LAYERS) continue;
        layers += other->layers > 0 ? other->layers : 1;
        *moe = other;
    }
    return layers;
}

MlirValue hec_build_no_sum(struct hec_scope *scope, enum hec_sum sum) {
    const struct hec_build *build = scope->build;
    const struct hec_moe *moe = NULL;
    struct hec_tensor t = {.element = build->real};
    if (sum != HEC_SUM_AUXILIARY) {
        hec_build_joint(build->program, &moe);
        hec_tensor_append(&t, HEC_STR("batch"), build->batch);
        hec_tensor_append(&t, HEC_STR(moe->experts.name), moe->experts.size);
    }
    return hec_build_fill(&scope->b, hec_tensor_type(&t), 0);
}
