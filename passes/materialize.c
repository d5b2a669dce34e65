// materialize: replicas come and go. Each step stands where it must be done at the latest.
//
//   before   fssdp.exchange ... fssdp.await_counts, fssdp.waves, loop over waves, fssdp.collect;
//            @backward: fssdp.waves, loop over waves, fssdp.collect_grad
//   after    fssdp.plan(%i), fssdp.materialize(%i) {rematerialize = false}
//            fssdp.exchange ... fssdp.await_counts; fssdp.calibrate(%i)
//            fssdp.await(%i); fssdp.waves, loop, fssdp.collect
//            fssdp.release(%i) {what = "parameters"}             when re-materializing, or without gradients
//            @backward:
//            fssdp.materialize(%i) {rematerialize = true}; fssdp.await(%i)     when re-materializing
//            fssdp.waves, loop, fssdp.collect_grad
//            fssdp.reduce(%i)
//            fssdp.release(%i) {what = "parameters"}, fssdp.release(%i) {what = "gradients"}
//
// Where replicas live for a step all but calibrate and await have {scope = "step"}: plan and materialize are done in a
// step's first iteration, reduce and release in its last. When re-materializing, parameters alone come and go as above.
//
// Why      Correct by its order alone; nothing is hidden yet. Pass overlap moves starts up and ends
//          down; without it every transfer is waited for.
// Needs    hecate.movement (pass shard). A policy that plans on exact counts has its plan behind them.
// Leaves   On each set `slots`, replicas of a device and layer, and `slot_layers` and `grad_layers`,
//          layers whose replicas of parameters, and their gradients, are held at a time:
//          verify-movement proves it.
// Reports  Nothing.
#include "ir/accessors.h"
#include "passes/base/movement.h"
#include "passes/base/pass.h"
#include "runtime/plan/policy.h"

// An operation on the site's set and layer, where `b` inserts; `step`: once in a step.
static MlirOperation build(struct hec_builder *b, const struct hec_site *site, MlirValue layer,
                           enum hec_op id, bool step, MlirNamedAttribute extra) {
    MlirNamedAttribute attribute[3] = {
        hec_attr_symbol(b->context, "set", hec_set_sym_name(site->set))};
    int count = 1;
    if (!mlirAttributeIsNull(extra.attribute)) attribute[count++] = extra;
    if (step) attribute[count++] = hec_attr_string(b->context, "scope", "step");
    return hec_build_op(b, id, layer.ptr ? 1 : 0, &layer, 0, NULL, count, attribute);
}

static const MlirNamedAttribute nothing = {{0}, {0}};

static void start(struct hec_builder *b, const struct hec_site *site, MlirValue layer, bool step,
                  bool rematerialize) {
    build(b, site, layer, HEC_OP_materialize, step,
          hec_attr_bool(b->context, "rematerialize", rematerialize));
}

static void release(struct hec_builder *b, const struct hec_site *site, MlirValue layer, bool step,
                    const char *what) {
    build(b, site, layer, HEC_OP_release, step, hec_attr_string(b->context, "what", what));
}

static struct hec_builder behind(MlirOperation op) {
    struct hec_builder b = hec_builder_before(mlirOperationGetNextInBlock(op));
    hec_builder_for(&b, op);
    b.at = hec_loc_strip(b.at);
    return b;
}

static struct hec_builder in_front_of(MlirOperation op) {
    struct hec_builder b = hec_builder_before(op);
    b.at = hec_loc_strip(b.at);
    return b;
}

// Whether replicas of the site live for a step; without gradients there are no steps.
static bool lasts(const struct hec_site *site, const struct hpl_movement *movement) {
    return movement->lifetime == HPL_LIFETIME_STEP && site->collect_back.ptr;
}

static void move_forward(const struct hec_site *site, const struct hpl_movement *movement,
                         const struct hpl_policy *policy) {
    const bool exact = policy->when == HPL_WHEN_EXACT;
    const bool step = lasts(site, movement);
    struct hec_builder b = exact ? behind(site->counts) : in_front_of(site->exchange);
    build(&b, site, site->layer, HEC_OP_plan, step, nothing);
    start(&b, site, site->layer, step && !movement->rematerialize, false);
    b = behind(site->counts);
    if (movement->calibrate != HPL_CALIBRATES_NEVER && !exact)
        build(&b, site, site->layer, HEC_OP_calibrate, false, nothing);
    b = in_front_of(site->waves);
    build(&b, site, site->layer, HEC_OP_await, false, nothing);
    b = behind(site->collect);
    if (movement->rematerialize || !site->collect_back.ptr)
        release(&b, site, site->layer, false, "parameters");
}

static void move_backward(const struct hec_site *site, const struct hpl_movement *movement) {
    const bool step = lasts(site, movement);
    struct hec_builder b = in_front_of(site->waves_back);
    if (movement->rematerialize) {
        start(&b, site, site->layer_back, false, true);
        build(&b, site, site->layer_back, HEC_OP_await, false, nothing);
    }
    b = behind(site->collect_back);
    build(&b, site, site->layer_back, HEC_OP_reduce, step, nothing);
    release(&b, site, site->layer_back, step && !movement->rematerialize, "parameters");
    release(&b, site, site->layer_back, step, "gradients");
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct hec_sites sites;
    struct hpl_movement movement;
    if (!hec_movement_read(module, &movement)) {
        hec_ir_error(module, "has no hecate.movement: run shard first");
        return HEC_PASS_REFUSED;
    }
    const struct hpl_policy *policy = hpl_policy_find(movement.policy);
    if (!policy) {
        hec_ir_error(module, "hecate.movement names no policy: '%s'", movement.policy);
        return HEC_PASS_REFUSED;
    }
    if (!hec_sites_find(module, &sites)) return HEC_PASS_REFUSED;
    for (int i = 0; i < sites.count; i++) {
        const struct hec_site *site = &sites.site[i];
        const int64_t layers = hec_set_layers(site->set);
        const bool again = movement.rematerialize || !site->collect_back.ptr;
        const int64_t held = again || layers < 1 ? 1 : layers;
        hec_set_put_slots(site->set, movement.slots);
        hec_set_put_slot_layers(site->set, held);
        hec_set_put_grad_layers(site->set, layers < 2 ? 1 : lasts(site, &movement) ? layers : 2);
        move_forward(site, &movement, policy);
        if (site->collect_back.ptr) move_backward(site, &movement);
    }
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_materialize = {
    .applies = hec_moves_experts,
    .run = run,
};
