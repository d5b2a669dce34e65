// shard: the first owners of experts, and all choices of movement.
//
//   before   moe.set, hecate.settings; hecate.recorded_loads and hecate.plan, files, where they were given
//   after    hecate.movement of the module; `owner` and `forecast` of each set, where they are not
//            the usual ones
//
// Why      What moves, how much of it and when depends on loads, links and memory, not on the order
//          of operations. Everything after this pass reads the choices from the module, so that a
//          plan of an earlier build can take the place of the search.
// Needs    experts distributed (distribute-experts); elementwise chains joined, as the cost of what
//          hides transfers is that of the emitted loops.
// Leaves   hecate.movement (passes/base/movement.h). With recorded loads, owners by heterogeneous sharding
//          (hpl_reshard: the paper's algorithm 2), and the mean of its loads as first forecast.
// Reports  a policy that does not exist; recorded loads or a plan that cannot be read or does not fit.
#include "ir/accessors.h"
#include "passes/base/pass.h"
#include "passes/cost/recorded.h"
#include "passes/plan_file.h"
#include "passes/timeline/search.h"

static MlirOperation set_of(MlirOperation module, const struct hec_set_cost *cost) {
    return hec_find_symbol(module, HEC_STR(cost->name));
}

// Writes the loads that the record lets expect.
static void write_forecasts(MlirOperation module, const struct hec_search *s,
                            struct hec_arena *arena) {
    const MlirContext c = mlirOperationGetContext(module);
    const int64_t devices = s->setup.costs.machine.nodes * s->setup.costs.machine.devices;
    for (int i = 0; i < s->setup.costs.count && s->setup.recorded; i++) {
        const struct hec_set_cost *cost = &s->setup.costs.set[i];
        const int64_t chunks = cost->layers * cost->experts, cells = chunks * devices;
        const MlirOperation set = set_of(module, cost);
        int32_t *forecast = hec_arena_alloc(arena, (size_t)cells, sizeof *forecast);
        hec_recorded_mean(&s->setup, i, forecast);
        hec_set_put_forecast(set, mlirDenseI32ArrayGet(c, cells, forecast));
    }
}

static bool decide(MlirOperation module, const struct hec_pass_options *options,
                   struct hec_arena *arena) {
    struct hec_search *search = HEC_NEW(arena, struct hec_search);
    const bool sound = hec_search(module, options, arena, search);
    if (sound) {
        hec_movement_write(module, &search->candidate[search->chosen].movement);
        hec_compared_write(module, search);
        write_forecasts(module, search, arena);
    }
    hec_recorded_free(&search->setup);
    return sound;
}

static enum hec_pass_result run(MlirOperation module, const struct hec_pass_options *options) {
    struct hec_arena arena = {0};
    const bool given = hec_module_has_plan(module);
    const bool sound = given ? hec_plan_read(module) : decide(module, options, &arena);
    hec_arena_free(&arena);
    return sound ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

const struct hec_pass_code hec_pass_shard = {
    .applies = hec_moves_experts,
    .run = run,
};
