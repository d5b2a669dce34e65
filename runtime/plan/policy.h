// policy.h: the one interface of all placement policies, and the table of them (policies.def).
//
// A policy is (sharding, loads, budget, topology) -> plan. Some plan before the gate from a
// forecast, some after it from the exact counts, some rarely and by moving owners. How rows are
// then split over the holders is part of the policy too.
#ifndef HECATE_RUNTIME_PLAN_POLICY_H
#define HECATE_RUNTIME_PLAN_POLICY_H

#include "runtime/plan/share.h"
#include "runtime/plan/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Inputs of a policy. All borrowed.
struct hpl_problem {
    const struct hpl_topology *topology;
    int32_t experts;
    const int32_t *owner;           // [experts] device that owns each chunk
    const struct hpl_plan *present; // Replicas that are there already and stay; NULL for none.
                                    // For a periodic policy: the placement it may change.
    const struct hpl_loads
        *loads; // Forecast, or exact counts for policies that plan after the gate.
    struct hpl_budget budget;
    struct hpl_costs costs;
    int64_t serves; // Calibration: iterations that added replicas serve, this one included; 0: one.
};

// When a policy sees the loads it plans for.
enum hpl_when {
    HPL_WHEN_FORECAST, // Before the gate, from earlier iterations; movement hides behind attention.
    HPL_WHEN_EXACT,    // After the gate: planning and movement are on the critical path.
    HPL_WHEN_PERIODIC, // Every so many iterations, from earlier ones; movement is on the path.
};

// How rows are split over holders.
enum hpl_split {
    HPL_SPLIT_QUOTA,   // hpl_share on exact counts.
    HPL_SPLIT_PLANNED, // As the policy itself decided, from exact counts.
    HPL_SPLIT_NEAREST, // The three even splits of hpl_route_even.
    HPL_SPLIT_NODE,
    HPL_SPLIT_ALL,
};

// The even split of one of the last three.
static inline enum hpl_even hpl_split_even(enum hpl_split split) {
    if (split == HPL_SPLIT_NODE) return HPL_EVEN_NODE;
    return split == HPL_SPLIT_ALL ? HPL_EVEN_ALL : HPL_EVEN_NEAREST;
}

// Replicas of one layer that a policy may ask of a device, at most.
enum hpl_replicas {
    HPL_REPLICAS_NONE,
    HPL_REPLICAS_SLOTS, // The budget's.
    HPL_REPLICAS_EVEN,  // Its even part of the experts, and the slots: none of them may be its own.
    HPL_REPLICAS_OWNED, // As many as it owned at first, and the slots, likewise.
    HPL_REPLICAS_EVERY, // Every expert.
};

// How chunks reach their holders, and gradients come back (policies.def).
enum hpl_collective {
    HPL_COLLECTIVE_NONE,
    HPL_COLLECTIVE_SPARSE,
    HPL_COLLECTIVE_BROADCAST,
    HPL_COLLECTIVE_RELAY,
    HPL_COLLECTIVE_DIRECT,
    HPL_COLLECTIVE_ALL_TO_ALL,
    HPL_COLLECTIVE_ALL_GATHER,
    HPL_COLLECTIVE_EXCHANGE,
    HPL_COLLECTIVES
};

// Descriptions of them, for people.
extern const char *const hpl_collective_names[HPL_COLLECTIVES];

// Changes that the exact counts may make to a plan (policies.def).
enum hpl_gate { HPL_GATE_KEPT, HPL_GATE_CALIBRATED };

// A policy's function: hpl_place calls it. It need not give the workspace back.
typedef enum hpl_status hpl_place_fn(const struct hpl_problem *problem, struct hpl_plan *plan,
                                     int64_t *share, struct hpl_work *work);

// A row of policies.def.
struct hpl_policy {
    const char *name;    // As on the command line.
    const char *summary; // One line.
    enum hpl_when when;
    enum hpl_split split;
    enum hpl_replicas replicas;
    enum hpl_collective collective;
    // How programs move experts where they do not as the authors, whose collective simulations charge. "": they do.
    const char *programs;
    bool calibrates; // `place` can add to a present plan.
    hpl_place_fn *place;
};

extern const struct hpl_policy hpl_policies[];
extern const int32_t hpl_policy_count;

// Whether every chunk is cut over all devices, so that all of its holders gather it.
static inline bool hpl_from_shards(const struct hpl_policy *policy) {
    return policy->collective == HPL_COLLECTIVE_ALL_TO_ALL ||
           policy->collective == HPL_COLLECTIVE_ALL_GATHER;
}

// Whether every device gathers every expert, more than it can keep of all layers.
static inline bool hpl_gathers_all(const struct hpl_policy *policy) {
    return policy->collective == HPL_COLLECTIVE_ALL_GATHER;
}

// Whether the policy brings every expert into every node, as far as slots reach.
static inline bool hpl_fills_nodes(const struct hpl_policy *policy) {
    return policy->replicas == HPL_REPLICAS_SLOTS && !policy->calibrates &&
           policy->collective == HPL_COLLECTIVE_SPARSE;
}

// Whether replicas of the policy may live for a step of several iterations: its plan does not depend on the counts
// of each.
static inline bool hpl_may_last(const struct hpl_policy *policy) {
    return policy->when != HPL_WHEN_EXACT;
}

// Makes the policy's plan of a problem that hpl_problem_check accepts. `share` [plan->capacity] is
// written by policies that split as planned; others leave it alone, and it may be NULL. The same
// arguments give the same plan. HPL_BAD_ARGUMENT, HPL_NO_ROOM; `plan` is then undefined.
enum hpl_status hpl_place(const struct hpl_policy *policy, const struct hpl_problem *problem,
                          struct hpl_plan *plan, int64_t *share, struct hpl_work *work);

// The policy of that name, NULL when there is none.
const struct hpl_policy *hpl_policy_find(const char *name);

// Whether topology, owners, budget and load sizes fit together and stay within the limits. Policies
// rely on it; call it once where input enters.
enum hpl_status hpl_problem_check(const struct hpl_problem *problem);

#ifdef __cplusplus
}
#endif
#endif
