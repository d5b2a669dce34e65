// distribute-experts: rows go to the ranks that hold their experts, in waves.
//
//   before   %first, %pair, %slot = moe.route(%ids) {rows_of = @sparse}
//            %r = moe.permute(%x, %pair, %slot); %g = moe.gate_rows(%weights, %pair, %slot)
//            ... the experts' operations on rows, values for backward stashed; all with rows_of
//            %y = moe.combine(%rows, %pair, %slot)
//            With a capacity, %first, %pair and %slot are those of a moe.limit.
//   after    fssdp.exchange(%ids, %i), behind the router
//            fssdp.await_counts(%i)
//            %n = fssdp.waves(%i)
//            scf.for %w = 0 to %n {
//                %r, %g, %first = fssdp.dispatch(%x, %weights, %w, %i)
//                ... the same operations, on the rows of one wave
//                fssdp.give_back(%rows, %w, %i)
//            }
//            %y = fssdp.collect(%i)
//            @backward: the waves in descending order. Slots hold what the last wave saved; for the
//            others, fssdp.overwritten says 1, and the rows are sent and computed once more. Gradients of
//            parameters stand behind the fssdp.give_back_grad of their wave. With
//            parallel.recompute = all every wave is, and no slot holds rows.
//            With a capacity, %kept = fssdp.drop(%ids, %weights, %i) comes first, over the
//            tokens of all ranks, and the route is that of %kept.
//
// Why      An expert's computation is the same wherever its rows come from. So everything before
//          this pass sees the rows of one rank, and only here they become rows of all ranks. Waves
//          bound the memory for any routing.
// Needs    hecate.world of the module (without it, nothing is done); rows_of, from group-experts on; values of
//          rows stashed and recomputed at will, but not moe.permute and moe.gate_rows.
// Leaves   no rows_of. `rows` has room for the rows of a wave: parallel.rows_max of them, or one and a quarter times
//          those that a rank sends.
//          Auxiliary losses are this rank's share of the whole.
//          With parallel.experts = replicate, nothing else changes: every rank computes its rows.
// Reports  rows of which it is not said whose they are, or that are moved by two routes; experts with a repeat;
//          mixtures whose result nothing uses; two routes to one set.
#include <stdlib.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/base/again.h"
#include "passes/base/movement.h"
#include "passes/base/pass.h"
#include "passes/base/rewrite.h"
#include "passes/distribute/backward.h"
#include "passes/distribute/find.h"
#include "passes/distribute/forward.h"
#include "passes/distribute/picks.h"
#include "passes/distribute/sizes.h"

static bool distribute(MlirOperation module, MlirOperation route, bool move) {
    struct hec_routed x = {.module = module, .route = route, .move = move, .sound = true};
    x.backward = hec_find_symbol(module, HEC_STR("backward"));
    x.set = hec_find_symbol(module, hec_rows_of(route));
    const MlirOperation router = hec_defining(hec_route_ids(route));
    if (!hec_op_is(router, HEC_OP_router))
        hec_routed_fail(&x, route, "the ids come from no moe.router");
    if (x.sound) hec_find_rows(&x);
    if (x.sound) hec_settle_picks(&x, router);
    if (x.sound && move) hec_check_rows_forward(&x);
    if (x.sound && move && x.backward.ptr) hec_check_rows_backward(&x);
    if (x.sound && move) hec_distribute_forward(&x);
    if (x.sound && move && x.backward.ptr) hec_distribute_backward(&x);
    free(x.region.op);
    free(x.back.op);
    return x.sound;
}

// A mixture whose result nothing uses has lost its route, but not its router: loads and losses are left, which
// would have to be those of all ranks.
static bool is_routed_once(MlirOperation set, const struct hec_ops *routes) {
    int count = 0;
    for (int i = 0; i < routes->count; i++) {
        if (!mlirStringRefEqual(hec_rows_of(routes->op[i]), hec_any_sym_name(set))) continue;
        if (count++ > 0) hec_ir_error(routes->op[i], "not yet: two routes to the experts of a set");
    }
    if (count == 0)
        hec_ir_error(set, "not yet: on several ranks, a mixture whose result nothing uses");
    return count == 1;
}

static bool all_routed(MlirOperation module, const struct hec_ops *routes) {
    bool sound = true;
    HEC_EACH_OF (op, hec_ops_in(hec_module_body(module)), HEC_OP_set)
        sound &= is_routed_once(op, routes);
    for (int i = 0; i < routes->count; i++) {
        if (hec_rows_of(routes->op[i]).length) continue;
        sound = hec_ir_error(routes->op[i], "belongs to no set");
    }
    return sound;
}

// A constant has as many rows as it is asked for; the end of a block computes nothing.
static bool is_exempt(MlirOperation op) {
    return hec_op_is(op, HEC_OP_fill) || hec_op_of(op) == HEC_OP_SCF_YIELD;
}

// Every operation on rows has rows_of. By the rule of the verifier readers of rows have it; this finds operations that
// make rows from nothing.
static bool all_told(const struct hec_ops *ops) {
    bool sound = true;
    for (int k = 0; k < ops->count; k++) {
        const MlirOperation op = ops->op[k];
        if (hec_rows_of(op).length || is_exempt(op)) continue;
        bool told = true;
        for (int i = 0; i < mlirOperationGetNumOperands(op); i++)
            told &= !hec_routed_has_rows(hec_operand(op, i));
        for (int i = 0; i < mlirOperationGetNumResults(op); i++)
            told &= !hec_routed_has_rows(hec_result(op, i));
        if (!told) hec_ir_error(op, "works on rows of experts, but has no rows_of: of which set?");
        sound &= told;
    }
    return sound;
}

static void forget_rows(MlirOperation module) {
    HEC_EACH (op, hec_ops_below(module)) hec_rows_forget(op);
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    const bool move = !hec_setting_is(module, HEC_KEY_parallel_experts, "replicate");
    struct hec_ops ops = hec_ops_below(module), routes = {0};
    for (int k = 0; k < ops.count; k++) {
        if (hec_op_is(ops.op[k], HEC_OP_route)) hec_ops_push(&routes, ops.op[k]);
    }
    const bool fit = all_routed(module, &routes) && (!move || all_told(&ops));
    free(ops.op); // Much of it will be gone after the first route.
    bool sound = fit;
    for (int k = 0; k < routes.count && fit; k++) sound &= distribute(module, routes.op[k], move);
    free(routes.op);
    if (!sound) return HEC_PASS_REFUSED;
    forget_rows(module);
    hec_divide_losses(module, (double)hec_module_world(module));
    hec_simplify(module);                // Routes and what was kept of them are no longer used.
    if (move) hec_compute_again(module); // Drops copies kept for sending again.
    if (move) hec_resize_rows(module);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_distribute_experts = {
    .applies = hec_has_ranks,
    .run = run,
};
