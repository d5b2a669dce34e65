// overlap: starts move up and ends move down, so that transfers run behind computation.
//
//   before   as materialize leaves it: every transfer starts where it is waited for
//   after    @forward: operations that need no rows, such as a shared expert, stand before
//            fssdp.await_counts, not behind the experts: counts travel meanwhile, and a device has work while its
//            host waits. With policies that plan on exact counts they stand behind those, before the await:
//            they hide parameters.
//            Where experts move: plan and materialize at the start of the layer, or behind the mixture before
//            them; they hide behind attention. Not for policies that plan on exact counts. In a loop over layers that
//            each have their own slots the next layer is prefetched behind the rows of the first wave:
//            while experts compute, the network would otherwise be idle.
//            @backward: a re-materialization starts behind the mixture that comes before it: the last
//            one of the loop starts the first one of the next iteration ({ahead = 1}: layer %i - 1;
//            nothing below layer 0), and the mixture before the loop starts the first iteration's.
//            Gradients are released at the end of their block; in a loop over layers, which take turns
//            with two sets of slots, behind the experts of the layer after it.
//
// Why      Parameters and gradients of experts need nothing that lies in between, and the network is
//          idle there.
// Needs    The order that materialize leaves; replicas of all layers share slots only where they are
//          released before the next ones come, which verify-movement proves afterwards.
// Leaves   The same operations elsewhere, and fssdp.prefetch.
// Reports  a mixture in @backward without its reduce and releases: text that is read may lack them.
#include <stdlib.h>

#include "ir/accessors.h"
#include "passes/base/movement.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"

// ---- finding what materialize left

// The operation `id` on the site's set in `block`, with `key` = `value` where a key is given.
static MlirOperation find(MlirBlock block, const struct hec_site *site, enum hec_op id,
                          const char *key, const char *value) {
    const MlirStringRef set = hec_set_sym_name(site->set);
    HEC_EACH_IN (op, block) {
        if (!hec_op_is(op, id) || !mlirStringRefEqual(hec_any_set(op), set)) continue;
        if (!key || mlirStringRefEqual(hec_get_string(op, key), HEC_STR(value))) return op;
    }
    return (MlirOperation){0};
}

static MlirBlock block_of(MlirOperation op) {
    return mlirOperationGetBlock(op);
}

// Operations moved out of the mixture's block belong to the call of the mixture.
static void belong_to_call(struct hec_builder *b, const struct hec_site *site) {
    const MlirLocation at = hec_loc_strip(mlirOperationGetLocation(site->exchange));
    b->at = mlirLocationIsACallSite(at) ? hec_loc_strip(mlirLocationCallSiteGetCaller(at)) : at;
    b->unit = hec_unit_around(site->exchange);
}

static void move_to_call(MlirOperation op, const struct hec_site *site) {
    struct hec_builder b = hec_builder_before(op);
    belong_to_call(&b, site);
    mlirOperationSetLocation(op, b.at);
    mlirOperationRemoveAttributeByName(op, HEC_STR(HEC_UNIT));
    if (b.unit.ptr) hec_set_attr(op, hec_attr(b.context, HEC_UNIT, b.unit));
}

// ---- forward

// The first place at which the site's parameters may start: behind the mixture before it, or at the
// start of its block.
static MlirOperation earliest(const struct hec_sites *sites, int index) {
    const struct hec_site *site = &sites->site[index];
    const MlirBlock block = block_of(site->exchange);
    for (int i = index - 1; i >= 0; i--) {
        const MlirOperation end = hec_ancestor_in(block, sites->site[i].collect);
        if (!end.ptr) continue;
        MlirOperation next = mlirOperationGetNextInBlock(end);
        while (hec_op_is(next, HEC_OP_release)) next = mlirOperationGetNextInBlock(next);
        return next;
    }
    return mlirBlockGetFirstOperation(block);
}

static bool is_planned_behind_counts(const struct hec_site *site) {
    const MlirOperation plan = find(block_of(site->counts), site, HEC_OP_plan, NULL, NULL);
    return plan.ptr && mlirOperationIsBeforeInBlock(site->counts, plan);
}

// Computes operations that need no rows before the counts are awaited; before their experts are, where parameters
// start between the two.
static void delay_wait(const struct hec_site *site) {
    const MlirOperation wait = is_planned_behind_counts(site)
                                   ? find(block_of(site->waves), site, HEC_OP_await, NULL, NULL)
                                   : site->counts;
    const struct hec_ops ops = hec_independent(site);
    for (int k = 0; k < ops.count && wait.ptr; k++) mlirOperationMoveBefore(ops.op[k], wait);
    free(ops.op);
}

static void move_forward(const struct hec_sites *sites, int index) {
    const struct hec_site *site = &sites->site[index];
    const MlirBlock block = block_of(site->exchange);
    const MlirOperation plan = find(block, site, HEC_OP_plan, NULL, NULL);
    const MlirOperation start = find(block, site, HEC_OP_materialize, NULL, NULL);
    if (!plan.ptr || !start.ptr || mlirOperationIsBeforeInBlock(site->exchange, plan)) return;
    const MlirOperation to = earliest(sites, index);
    if (mlirOperationEqual(to, plan)) return;
    mlirOperationMoveBefore(plan, to);
    mlirOperationMoveBefore(start, to);
    move_to_call(plan, site);
    move_to_call(start, site);
}

// The dispatch of the first loop over waves behind the site's count of them.
static MlirOperation dispatch_of(const struct hec_site *site) {
    for (MlirOperation op = mlirOperationGetNextInBlock(site->waves); op.ptr;
         op = mlirOperationGetNextInBlock(op)) {
        if (!hec_op_is(op, HEC_OP_FOR)) continue;
        return find(hec_for_of(op).body, site, HEC_OP_dispatch, NULL, NULL);
    }
    return (MlirOperation){0};
}

// The next mixture of the set is that of the next layer, and has slots of its own.
static void prefetch(const struct hec_site *site) {
    if (!site->loop.ptr || hec_set_layers(site->set) < 2 ||
        hec_set_slot_layers(site->set) != hec_set_layers(site->set))
        return;
    const MlirOperation dispatch = dispatch_of(site);
    const MlirOperation plan = find(block_of(site->exchange), site, HEC_OP_plan, NULL, NULL);
    if (!dispatch.ptr || !plan.ptr || !mlirOperationIsBeforeInBlock(plan, site->exchange)) return;
    struct hec_builder b = hec_builder_before(mlirOperationGetNextInBlock(dispatch));
    hec_builder_for(&b, dispatch);
    const MlirNamedAttribute attribute[] = {
        hec_attr_symbol(b.context, "set", hec_set_sym_name(site->set)),
        hec_attr_string(b.context, "scope", "step"),
    };
    hec_build_op(&b, HEC_OP_prefetch, 1, &site->layer, 0, NULL, hec_is_of_step(plan) ? 2 : 1,
                 attribute);
}

// ---- backward

// Starts the site's parameters of `layer` where `b` inserts.
static void start_again(struct hec_builder *b, const struct hec_site *site, MlirValue layer,
                        bool ahead) {
    const MlirNamedAttribute attribute[] = {
        hec_attr_symbol(b->context, "set", hec_set_sym_name(site->set)),
        hec_attr_bool(b->context, "rematerialize", true),
        hec_attr_int(b->context, "ahead", 1),
    };
    hec_build_op(b, HEC_OP_materialize, layer.ptr ? 1 : 0, &layer, 0, NULL, ahead ? 3 : 2,
                 attribute);
}

// Behind what `site` releases in @backward, its gradients aside: its slots are free.
static struct hec_builder behind_site(const struct hec_site *site) {
    const MlirBlock block = block_of(site->collect_back);
    const MlirOperation release = find(block, site, HEC_OP_release, "what", "parameters");
    struct hec_builder b = hec_builder_before(mlirOperationGetNextInBlock(release));
    hec_builder_for(&b, release);
    return b;
}

// Behind all that comes before `op` in @backward and computes experts: `back` - 1 and before.
static struct hec_builder behind_earlier(const struct hec_sites *sites, int back,
                                         MlirOperation op) {
    const MlirBlock block = block_of(op);
    for (int i = back - 1; i >= 0; i--) {
        const struct hec_site *before = &sites->site[sites->back[i]];
        if (mlirBlockEqual(block_of(before->collect_back), block)) return behind_site(before);
        const MlirOperation loop = hec_ancestor_in(block, before->collect_back);
        if (loop.ptr) return hec_builder_before(mlirOperationGetNextInBlock(loop));
    }
    return hec_builder_before(mlirBlockGetFirstOperation(block));
}

// The last site of @backward in the loop of site `back`, by its place in `sites->back`.
static int last_in_loop(const struct hec_sites *sites, int back) {
    const MlirOperation loop = sites->site[sites->back[back]].loop_back;
    int last = back;
    for (int i = back; i < sites->backs; i++) {
        if (mlirOperationEqual(sites->site[sites->back[i]].loop_back, loop)) last = i;
    }
    return last;
}

static bool is_first_in_loop(const struct hec_sites *sites, int back) {
    const MlirOperation loop = sites->site[sites->back[back]].loop_back;
    return back == 0 || !mlirOperationEqual(sites->site[sites->back[back - 1]].loop_back, loop);
}

static void release_gradients(struct hec_builder *b, const struct hec_site *site, MlirValue layer,
                              int64_t ahead, bool step) {
    MlirNamedAttribute attribute[4] = {
        hec_attr_symbol(b->context, "set", hec_set_sym_name(site->set)),
        hec_attr_string(b->context, "what", "gradients"),
    };
    int count = 2;
    if (ahead) attribute[count++] = hec_attr_int(b->context, "ahead", ahead);
    if (step) attribute[count++] = hec_attr_string(b->context, "scope", "step");
    hec_build_op(b, HEC_OP_release, 1, &layer, 0, NULL, count, attribute);
}

// Those of the layer above are released when this one's experts are done; the last ones at the end.
static void delay_gradients(const struct hec_site *site) {
    const MlirBlock block = block_of(site->collect_back);
    const MlirOperation release = find(block, site, HEC_OP_release, "what", "gradients");
    if (!site->loop_back.ptr || hec_set_grad_layers(site->set) < 2) {
        mlirOperationMoveBefore(release, mlirBlockGetTerminator(block));
        move_to_call(release, site);
        return;
    }
    struct hec_builder b = hec_builder_before(find(block, site, HEC_OP_reduce, NULL, NULL));
    hec_builder_for(&b, release);
    release_gradients(&b, site, site->layer_back, -1, hec_is_of_step(release));
    b = hec_builder_before(mlirBlockGetTerminator(block_of(site->loop_back)));
    belong_to_call(&b, site);
    release_gradients(&b, site, hec_build_index(&b, 0), 0, hec_is_of_step(release));
    mlirOperationDestroy(release);
}

static void move_backward(const struct hec_sites *sites, int back) {
    const struct hec_site *site = &sites->site[sites->back[back]];
    const MlirBlock block = block_of(site->collect_back);
    delay_gradients(site);
    const MlirOperation start = find(block, site, HEC_OP_materialize, NULL, NULL);
    if (!start.ptr) return;
    struct hec_builder b;
    if (site->loop_back.ptr && is_first_in_loop(sites, back)) {
        const int64_t layers = hec_set_layers(site->set);
        b = behind_earlier(sites, back, site->loop_back);
        belong_to_call(&b, site);
        start_again(&b, site, hec_build_index(&b, layers - 1), false);
        b = behind_site(&sites->site[sites->back[last_in_loop(sites, back)]]);
        if (layers > 1) start_again(&b, site, site->layer_back, true);
    } else {
        b = behind_earlier(sites, back, site->collect_back);
        belong_to_call(&b, site);
        start_again(&b, site, site->layer_back, false);
    }
    mlirOperationDestroy(start);
}

// Checks the operations that materialize leaves of every mixture in @backward; IR read as text may lack them.
static bool check_site(const struct hec_site *site) {
    if (!site->collect_back.ptr) return true;
    const MlirBlock block = block_of(site->collect_back);
    if (find(block, site, HEC_OP_reduce, NULL, NULL).ptr &&
        find(block, site, HEC_OP_release, "what", "parameters").ptr &&
        find(block, site, HEC_OP_release, "what", "gradients").ptr)
        return true;
    return hec_ir_error(site->collect_back,
                        "its experts' gradients are not reduced, or they or parameters "
                        "not released, beside it: run materialize first");
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    struct hec_sites sites;
    struct hpl_movement movement;
    if (!hec_sites_find(module, &sites)) return HEC_PASS_REFUSED;
    for (int i = 0; i < sites.count; i++) delay_wait(&sites.site[i]);
    if (!hec_moves_experts(module) || !hec_movement_read(module, &movement)) return HEC_PASS_DONE;
    for (int i = 0; i < sites.count; i++) {
        if (!check_site(&sites.site[i])) return HEC_PASS_REFUSED;
    }
    for (int i = 0; i < sites.count; i++) {
        move_forward(&sites, i);
        prefetch(&sites.site[i]);
    }
    for (int i = sites.backs - 1; i >= 0; i--) move_backward(&sites, i);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_overlap = {
    .applies = hec_has_ranks,
    .run = run,
};
