// The choices of movement: those of the user, and for the others the best of a few candidates, by
// simulation on recorded loads (--profile) or on assumed ones.
#ifndef HECATE_PASSES_COST_SEARCH_H
#define HECATE_PASSES_COST_SEARCH_H

#include "lang/base/arena.h"
#include "passes/cost/simulate.h"
#include "runtime/plan/slots.h"

enum { HEC_CANDIDATES_MAX = 128 };

// What is assumed where no loads were recorded: popularity by Zipf's law, a random walk of its
// logarithm, a preference of each device.
extern const double hec_assumed_skew, hec_assumed_drift, hec_assumed_bias;

// Choices of one candidate, and what they give, all sets together.
struct hec_candidate {
    struct hpl_movement movement;
    struct hec_phases phases; // Means per layer.
    double iteration_us;      // All layers of all sets, and what is no expert's.
    int64_t replica_bytes;    // On one device: runtime/plan/slots.h.
    bool fits;                // In memory.
    double exposed;           // Share of the collectives' time that is waited for.
};

struct hec_search {
    struct hec_costs costs;
    const struct hpl_policy *policy;
    struct hpl_movement base; // What all candidates have in common.
    // What the user fixed.
    bool uses_overlap, uses_slots; // Whether t and m mean anything to the policy.
    bool fixed_overlap, fixed_slots, fixed_calibrate, fixed_rematerialize;
    int64_t slot_bytes;     // placement.memory in bytes; 0: not given so.
    const char *recorded;   // Path; NULL: loads are assumed.
    int64_t recorded_times; // Iterations in it, microbatches counted.
    struct loads *loads;    // [sets] one for all with recorded loads.
    int32_t **owner;        // [sets] first owners, [layers][experts].
    bool sharded,
        spread; // Owners follow recorded loads; or all layers' chunks are dealt out in turn.
    // Chunks that windows hide: gather and, re-materialized, both; gather behind experts, and reduce.
    int64_t fit_forward, fit_rematerialized, fit_early, fit_late;
    int64_t room_bytes; // Of a device, for replicas; negative: not even the rest fits.
    int count;
    int most; // Candidates that are compared; fewer than HEC_CANDIDATES_MAX on a very large cluster.
    struct hec_candidate candidate[HEC_CANDIDATES_MAX];
    int chosen, second; // Of `candidate`; second -1: there is no other.
    struct hec_phases expert_parallel, balanced;
    double expert_parallel_us, balanced_us; // Iterations.
};

// Decides everything; memory is of `arena`. False after a report.
bool hec_search(MlirOperation module, struct hec_arena *arena, struct hec_search *search);

// What a search begins with: costs, policy, loads; and the owners that the module has. Where no rows of experts are
// sent to other ranks there is only the machine. False after a report.
bool hec_search_prepare(MlirOperation module, struct hec_arena *arena, struct hec_search *search);

// What one set is simulated with.
struct hec_scene hec_search_scene(const struct hec_search *search, int set);

// The phases of one set under given choices. False: the planner refuses them.
bool hec_search_phases(const struct hec_search *search, int set,
                       const struct hpl_movement *movement, struct hec_phases *phases);

// What replicas of one set take on one device (runtime/plan/slots.h).
struct hpl_slots hec_slots_of(const struct hec_costs *costs, const struct hec_set_cost *set,
                              const struct hpl_policy *policy, int64_t slots, bool rematerialize);

// The bytes of replicas on one device, and of owned chunks on the fullest one, all sets together.
// `spread`: over all layers; else each layer is divided for itself, as under expert parallelism.
int64_t hec_replica_bytes(const struct hec_costs *costs, const struct hpl_policy *policy,
                          int64_t slots, bool rematerialize);
int64_t hec_owned_bytes(const struct hec_costs *costs, bool spread);

#endif
