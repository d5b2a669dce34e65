// The timeline of a whole cluster: every device runs the program of a step (script.h) in virtual time, with plans of
// the planner's own on loads (traffic.h), over links that transfers share (lanes.h).
//
// Deterministic: the same module, choices and loads give the same times.
#ifndef HECATE_PASSES_TIMELINE_TIMELINE_H
#define HECATE_PASSES_TIMELINE_TIMELINE_H

#include "passes/cost/setup.h"
#include "passes/timeline/lanes.h"
#include "passes/timeline/script.h"

// Uses of a device's time.
enum hec_spent {
    HEC_SPENT_COMPUTE,   // Outside of experts, the optimizer included.
    HEC_SPENT_EXPERTS,   // On rows.
    HEC_SPENT_PLAN,      // Planning, which its host does.
    HEC_SPENT_COUNTS,    // Waiting for everybody's counts: for the last one, mostly.
    HEC_SPENT_ROWS,      // Waiting for rows and results.
    HEC_SPENT_CHUNKS,    // Waiting for parameters.
    HEC_SPENT_GRADIENTS, // Waiting for gradients of chunks.
    HEC_SPENT_UNITS,     // Waiting for dense parameters, and for their parts behind a step.
    HEC_SPENT_DENSE,     // Waiting for the dense sums, and for the step's norm.
    HEC_SPENT_STATES,    // Waiting for new owners' chunks with their states.
    HEC_SPENT
};
extern const char *const hec_spent_names[HEC_SPENT];

// A stretch of a device's own time.
struct hec_stretch {
    int32_t device, layer; // Layer -1: of none.
    bool back;
    enum hec_spent spent;
    const char *label; // Names the computation; NULL: there is none.
    double begin, end;
};

// Callbacks for events, in the order in which these end. Functions may be NULL.
struct hec_watcher {
    void (*stretch)(void *context, const struct hec_stretch *stretch);
    void (*part)(void *context, const struct hec_lanes *lanes, const struct hec_part *part);
    void (*sent)(void *context, const struct hec_lanes *lanes, const struct hec_sent *sent);
    void *context;
};

struct hec_timeline_request {
    const struct hec_setup *setup;
    const struct hec_script *script;
    const struct hpl_movement *movement; // The setup's, or another one.
    const struct hec_watcher *watcher;   // NULL: nobody.
    int64_t steps;
    int64_t begins; // The time of the first loads; lasting placements are half an interval old.
    bool sums; // Rows and chunks as sums through ports, as on many devices: several times as fast.
};

// Times of one step.
struct hec_step_time {
    double us;                 // From the end of the step before, on the last device.
    double body_us;            // Its part until the last iteration's gradients are there.
    double spent[HEC_SPENT];   // Means over devices.
    double slowest[HEC_SPENT]; // On the device that waits least.
    double imbalance;          // Mean over layers and iterations.
    double replicas;           // Mean of a layer.
    double cross;              // Part of rows that change node, likewise.
    double moved;              // Chunks that move with their states, to new owners or copies.
    double exposed;            // Waits for chunks and gradients, per layer and iteration.
    struct hec_path path;      // Splits the step's time along the critical path to the last device.
};

// Layers of the set that has most; 0: no experts.
int64_t hec_timeline_layers(const struct hec_setup *setup);

// New owners, and placements that last: how much a change of them moves, and how long it takes.
struct hec_owners {
    int64_t every;        // Iterations; 0: there are none.
    int64_t changes;      // In the steps. 0: the rest describes one simulated by itself.
    double chunks, us;    // In one change.
    bool loads_are_short; // Shorter than an interval: a change moves less than it would.
    double
        us_of_a_step; // Its part of a mean step: owners change behind the step in which their time has come.
};

struct hec_timeline_result {
    struct hec_step_time *step; // [steps]
    double
        *carried; // Bytes through each port, as hec_lanes_carried, of all steps; NULL: not wanted.
    // [hec_timeline_layers] the time that a mean device spends in a step on the experts of a layer, waiting included;
    // of the steps behind the first, which has no forecast. NULL: not wanted.
    double *layer_us;
    struct hec_owners *owners; // NULL: not wanted.
    double *ends; // [steps][iterations] when the last device ends each; NULL: not wanted.
};

// Simulates, into arrays of the caller's. Returns NULL, or why it cannot: the planner refuses, or devices wait
// for ever. Requests of one setup may be simulated at a time, by several threads.
const char *hec_timeline(const struct hec_timeline_request *request,
                         const struct hec_timeline_result *result);

#endif
