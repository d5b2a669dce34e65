// The start of all simulations of a module: costs, policy, loads, owners. From the module, once; nothing of it
// changes.
#ifndef HECATE_PASSES_COST_SETUP_H
#define HECATE_PASSES_COST_SETUP_H

#include "lang/base/arena.h"
#include "passes/cost/set_cost.h"
#include "runtime/plan/loads/loads.h"
#include "runtime/plan/slots.h"

// The loads assumed without a record: popularity follows Zipf's law, its logarithm takes a random walk,
// and each device has a preference.
extern const double hec_assumed_skew, hec_assumed_drift, hec_assumed_bias;

struct hec_setup {
    struct hec_costs costs;
    const struct hpl_policy *policy;
    // How experts move: as the module says or, where pass shard has yet to choose, as far as nobody has to choose it:
    // t, m, calibration and re-materialization are zeros.
    struct hpl_movement movement;
    const char *recorded;   // Path; NULL: loads are assumed.
    int64_t recorded_times; // Iterations in it, microbatches counted.
    struct loads *loads;    // [sets] one for all with recorded loads.
    int32_t **owner;        // [sets] first owners, [layers][experts].
};

// The scene of a set's layers: layers `layer` .. `layer` + `layers` - 1 of `loads` on the machine's devices;
// `owner` [layers][experts]. The first stands for the set's first layer, the others for as many as the set has.
struct hec_scene {
    const struct hec_machine *machine;
    const struct hec_set_cost *cost;
    const struct loads *loads;
    int64_t layer, layers;
    const int32_t *owner;
};

// Where no rows of experts are sent to other ranks there is only the machine. False after a report.
// Loads are freed with hec_recorded_free, the rest with the arena.
bool hec_setup_read(MlirOperation module, struct hec_arena *arena, struct hec_setup *setup);

struct hec_scene hec_setup_scene(const struct hec_setup *setup, int set);

// The time of the loads to begin with so that the forecast is full from the first iteration on: that of the
// last `iterations` of recorded ones.
int64_t hec_setup_begin(const struct hec_setup *setup, int64_t iterations);

// The memory for replicas of one set on one device (runtime/plan/slots.h), by the movement's slots, lifetime and
// re-materialization.
struct hpl_slots hec_slots_of(const struct hec_costs *costs, const struct hec_set_cost *set,
                              const struct hpl_policy *policy, const struct hpl_movement *movement);

// The bytes of replicas on one device, all sets together.
int64_t hec_replica_bytes(const struct hec_costs *costs, const struct hpl_policy *policy,
                          const struct hpl_movement *movement);

#endif
