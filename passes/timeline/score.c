// What a simulation says of a module, in a few numbers.
#include <stdlib.h>

#include "ir/accessors.h"
#include "passes/cost/recorded.h"
#include "passes/pipeline.h"
#include "passes/timeline/timeline.h"

struct hpl_movement hec_timeline_movement(MlirOperation module) {
    struct hpl_movement movement;
    if (hec_moves_experts(module) && hec_movement_read(module, &movement)) return movement;
    return (struct hpl_movement){.slots = 0};
}

// Copies that stay have all that an owner has.
static int64_t copies_bytes(const struct hec_costs *c, const struct hpl_policy *policy,
                            int64_t slots) {
    int64_t bytes = 0;
    if (policy->replicas == HPL_REPLICAS_NONE) return 0;
    for (int i = 0; i < c->count; i++) bytes += slots * c->set[i].layers * c->set[i].owner_bytes;
    return bytes;
}

struct hec_device_bytes hec_timeline_bytes(const struct hec_search *search,
                                           const struct hpl_movement *movement) {
    const struct hec_costs *c = &search->costs;
    struct hec_device_bytes b = {.all = c->dense_bytes + c->saved_bytes};
    if (!c->count) return b;
    b.owned = hec_owned_bytes(c, search->policy->calibrates);
    if (movement->policy[0])
        b.replicas =
            search->policy->collective == HPL_COLLECTIVE_EXCHANGE
                ? copies_bytes(c, search->policy, movement->slots)
                : hec_replica_bytes(c, search->policy, movement->slots, movement->rematerialize);
    for (int i = 0; i < c->count && hpl_gathers_all(search->policy); i++) // The next layer's, too.
        b.replicas += hec_slots_of(c, &c->set[i], search->policy, movement->slots, true).params;
    b.all += b.owned + b.replicas;
    return b;
}

static int by_us(const void *left, const void *right) {
    const struct hec_step_time *a = left, *b = right;
    return (a->us > b->us) - (a->us < b->us);
}

// Steps of many iterations say as much in fewer: the first one, which has no forecast, and one more do.
static int64_t enough(int64_t steps, int64_t iterations) {
    enum { ITERATIONS = 24, LEAST = 2 };
    const int64_t most = ITERATIONS / iterations > LEAST ? ITERATIONS / iterations : LEAST;
    return steps < most ? steps : most;
}

static bool score_of(MlirOperation module, int64_t wanted, bool coarse, struct hec_arena *arena,
                     const struct hec_search *search, struct hec_step_score *score) {
    const struct hpl_movement movement = hec_timeline_movement(module);
    const struct hec_costs *costs = &search->costs;
    const double devices = (double)(costs->machine.nodes * costs->machine.devices);
    struct hec_script script;
    const int64_t iterations = hec_script_iterations(module, &costs->machine);
    const int64_t steps = enough(wanted, iterations);
    struct hec_step_time *step = hec_arena_alloc(arena, (size_t)steps, sizeof *step);
    const int64_t begins = search->recorded_times - steps * iterations;
    const struct hec_timeline_request request = {.module = module,
                                                 .search = search,
                                                 .movement = &movement,
                                                 .steps = steps,
                                                 .begins = begins > 0 ? begins : 0,
                                                 .sums = coarse};
    struct hec_owners owners;
    if (!hec_timeline(&request, &(struct hec_timeline_result){.step = step, .owners = &owners}) ||
        !hec_script_of(module, costs, arena, &script))
        return false;
    const int64_t first = steps > 1, count = steps - first;
    for (int64_t i = first; i < steps; i++) // Counted by itself, below.
        step[i].us -= step[i].spent[HEC_SPENT_STATES];
    qsort(step + first, (size_t)count, sizeof *step, by_us);
    // What changes of owners take is divided over the steps of their interval; one of these is not the median. Loads that end
    // before it has passed say neither what a change takes nor what it gives.
    const double between = owners.loads_are_short ? 0 : owners.us_of_a_step;
    *score = (struct hec_step_score){
        .us = step[first + count / 2].us + between,
        .tokens = devices *
                  (double)(iterations * hec_module_batch(module) * hec_module_positions(module)),
        .bytes = (double)hec_timeline_bytes(search, &movement).all,
        .memory = costs->machine.memory,
        .actions = devices * (double)(script.count * iterations * steps),
        .overlap = movement.overlap,
        .slots = movement.slots,
        .wave_rows = costs->count ? costs->set[0].wave_rows : 0,
        .ranks = hec_module_world(module),
        .positions = hec_module_positions(module),
        .vocabulary = hec_module_has_vocabulary(module) ? hec_module_vocabulary(module) : 0,
    };
    return true;
}

bool hec_simulate_score(MlirOperation module, int64_t steps, bool coarse,
                        struct hec_step_score *score) {
    struct hec_arena arena = {0};
    struct hec_search *search = HEC_NEW(&arena, struct hec_search);
    bool sound = hec_search_prepare(module, &arena, search);
    struct hpl_policy run;
    if (sound && search->policy) {
        run = hpl_policy_of_programs(search->policy);
        search->policy = &run;
    }
    sound = sound && score_of(module, steps, coarse, &arena, search, score);
    hec_recorded_free(search);
    hec_arena_free(&arena);
    return sound;
}
