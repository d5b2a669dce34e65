// A module's policy, costs and loads, from its settings.
#include "passes/cost/setup.h"

#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/cost/recorded.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/policy.h"

// ---- the policy

static bool read_policy(MlirOperation module, struct hec_setup *s) {
    const MlirStringRef experts = hec_setting_text(module, HEC_KEY_parallel_experts);
    char name[HPL_POLICY_NAME] = "fssdp"; // Also of auto that nobody has chosen for.
    const bool own = mlirStringRefEqual(experts, HEC_STR("fssdp")) ||
                     mlirStringRefEqual(experts, HEC_STR("auto"));
    s->movement.even = hec_setting_is(module, HEC_KEY_parallel_placement_dispatch, "even");
    if (own) {
        if (s->movement.even) strcpy(name, "hecate");
    } else if (experts.length < sizeof name) {
        memcpy(name, experts.data, experts.length);
        name[experts.length] = 0;
    }
    s->policy = hpl_policy_find(name);
    if (!s->policy)
        return hec_ir_error(module, "there is no policy '%.*s' to place experts with",
                            (int)experts.length, experts.data);
    // A policy that is named splits rows as its authors do.
    if (!own)
        s->movement.even =
            s->policy->split != HPL_SPLIT_QUOTA && s->policy->split != HPL_SPLIT_PLANNED;
    return true;
}

static bool read_lifetime(MlirOperation module, struct hec_setup *s) {
    struct hpl_movement *m = &s->movement;
    m->iterations = hec_step_iterations(module, &s->costs.machine);
    if (hec_setting_is(module, HEC_KEY_parallel_placement_lifetime, "step"))
        m->lifetime = HPL_LIFETIME_STEP;
    if (m->lifetime == HPL_LIFETIME_ITERATION || hpl_may_last(s->policy)) return true;
    return hec_ir_error(module,
                        "not yet: `parallel.placement.lifetime = step` of `%s`, which plans on the "
                        "counts of each iteration",
                        s->policy->name);
}

// The settings that leave the search no choice.
static void read_settings(MlirOperation module, struct hec_setup *s) {
    struct hpl_movement *m = &s->movement;
    strcpy(m->policy, s->policy->name);
    hec_set_prices(m, &s->costs.machine, s->costs.set, s->costs.count);
    m->window = hec_setting_count(module, HEC_KEY_parallel_placement_forecast_iterations, 5);
    m->known = hec_setting_is(module, HEC_KEY_parallel_placement_forecast, "routes");
    if (!hec_setting_is(module, HEC_KEY_parallel_placement_reshard, "never"))
        m->reshard_every =
            hec_setting_count(module, HEC_KEY_parallel_placement_reshard_iterations, 100);
}

// ---- memory

struct hpl_slots hec_slots_of(const struct hec_costs *costs, const struct hec_set_cost *set,
                              const struct hpl_policy *policy,
                              const struct hpl_movement *movement) {
    const struct hpl_slots_request request = {
        .policy = policy,
        .experts = set->experts,
        .devices = (int32_t)(costs->machine.nodes * costs->machine.devices),
        .layers = set->layers,
        .slots = movement->slots,
        .rematerialize = movement->rematerialize,
        .for_step = movement->lifetime == HPL_LIFETIME_STEP,
        .param_bytes = set->chunk_bytes,
        .grad_bytes = set->grad_bytes,
    };
    return hpl_slots_of(&request);
}

int64_t hec_replica_bytes(const struct hec_costs *costs, const struct hpl_policy *policy,
                          const struct hpl_movement *movement) {
    int64_t bytes = 0;
    for (int i = 0; i < costs->count; i++) {
        const struct hpl_slots taken = hec_slots_of(costs, &costs->set[i], policy, movement);
        bytes += taken.params + taken.grads + taken.staging;
    }
    return bytes;
}

// ---- owners

// The owners that the module names, or those of a program without a table.
static void read_owners(MlirOperation module, struct hec_arena *arena, struct hec_setup *s) {
    const int64_t devices = s->costs.machine.nodes * s->costs.machine.devices;
    s->owner = hec_arena_alloc(arena, (size_t)s->costs.count, sizeof *s->owner);
    for (int i = 0; i < s->costs.count; i++) {
        const struct hec_set_cost *c = &s->costs.set[i];
        const int64_t chunks = c->layers * c->experts;
        const MlirOperation set = hec_find_symbol(module, HEC_STR(c->name));
        s->owner[i] = hec_arena_alloc(arena, (size_t)chunks, sizeof **s->owner);
        for (int64_t k = 0; k < chunks; k++)
            s->owner[i][k] = hpl_even_owner(k % c->experts, c->experts, devices);
        if (!hec_set_has_owner(set)) continue;
        for (int64_t k = 0; k < chunks; k++)
            s->owner[i][k] = mlirDenseI32ArrayGetElement(hec_set_owner(set), k);
    }
}

// ---- all of it

struct hec_scene hec_setup_scene(const struct hec_setup *s, int set) {
    const struct hec_set_cost *c = &s->costs.set[set];
    return (struct hec_scene){.machine = &s->costs.machine,
                              .cost = c,
                              .loads = &s->loads[set],
                              .layer = hec_recorded_layer(s, set),
                              .layers = s->recorded ? c->layers : s->loads[set].layers,
                              .owner = s->owner[set]};
}

int64_t hec_setup_begin(const struct hec_setup *s, int64_t iterations) {
    const int64_t full = s->movement.window, last = s->recorded_times - iterations;
    return s->recorded && last > full ? last : full;
}

bool hec_setup_read(MlirOperation module, struct hec_arena *arena, struct hec_setup *s) {
    struct hpl_movement said;
    *s = (struct hec_setup){0};
    if (!hec_has_ranks(module) || hec_setting_is(module, HEC_KEY_parallel_experts, "replicate"))
        return hec_machine_of(module, &s->costs.machine);
    if (!hec_costs_of(module, &s->costs) || !read_policy(module, s) || !read_lifetime(module, s))
        return false;
    read_settings(module, s);
    if (hec_moves_experts(module) && hec_movement_read(module, &said)) {
        s->movement = said;
        s->policy = hpl_policy_find(said.policy); // A plan file may name another one.
    }
    read_owners(module, arena, s);
    return hec_recorded_read(module, arena, s);
}
