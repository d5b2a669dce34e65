// Candidates and the choice among them.
//
// t first: what the windows hide, from bytes. Then m at that t, t around it, and again until neither
// changes; then without calibration; each with and without re-materialization. Of those that fit in
// memory the fastest wins, and of those within one part in a hundred the one that takes least memory.
// What is waited for is part of the time: a chunk that nothing hides may still save more rows than it
// costs.
#include "passes/cost/search.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/cost/parallel.h"
#include "passes/cost/recorded.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/reshard.h"
#include "runtime/plan/slots.h"

// Layer-steps per simulation, and how many (device, expert) pairs one has before there are fewer of
// them: hecatec has no time for more.
enum { STEPS = 16, STEPS_LEAST = 2, PAIRS = 2048, ROUNDS = 4 };

static const double alike = 0.01, surprise = 0.03;

// ---- what the user said

enum { LISTED_MAX = 16 };

static bool read_policy(MlirOperation module, struct hec_search *s) {
    const MlirStringRef experts = hec_setting_text(module, HEC_KEY_parallel_experts);
    char name[HPL_POLICY_NAME] = "fssdp";
    s->base.even = hec_setting_is(module, HEC_KEY_parallel_placement_dispatch, "even");
    if (mlirStringRefEqual(experts, HEC_STR("fssdp"))) {
        if (s->base.even) strcpy(name, "hecate");
    } else if (experts.length < sizeof name) {
        memcpy(name, experts.data, experts.length);
        name[experts.length] = 0;
    }
    s->policy = hpl_policy_find(name);
    if (!s->policy) {
        hec_ir_error(module, "there is no policy '%.*s' to place experts with", (int)experts.length,
                     experts.data);
        return false;
    }
    // A policy that is named splits rows as its authors do.
    if (!mlirStringRefEqual(experts, HEC_STR("fssdp")))
        s->base.even = s->policy->split != HPL_SPLIT_QUOTA && s->policy->split != HPL_SPLIT_PLANNED;
    return true;
}

static void read_settings(MlirOperation module, struct hec_search *s) {
    s->fixed_overlap = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_overlap);
    s->fixed_slots = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_memory);
    s->fixed_calibrate = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_calibrate);
    s->fixed_rematerialize = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_rematerialize);
    s->slot_bytes = hec_setting_bytes(module, HEC_KEY_parallel_placement_memory);
    s->fixed_slots &= s->slot_bytes == 0;
    s->base.window = hec_setting_count(module, HEC_KEY_parallel_placement_forecast_iterations, 5);
    const int64_t every =
        hec_setting_count(module, HEC_KEY_parallel_placement_reshard_iterations, 100);
    const bool never = hec_setting_is(module, HEC_KEY_parallel_placement_reshard, "never");
    s->base.reshard_every = never ? 0 : every;
}

// ---- what windows hide

static void find_fits(struct hec_search *s) {
    s->fit_forward = s->fit_early = s->fit_late = s->fit_rematerialized = INT32_MAX;
    for (int i = 0; i < s->costs.count; i++) {
        const struct hec_set_cost *c = &s->costs.set[i];
        const struct hec_machine *m = &s->costs.machine;
        const int64_t fit[] = {
            hec_fitting(m, c->window_us, c->chunk_bytes),
            hec_fitting(m, hec_early_window_us(c), c->chunk_bytes),
            hec_fitting(m, hec_late_window_us(c), c->grad_bytes),
            hec_fitting(m, c->rematerialize_window_us, c->chunk_bytes + c->grad_bytes),
        };
        if (fit[0] < s->fit_forward) s->fit_forward = fit[0];
        if (fit[1] < s->fit_early) s->fit_early = fit[1];
        if (fit[2] < s->fit_late) s->fit_late = fit[2];
        if (fit[3] < s->fit_rematerialized) s->fit_rematerialized = fit[3];
    }
}

// ---- memory

struct hpl_slots hec_slots_of(const struct hec_costs *costs, const struct hec_set_cost *set,
                              const struct hpl_policy *policy, int64_t slots, bool rematerialize) {
    const struct hpl_slots_request request = {
        .policy = policy,
        .experts = set->experts,
        .devices = (int32_t)(costs->machine.nodes * costs->machine.devices),
        .layers = set->layers,
        .slots = slots,
        .rematerialize = rematerialize,
        .param_bytes = set->chunk_bytes,
        .grad_bytes = set->grad_bytes,
    };
    return hpl_slots_of(&request);
}

int64_t hec_replica_bytes(const struct hec_costs *costs, const struct hpl_policy *policy,
                          int64_t slots, bool rematerialize) {
    int64_t bytes = 0;
    for (int i = 0; i < costs->count; i++) {
        const struct hpl_slots taken =
            hec_slots_of(costs, &costs->set[i], policy, slots, rematerialize);
        bytes += taken.params + taken.grads + taken.staging;
    }
    return bytes;
}

int64_t hec_owned_bytes(const struct hec_costs *costs, bool spread) {
    const int64_t devices = costs->machine.nodes * costs->machine.devices;
    int64_t bytes = 0;
    for (int i = 0; i < costs->count; i++) {
        const struct hec_set_cost *c = &costs->set[i];
        const int64_t layer = (c->experts + devices - 1) / devices * c->layers;
        const int64_t all = (c->layers * c->experts + devices - 1) / devices;
        bytes += (spread ? all : layer) * c->owner_bytes;
    }
    return bytes;
}

// ---- owners

static void even_owners(int32_t *owner, int64_t layers, int32_t experts, int64_t devices) {
    for (int64_t i = 0; i < layers * experts; i++)
        owner[i] = hpl_even_owner(i % experts, experts, devices);
}

// Chunks of all layers in turn, so that every device owns equally many also where a layer's experts do
// not divide by the devices.
static void spread_owners(int32_t *owner, int64_t layers, int32_t experts, int64_t devices) {
    for (int64_t i = 0; i < layers * experts; i++) owner[i] = (int32_t)(i % devices);
}

static bool reshard(struct hec_search *s, int set, struct hec_arena *arena, int64_t overlap) {
    const struct hec_set_cost *c = &s->costs.set[set];
    const struct hec_machine *m = &s->costs.machine;
    const int64_t devices = m->nodes * m->devices, chunks = c->layers * c->experts;
    int32_t *first = hec_arena_alloc(arena, (size_t)m->nodes + 1, sizeof *first);
    int32_t *node = hec_arena_alloc(arena, (size_t)devices, sizeof *node);
    int32_t *speed = hec_arena_alloc(arena, (size_t)devices, sizeof *speed);
    for (int64_t n = 0; n <= m->nodes; n++) first[n] = (int32_t)(n * m->devices);
    for (int64_t d = 0; d < devices; d++) node[d] = (int32_t)(d / m->devices), speed[d] = 1;
    const struct hpl_topology topology = {(int32_t)devices, (int32_t)m->nodes, first, node, speed};
    int64_t *rows = hec_arena_alloc(arena, (size_t)chunks, sizeof *rows);
    int32_t *even = hec_arena_alloc(arena, (size_t)chunks, sizeof *even);
    memcpy(even, s->owner[set], (size_t)chunks * sizeof *even);
    hec_recorded_totals(s, set, rows);
    const size_t bytes =
        hpl_reshard_work_bytes((int32_t)c->layers, c->experts, (int32_t)devices, (int32_t)m->nodes);
    struct hpl_work work = {.at = hec_arena_alloc(arena, bytes, 1)};
    work.end = work.at + bytes;
    return hpl_reshard(&topology, (int32_t)c->layers, c->experts, rows, (int32_t)overlap, even,
                       s->owner[set], &work) == HPL_OK;
}

// First owners: consecutive experts, or after recorded loads. Where owners may be anything, every device
// gets equally many chunks over all layers.
static bool choose_owners(MlirOperation module, struct hec_search *s, struct hec_arena *arena,
                          int64_t overlap) {
    const int64_t devices = s->costs.machine.nodes * s->costs.machine.devices;
    s->owner = hec_arena_alloc(arena, (size_t)s->costs.count, sizeof *s->owner);
    s->sharded = s->recorded && s->policy->calibrates;
    for (int i = 0; i < s->costs.count; i++) {
        const struct hec_set_cost *c = &s->costs.set[i];
        s->owner[i] = hec_arena_alloc(arena, (size_t)(c->layers * c->experts), sizeof **s->owner);
        if (s->policy->calibrates && c->experts % devices != 0 && c->layers > 1) {
            spread_owners(s->owner[i], c->layers, c->experts, devices);
            s->spread = true;
        } else {
            even_owners(s->owner[i], c->layers, c->experts, devices);
        }
        if (!s->sharded) continue;
        const int64_t most = overlap < c->experts ? overlap : c->experts;
        if (reshard(s, i, arena, most)) continue;
        hec_ir_error(module, "the planner refuses the loads of '%s'", s->recorded);
        return false;
    }
    return true;
}

// ---- simulation

struct hec_scene hec_search_scene(const struct hec_search *s, int set) {
    const struct hec_set_cost *c = &s->costs.set[set];
    const int64_t layers = s->recorded ? c->layers : s->loads[set].layers;
    const int64_t pairs = s->costs.machine.nodes * s->costs.machine.devices * c->experts;
    const int64_t steps = pairs > PAIRS ? STEPS * PAIRS / pairs : STEPS;
    // One step of a layer beside which others count many times as much, such as that of a second token.
    const int64_t least = c->layers * STEPS < hec_layers_of(&s->costs) ? 1 : STEPS_LEAST;
    return (struct hec_scene){.machine = &s->costs.machine,
                              .cost = c,
                              .loads = &s->loads[set],
                              .layer = hec_recorded_layer(s, set),
                              .layers = layers,
                              .owner = s->owner[set],
                              .steps = steps > least ? steps : least};
}

bool hec_search_phases(const struct hec_search *s, int set, const struct hpl_movement *movement,
                       struct hec_phases *phases) {
    const struct hec_scene scene = hec_search_scene(s, set);
    return hec_simulate(&scene, movement, phases);
}

// Sums phases over the sets: means per layer, and the time of an iteration.
static bool simulate(const struct hec_search *s, const struct hpl_movement *movement,
                     struct hec_phases *mean, double us[2]) {
    const int64_t layers = hec_layers_of(&s->costs);
    *mean = (struct hec_phases){0};
    us[0] = us[1] = s->costs.dense_us;
    for (int i = 0; i < s->costs.count; i++) {
        const struct hec_scene scene = hec_search_scene(s, i);
        const double count = (double)s->costs.set[i].layers;
        struct hec_phases phases;
        if (!movement) {
            hec_simulate_balanced(&scene, &phases);
        } else if (!hec_simulate(&scene, movement, &phases)) {
            return false;
        }
        hec_phases_add(mean, &phases, count / (double)layers);
        for (int remade = 0; remade < 2; remade++)
            us[remade] += count * hec_layer_us(&phases, remade);
    }
    return true;
}

// A choice to compare, and what its simulation says.
struct compared {
    const struct hec_search *search;
    struct hpl_movement movement;
    struct hec_phases phases;
    double us[2];
    bool sound;
};

static void simulate_one(void *context, int number) {
    struct compared *c = (struct compared *)context + number;
    c->sound = simulate(c->search, &c->movement, &c->phases, c->us);
}

static bool is_same(const struct hpl_movement *a, const struct hpl_movement *b) {
    return a->overlap == b->overlap && a->slots == b->slots && a->calibrate == b->calibrate;
}

static bool is_known(const struct hec_search *s, const struct hpl_movement *choice) {
    bool known = false;
    for (int i = 0; i < s->count; i++) known |= is_same(&s->candidate[i].movement, choice);
    return known;
}

// Adds the candidate, with and without re-materialization where both are open.
static void add(struct hec_search *s, const struct compared *of, int rematerialize) {
    const struct hec_phases *phases = &of->phases;
    for (int remade = 0; remade < 2; remade++) {
        if ((rematerialize >= 0 && rematerialize != remade) || s->count == HEC_CANDIDATES_MAX)
            continue;
        struct hec_candidate *c = &s->candidate[s->count++];
        const double all =
            phases->calibrate_us + phases->reduce_us + (1 + remade) * phases->gather_us;
        const double waited = phases->calibrate_us +
                              (remade ? phases->exposed_rematerialized_us : phases->exposed_us);
        *c = (struct hec_candidate){.movement = of->movement,
                                    .phases = *phases,
                                    .iteration_us = of->us[remade],
                                    .exposed = all > 0 ? waited / all : 0};
        c->movement.rematerialize = remade;
        c->replica_bytes = hec_replica_bytes(&s->costs, s->policy, of->movement.slots, remade);
        const int64_t room = s->slot_bytes ? s->slot_bytes : s->room_bytes;
        c->fits = room < 0 || c->replica_bytes <= room; // Less than nothing decides nothing.
    }
}

// Adds the choices that are not known yet, in their order, as far as there is room; those that the planner refuses, as a policy does
// that cannot hold all experts in so few slots, are left out.
static void consider(struct hec_search *s, const struct hpl_movement *choice, int count,
                     int rematerialize) {
    struct compared compared[LISTED_MAX];
    for (int at = 0; at < count && s->count < s->most;) {
        int wanted = 0;
        for (; at < count && s->count + wanted < s->most; at++) {
            bool known = is_known(s, &choice[at]);
            for (int k = 0; k < wanted; k++) known |= is_same(&compared[k].movement, &choice[at]);
            if (!known) compared[wanted++] = (struct compared){.search = s, .movement = choice[at]};
        }
        hec_in_parallel(wanted, simulate_one, compared);
        for (int i = 0; i < wanted; i++) {
            if (compared[i].sound && s->count < s->most) add(s, &compared[i], rematerialize);
        }
    }
}

// ---- the choice

// Whether `a` is faster than `b`, or nearer to what memory there is.
static bool is_faster(const struct hec_candidate *a, const struct hec_candidate *b) {
    if (a->fits != b->fits) return a->fits;
    if (!a->fits) return a->replica_bytes < b->replica_bytes;
    return a->iteration_us < b->iteration_us;
}

// The best one but `except`; -1: there is none.
static int best_of(const struct hec_search *s, int except) {
    int fastest = -1;
    for (int i = 0; i < s->count; i++) {
        if (i == except) continue;
        if (fastest < 0 || is_faster(&s->candidate[i], &s->candidate[fastest])) fastest = i;
    }
    if (fastest < 0 || !s->candidate[fastest].fits) return fastest;
    int best = fastest;
    for (int i = 0; i < s->count; i++) {
        const struct hec_candidate *c = &s->candidate[i];
        const bool near = c->iteration_us <= (1 + alike) * s->candidate[fastest].iteration_us;
        if (i != except && c->fits && near && c->replica_bytes < s->candidate[best].replica_bytes)
            best = i;
    }
    return best;
}

// The same candidate with calibration, where it costs next to nothing: loads that are assumed can be
// forecast better than those of a model that begins to learn. Real ones need no such allowance.
static int with_calibration(const struct hec_search *s, int chosen) {
    const struct hec_candidate *c = &s->candidate[chosen];
    for (int i = 0; i < s->count && !s->recorded; i++) {
        const struct hec_candidate *other = &s->candidate[i];
        if (other->movement.calibrate != HPL_CALIBRATES_NEVER &&
            other->movement.overlap == c->movement.overlap &&
            other->movement.slots == c->movement.slots &&
            other->movement.rematerialize == c->movement.rematerialize && other->fits == c->fits &&
            other->iteration_us <= (1 + surprise) * c->iteration_us)
            return i;
    }
    return chosen;
}

static void choose(struct hec_search *s) {
    s->chosen = with_calibration(s, best_of(s, -1));
    s->second = best_of(s, s->chosen);
}

static int64_t most_experts(const struct hec_search *s) {
    int64_t most = 0;
    for (int i = 0; i < s->costs.count; i++) {
        if (s->costs.set[i].experts > most) most = s->costs.set[i].experts;
    }
    return most;
}

// Re-materialization where the policy leaves it open: nobody can keep all experts of all layers,
// and what is placed for many iterations stays.
static int rematerializes(MlirOperation module, const struct hec_search *s) {
    if (hpl_gathers_all(s->policy)) return 1;
    if (s->policy->when == HPL_WHEN_PERIODIC) return 0;
    if (!s->fixed_rematerialize) return -1;
    return hec_setting_is(module, HEC_KEY_parallel_placement_rematerialize, "true");
}

static void vary_slots(MlirOperation module, struct hec_search *s, struct hpl_movement c,
                       int rematerialize) {
    // Policies that keep nothing at owners need room for all experts.
    const int64_t devices = s->costs.machine.nodes * s->costs.machine.devices;
    const int64_t share = (most_experts(s) + devices - 1) / devices;
    int64_t value[LISTED_MAX] = {1, 2, 3, 4, 6, 8, 12, 16, share, share + 1, 2 * share};
    const int given =
        hec_setting_listed(module, HEC_KEY_parallel_placement_memory, value, LISTED_MAX);
    const int usual = hpl_from_shards(s->policy) ? 11 : 8;
    struct hpl_movement choice[LISTED_MAX];
    int count = 0;
    for (int i = 0; i < (given ? given : usual); i++) {
        c.slots = value[i];
        if (c.slots <= most_experts(s)) choice[count++] = c;
    }
    consider(s, choice, count, rematerialize);
}

static void vary_overlap(MlirOperation module, struct hec_search *s, struct hpl_movement c,
                         int rematerialize) {
    const int64_t t = c.overlap;
    int64_t value[LISTED_MAX] = {t / 4,     t / 2,     3 * t / 4, t + 1,
                                 5 * t / 4, 3 * t / 2, 2 * t,     4 * t};
    const int given =
                  hec_setting_listed(module, HEC_KEY_parallel_placement_overlap, value, LISTED_MAX),
              usual = 8;
    const int count = given ? given : usual;
    struct hpl_movement choice[LISTED_MAX];
    for (int i = 0; i < count; i++) {
        c.overlap = value[i] < most_experts(s) ? value[i] : most_experts(s);
        choice[i] = c;
    }
    consider(s, choice, count, rematerialize);
}

// Whether the number of slots makes a difference: some policies replicate as they see fit.
static bool uses_slots(const struct hec_search *s) {
    return hec_replica_bytes(&s->costs, s->policy, 1, true) !=
           hec_replica_bytes(&s->costs, s->policy, 2, true);
}

// A candidate takes time in proportion to experts times devices: with very many of both few are compared.
static int most_candidates(const struct hec_search *s) {
    enum { CELLS = 1 << 24, LEAST = 4 };
    const int64_t devices = s->costs.machine.nodes * s->costs.machine.devices;
    int64_t cells = 1;
    for (int i = 0; i < s->costs.count; i++) {
        const int64_t own = s->costs.set[i].experts * devices;
        if (own > cells) cells = own;
    }
    const int64_t most = CELLS / cells;
    return (int)(most < LEAST ? LEAST : most > HEC_CANDIDATES_MAX ? HEC_CANDIDATES_MAX : most);
}

static void find_candidates(MlirOperation module, struct hec_search *s, int64_t overlap) {
    const bool calibrate = s->policy->calibrates &&
                           !hec_setting_is(module, HEC_KEY_parallel_placement_calibrate, "false");
    const int rematerialize = rematerializes(module, s);
    struct hpl_movement c = s->base;
    c.overlap = overlap;
    c.calibrate = calibrate ? HPL_CALIBRATES_WORTH : HPL_CALIBRATES_NEVER;
    c.slots = hec_setting_count(module, HEC_KEY_parallel_placement_memory, 0);
    s->uses_overlap = s->policy->calibrates; // The planner's own two policies.
    s->uses_slots = uses_slots(s);
    s->most = most_candidates(s);
    for (int round = 0; round < ROUNDS; round++) {
        const struct hpl_movement before = c;
        if (s->fixed_slots || !s->uses_slots) {
            consider(s, &c, 1, rematerialize);
        } else {
            vary_slots(module, s, c, rematerialize);
        }
        if (s->count == 0) return;
        choose(s);
        c.slots = s->candidate[s->chosen].movement.slots;
        if (!s->fixed_overlap && s->uses_overlap) vary_overlap(module, s, c, rematerialize);
        choose(s);
        c = s->candidate[s->chosen].movement;
        if (c.overlap == before.overlap && c.slots == before.slots) break;
    }
    c = s->candidate[s->chosen].movement;
    c.calibrate = HPL_CALIBRATES_NEVER;
    if (!s->fixed_calibrate && calibrate) consider(s, &c, 1, rematerialize);
}

static bool find_baselines(struct hec_search *s) {
    const struct hpl_movement ep = {.policy = "ep", .even = true, .window = 1};
    double us[2];
    if (!simulate(s, &ep, &s->expert_parallel, us)) return false;
    s->expert_parallel_us = us[0];
    simulate(s, NULL, &s->balanced, us);
    s->balanced_us = us[0];
    return true;
}

// The largest `overlap` that is listed and not above it; the least listed where all are above.
static int64_t among_listed(MlirOperation module, int64_t overlap) {
    int64_t value[LISTED_MAX], best = -1, least = INT64_MAX;
    const int given =
        hec_setting_listed(module, HEC_KEY_parallel_placement_overlap, value, LISTED_MAX);
    for (int i = 0; i < given; i++) {
        if (value[i] <= overlap && value[i] > best) best = value[i];
        if (value[i] < least) least = value[i];
    }
    if (given == 0) return overlap;
    return best >= 0 ? best : least;
}

static bool prepare(MlirOperation module, struct hec_arena *arena, struct hec_search *s) {
    *s = (struct hec_search){0};
    if (!hec_costs_of(module, &s->costs) || !read_policy(module, s)) return false;
    strcpy(s->base.policy, s->policy->name);
    hec_set_prices(&s->base, &s->costs.machine, s->costs.set, s->costs.count);
    read_settings(module, s);
    find_fits(s);
    return hec_recorded_read(module, arena, s);
}

// The entries to begin with.
static int64_t first_overlap(MlirOperation module, const struct hec_search *s) {
    int64_t overlap = s->fit_early < s->fit_late ? s->fit_early : s->fit_late;
    if (rematerializes(module, s) == 1)
        overlap = s->fit_forward < s->fit_rematerialized ? s->fit_forward : s->fit_rematerialized;
    if (overlap > most_experts(s)) overlap = most_experts(s);
    if (s->fixed_overlap)
        overlap = hec_setting_count(module, HEC_KEY_parallel_placement_overlap, 0);
    return among_listed(module, overlap);
}

// The owners that the module names, or those of a program without a table.
static void read_owners(MlirOperation module, struct hec_arena *arena, struct hec_search *s) {
    const int64_t devices = s->costs.machine.nodes * s->costs.machine.devices;
    s->owner = hec_arena_alloc(arena, (size_t)s->costs.count, sizeof *s->owner);
    for (int i = 0; i < s->costs.count; i++) {
        const struct hec_set_cost *c = &s->costs.set[i];
        const int64_t chunks = c->layers * c->experts;
        const MlirOperation set = hec_find_symbol(module, HEC_STR(c->name));
        s->owner[i] = hec_arena_alloc(arena, (size_t)chunks, sizeof **s->owner);
        even_owners(s->owner[i], c->layers, c->experts, devices);
        if (!hec_set_has_owner(set)) continue;
        for (int64_t k = 0; k < chunks; k++)
            s->owner[i][k] = mlirDenseI32ArrayGetElement(hec_set_owner(set), k);
    }
}

bool hec_search_prepare(MlirOperation module, struct hec_arena *arena, struct hec_search *s) {
    if (!hec_has_ranks(module) || hec_setting_is(module, HEC_KEY_parallel_experts, "replicate")) {
        *s = (struct hec_search){0};
        return hec_machine_of(module, &s->costs.machine);
    }
    if (!prepare(module, arena, s)) return false;
    read_owners(module, arena, s);
    return true;
}

bool hec_search(MlirOperation module, struct hec_arena *arena, struct hec_search *s) {
    if (!prepare(module, arena, s)) return false;
    s->room_bytes = (int64_t)s->costs.machine.memory - s->costs.dense_bytes - s->costs.saved_bytes -
                    hec_owned_bytes(&s->costs, s->policy->calibrates);
    const int64_t overlap = first_overlap(module, s);
    if (!choose_owners(module, s, arena, overlap)) return false;
    find_candidates(module, s, overlap);
    if (s->count == 0 || !find_baselines(s)) {
        hec_ir_error(
            module,
            "`parallel.experts = %s` cannot place these experts on this cluster, with %s slots",
            s->policy->name, s->fixed_slots ? "so few" : "1 to 8");
        return false;
    }
    choose(s);
    return true;
}
