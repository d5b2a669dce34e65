// recompute: values that are cheap to recompute are not saved.
//
//   before   @forward: stash %s @mlp.s[%i], with %s = moe.silu(%a) and stash %a @mlp.a[%i]
//            @backward: %s = moe.fetch @mlp.s[%i]
//   after    @backward: %a = moe.fetch @mlp.a[%i]; %s = moe.silu(%a); no slot @mlp.s
//
// Why      Saved values are most of the arena, and reading one costs as much as computing a cheap
//          operation whose operands are read anyway; after fusion it costs nothing at all.
// Needs    the stashes of differentiate.
// Leaves   hecate.flops_per_token, and a stash for every fetch. A value is recomputed only from parameters, constants,
//          arguments and values that @backward can have without it: no slot is added.
//          parallel.recompute says what is recomputed. elementwise: elementwise operations. cheap: also movement of
//          rows and norms, for less memory and more time. all: also GEMMs and attention, so that of a layer little
//          more is kept than what comes into it, for a third more arithmetic. none: nothing. Every policy but none also
//          recomputes rows that only GEMMs of experts read, where the target gathers them (gather-rows), at no cost.
//          Always kept: the router's choices, which are small, and rows that other ranks' experts get: with all,
//          distribute-experts sends these once more.
// Reports  nothing.
#include "ir/accessors.h"
#include "passes/base/pass.h"

#include "ir/ops/contract.h"
#include "ir/ops/head_loss.h"
#include "passes/base/again.h"

static bool is_attention(MlirOperation op) {
    return hec_op_is(op, HEC_OP_sdpa) || hec_op_is(op, HEC_OP_sdpa_grad) ||
           hec_op_is(op, HEC_OP_delta_rule) || hec_op_is(op, HEC_OP_delta_rule_grad);
}

// Those of GEMMs and attention, as the model means them: before anything is recomputed.
static double flops_per_token(MlirOperation module) {
    double flops = 0;
    HEC_EACH (op, hec_ops_below(module)) {
        const bool head = hec_is_head_loss(op);
        if (!head && !hec_is_product(op) && !is_attention(op)) continue;
        double times = 1;
        for (MlirOperation up = mlirOperationGetParentOperation(op); !mlirOperationIsNull(up);
             up = mlirOperationGetParentOperation(up)) {
            if (hec_op_is(up, HEC_OP_FOR)) times *= (double)hec_for_of(up).count;
        }
        flops += times * (head ? hec_head_flops(op) : hec_op_cost(op).flops);
    }
    return flops / ((double)hec_module_batch(module) * (double)hec_module_positions(module));
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    (void)options;
    if (hec_module_has_batch(module) && hec_module_has_positions(module))
        hec_module_put_flops_per_token(module, flops_per_token(module));
    hec_compute_again(module);
    return HEC_PASS_DONE;
}

const struct hec_pass_code hec_pass_recompute = {
    .run = run,
};
