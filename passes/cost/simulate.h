// One iteration of one layer's experts, as phases: who computes how many rows, what travels, what is
// waited for. Plans are those of the episode that a program runs, so what is predicted is what it does.
#ifndef HECATE_PASSES_COST_SIMULATE_H
#define HECATE_PASSES_COST_SIMULATE_H

#include "passes/cost/set_cost.h"
#include "runtime/plan/loads/loads.h"
#include "runtime/plan/policy.h"

// Microseconds of one layer and iteration, and what they come from: means over the layer-steps that
// were simulated, of the busiest device or node in each.
struct hec_phases {
    double experts_us;                // Forward and backward; waves that are recomputed included.
    double balanced_us;               // The same if every device had the mean.
    double rows_us;                   // Rows there and back, forward and backward.
    double gather_us;                 // Parameters of replicas, once.
    double reduce_us;                 // Their gradients.
    double exposed_us;                // What of gather and reduce no computation hides.
    double exposed_rematerialized_us; // The same with re-materialization, which gathers twice.
    double calibrate_us;              // Replicas added behind the gate, waited for.
    double imbalance;                 // Largest load of a device over the mean.
    double cross, intra;              // Shares of rows that change node, and device inside a node.
    double device_rows;               // Rows that the busiest device sends or gets, one way.
    double node_rows;                 // Across the link of the busiest node.
    double entries;                   // Chunks that enter or leave the busiest node.
    double received;                  // Of the device that gets, or sends, most.
    double replicas;                  // All replicas of the layer.
    double waves;
};

static inline double hec_layer_us(const struct hec_phases *p, bool rematerialize) {
    return p->experts_us + p->rows_us + p->calibrate_us +
           (rematerialize ? p->exposed_rematerialized_us : p->exposed_us);
}

// Adds `factor` times `from`, field by field.
void hec_phases_add(struct hec_phases *to, const struct hec_phases *from, double factor);

// What layers are simulated with: `loads` of `cost`'s experts on the machine's devices, layers
// `layer` .. `layer` + `layers` - 1 of the file; `owner` [layers][experts].
struct hec_scene {
    const struct hec_machine *machine;
    const struct hec_set_cost *cost;
    const struct loads *loads;
    int64_t layer, layers;
    const int32_t *owner;
    int64_t steps; // Layer-steps to simulate at most; they are spread over layers and iterations.
};

// False: memory ran out, or the planner refused the numbers.
bool hec_simulate(const struct hec_scene *scene, const struct hpl_movement *movement,
                  struct hec_phases *phases);

// The same with every expert's rows spread evenly over all devices and no replicas: what perfectly
// balanced routing would cost under expert parallelism.
void hec_simulate_balanced(const struct hec_scene *scene, struct hec_phases *phases);

// Microseconds that chunks take to arrive where `entries` of them enter a node and `received` a device.
double hec_transfer_us(const struct hec_machine *machine, double entries, double received,
                       int64_t bytes);

#endif
