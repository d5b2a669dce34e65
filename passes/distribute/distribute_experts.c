// distribute-experts: rows go to the ranks that hold their experts, in waves.
//
//   before   %first, %pair, %slot = moe.route(%ids) {set = @sparse}
//            %r = moe.permute(%x, %pair, %slot); %g = moe.gate_rows(%weights, %pair, %slot)
//            ... the experts' operations on rows, what backward needs of them stashed
//            %y = moe.combine(%rows, %pair, %slot)
//            With a capacity, %first, %pair and %slot are those of a moe.limit.
//   after    fssdp.exchange(%ids, %i)
//            %n = fssdp.waves(%i)
//            scf.for %w = 0 to %n {
//                %r, %g, %first = fssdp.dispatch(%x, %weights, %w, %i)
//                ... the same operations, on the rows of one wave
//                fssdp.give_back(%rows, %w, %i)
//            }
//            %y = fssdp.collect(%i)
//            @backward: the waves in descending order. Slots hold what the last wave saved; for the
//            others, fssdp.overwritten says 1, and the rows are sent and computed once more.
//            With a capacity, %kept = fssdp.drop(%ids, %weights, %i) comes first, over the
//            tokens of all ranks, and the route is that of %kept.
//
// Why      An expert's computation is the same wherever its rows come from. So everything before
//          this pass sees the rows of one rank, and only here they become rows of all ranks. Waves
//          bound the memory whatever the router does.
// Needs    hecate.world of the module (without it, nothing is done); values of rows stashed and
//          computed again at will, but not moe.permute and moe.gate_rows.
// Leaves   `rows` has room for the rows of a wave: hecate.rows_max of them, or one and a quarter times
//          those that a rank sends.
//          Auxiliary losses are this rank's share of the whole.
//          With hecate.experts = "replicate", nothing else changes: every rank computes its rows.
// Reports  experts of which a value is used outside of their waves; mixtures whose result nothing uses.
#include <stdlib.h>

#include "ir/accessors.h"
#include "passes/distribute/backward.h"
#include "passes/distribute/find.h"
#include "passes/distribute/forward.h"
#include "passes/distribute/picks.h"
#include "passes/distribute/sizes.h"
#include "passes/movement.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

static bool distribute(MlirOperation module, MlirOperation route, bool move) {
    const MlirOperation backward = hec_find_symbol(module, HEC_STR("backward"));
    struct hec_routed x = {.module = module, .route = route, .move = move, .sound = true};
    x.set = hec_find_symbol(module, hec_route_set(route));
    x.layer = hec_routed_layer(route);
    const MlirOperation router = hec_defining(hec_route_ids(route));
    if (!hec_op_is(x.set, HEC_OP_set)) {
        hec_routed_fail(&x, route, "belongs to no set");
    } else if (!hec_op_is(router, HEC_OP_router)) {
        hec_routed_fail(&x, route, "the ids come from no moe.router");
    }
    if (x.sound) hec_settle_picks(&x, router);
    if (x.sound && move) hec_find_rows_forward(&x);
    if (x.sound && move && backward.ptr) hec_find_rows_backward(&x, backward);
    if (x.sound && move) hec_distribute_forward(&x);
    if (x.sound && move && backward.ptr) hec_distribute_backward(&x);
    free(x.region.op);
    free(x.back.op);
    hec_map_free(&x.slots);
    return x.sound;
}

// A mixture whose result nothing uses has lost its route, but not its router: loads and losses are left, which
// would have to be those of all ranks.
static bool all_routed(MlirOperation module, const struct hec_ops *routes) {
    bool sound = true;
    struct hec_ops ops = hec_ops_in(hec_module_body(module));
    for (int k = 0; k < ops.count; k++) {
        if (!hec_op_is(ops.op[k], HEC_OP_set)) continue;
        bool routed = false;
        for (int i = 0; i < routes->count && !routed; i++) {
            routed = mlirStringRefEqual(hec_any_set(routes->op[i]), hec_any_sym_name(ops.op[k]));
        }
        if (!routed)
            hec_ir_error(ops.op[k],
                         "not yet: on several ranks, a mixture whose result nothing uses");
        sound &= routed;
    }
    free(ops.op);
    return sound;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    const MlirStringRef experts = hec_module_experts(module);
    const bool move = !mlirStringRefEqual(experts, HEC_STR("replicate"));
    struct hec_ops ops = hec_ops_below(module), routes = {0};
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_route)) hec_ops_push(&routes, ops.op[k]);
    }
    free(ops.op); // Much of it will be gone after the first route.
    bool sound = all_routed(module, &routes);
    for (int k = 0; k < routes.count; k++) sound &= distribute(module, routes.op[k], move);
    free(routes.op);
    if (!sound) return HEC_PASS_REFUSED;
    hec_divide_losses(module, (double)hec_module_world(module));
    hec_simplify(module); // Routes and what was kept of them are no longer used.
    if (move) hec_resize_rows(module);
    return HEC_PASS_DONE;
}

const struct hec_pass hec_pass_distribute_experts = {
    .flag = "distribute-experts",
    .summary = "Send rows to the ranks of their experts, in waves",
    .applies = hec_has_ranks,
    .run = run,
};
