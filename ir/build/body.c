// Bodies: nodes one after the other, and loops over layers. A loop carries what the repeat carries, and
// the sums of its layers for the loss.
#include "ir/build/body.h"

#include <assert.h>

#include "ir/build/node.h"
#include "ir/build/sums.h"
#include "ir/build/value.h"

enum { CARRIED_MAX = 12 };

// Appends to `value` the sums that the loop's layers add to, as they are before it. Returns their number,
// and which they are.
static int begin_sums(struct hec_scope *scope, const struct hec_loop *loop, MlirValue *value,
                      enum hec_sum sum[HEC_SUMS]) {
    int sums = 0;
    for (enum hec_sum i = 0; i < HEC_SUMS; i++) {
        if (!hec_build_body_has(&loop->body, i)) continue;
        const MlirValue before = scope->sums.of[i];
        hec_build_at(scope, loop->at, hec_build_sum_name[i]);
        value[sums] = mlirValueIsNull(before) ? hec_build_no_sum(scope, i) : before;
        sum[sums++] = i;
    }
    return sums;
}

static void build_loop(struct hec_scope *scope, const struct hec_loop *loop) {
    struct hec_build *build = scope->build;
    MlirValue value[CARRIED_MAX + HEC_SUMS];
    enum hec_sum sum[HEC_SUMS];
    assert(mlirValueIsNull(scope->layer)); // The checker refuses a repeat inside a repeat.
    if (loop->carried > CARRIED_MAX) {
        hec_build_error(build, loop->at, "not yet: more than %d variables change in a repeat",
                        CARRIED_MAX);
        return;
    }
    for (int i = 0; i < loop->carried; i++) value[i] = hec_build_value_of(scope, loop->init[i]);
    const int sums = begin_sums(scope, loop, value + loop->carried, sum);
    const int carried = loop->carried + sums;
    hec_build_at(scope, loop->at, carried == 1 ? loop->argument[0]->name : NULL);
    struct hec_for built = hec_build_for(&scope->b, loop->count, false, carried, value);
    *hec_map_at(&build->loop, loop) = (intptr_t)built.op.ptr;

    struct hec_scope inside = *scope;
    inside.b = hec_builder_end(built.body, scope->b.at);
    inside.layer = built.layer;
    for (int i = 0; i < loop->carried; i++) {
        *hec_map_at(&build->value, loop->argument[i]) = (intptr_t)hec_for_argument(&built, i).ptr;
    }
    for (int i = 0; i < sums; i++)
        inside.sums.of[sum[i]] = hec_for_argument(&built, loop->carried + i);
    hec_build_body(&inside, &loop->body);
    if (build->failed) return;
    for (int i = 0; i < loop->carried; i++) value[i] = hec_build_value_of(scope, loop->yield[i]);
    for (int i = 0; i < sums; i++) value[loop->carried + i] = inside.sums.of[sum[i]];
    hec_for_yield(&built, hec_loc_strip(scope->b.at), value);
    for (int i = 0; i < sums; i++) scope->sums.of[sum[i]] = hec_result(built.op, loop->carried + i);
}

void hec_build_body(struct hec_scope *scope, const struct hec_body *body) {
    for (int i = 0; i < body->items && !scope->build->failed; i++) {
        if (body->item[i].loop) {
            build_loop(scope, body->item[i].loop);
        } else {
            hec_build_node(scope, body->item[i].node);
        }
    }
}
