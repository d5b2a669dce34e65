// replay.h: replaying recorded loads through the planner's policies.
#ifndef HECATE_TOOLS_REPLAY_REPLAY_H
#define HECATE_TOOLS_REPLAY_REPLAY_H

#include <stdio.h>

#include "runtime/plan/loads/loads.h"
#include "runtime/plan/policy.h"
#include "runtime/plan/schedule.h"

// Exit codes of the program.
enum {
    REPLAY_OK = 0,
    REPLAY_BAD_INPUT = 1,   // The loads cannot be read, or an output cannot be written.
    REPLAY_BAD_COMMAND = 2, // A flag, or flags that do not fit the loads.
    REPLAY_INTERNAL = 70,   // Out of memory, or a policy broke its contract.
};

// Bytes of a chunk's optimizer states over its own: fp32 master copy and two moments beside bf16.
enum { STATE_FACTOR = 6 };

// The cluster of a run, and the policies' budget.
struct setting {
    struct hpl_topology topology;
    struct hpl_budget budget;
    struct hpl_costs costs;
    bool calibrate;        // Plan again after the gate, on the exact counts.
    bool calibrate_always; // Take it whenever it helps, at any price.
    uint32_t reserve;      // Slots that the plan before the gate leaves to calibration.
    uint32_t forecast_age; // Stored iterations between forecast and use; 0: the microbatch before.
    uint32_t window;       // Microbatches whose mean is the forecast.
    uint32_t period;       // Microbatches between two plans of a periodic policy.
    uint32_t early;        // Stored iterations before this one are reported as early.
    uint32_t reshard;      // Microbatches between two re-shardings (algorithm 2); 0: never.
    int32_t dispatch;      // An enum hpl_split for all policies, or -1 for each policy's own.
    uint32_t picture_layer;
    bool prints; // Whether the layer-step below is printed.
    uint32_t print_iteration, print_layer, print_microbatch;
};

// One layer and microbatch under one policy.
struct sample {
    uint32_t iteration, layer, microbatch;
    int64_t rows;        // All rows.
    int64_t cross;       // Rows that change node.
    int64_t intra;       // Rows that change device within a node.
    int64_t entries;     // Chunks that enter a node, all nodes.
    int64_t replicas;    // Chunks held besides the owners' own.
    int64_t exposed;     // Replicas added after the gate.
    int64_t states;      // Chunks whose optimizer states move.
    int64_t bytes;       // Bytes of all of that, received by all devices.
    int64_t grad_bytes;  // Gradients that come back, or are summed, received by all devices.
    int64_t plan_ns;     // Placement, shares and one rank's quotas.
    double bound;        // No plan within the budget has a lower imbalance, nor ...
    int64_t cross_bound; // ... with this one's largest load fewer rows across nodes.
    double imbalance;    // Largest device load over the mean, speeds counted.
};

// All samples of a policy, in the order of time, then layer.
struct series {
    const struct hpl_policy *policy;
    int64_t count;
    struct sample *samples;
    double *picture; // [count of the picture's layer][devices] load over the mean.
    int64_t picture_count;
};

// Runs a policy over all layer-steps that have a forecast. Prints one line and returns false when
// memory runs out or the policy fails. Free with series_free.
bool replay_run(const struct loads *loads, const struct setting *setting,
                const struct hpl_policy *policy, struct series *series);

void series_free(struct series *series);

// Figures of a part of a series.
struct summary {
    int64_t count;
    double mean, p95, worst;          // Statistics of the imbalance.
    double bound, distance;           // Mean bound of the imbalance; mean of imbalance / bound - 1.
    double cross, intra, cross_bound; // Shares of all rows.
    double entries, replicas, exposed, states; // Means for each layer-step; entries for each node.
    double megabytes, grad_megabytes;
    double plan_us, plan_us_p95;
};

// Summary over iterations from .. to - 1.
struct summary summarize(const struct series *series, uint32_t from, uint32_t to, int32_t nodes);

// One layer-step: input and output of a policy, as rank 0 sees them.
struct printed {
    const struct hpl_topology *topology;
    const int32_t *owner;
    const struct hpl_loads *loads; // Exact counts.
    const struct hpl_plan *plan;
    const uint32_t *rows; // Rank 0's quotas.
};

// Prints it as text (the forms: print.c), with the plan's gather schedule where owners
// hold their chunks. False when memory runs out.
bool print_step(FILE *file, const struct printed *printed, struct hpl_work *work);

// The table for people.
void text_report(FILE *out, const struct loads *loads, const struct setting *setting,
                 const struct series *series, int32_t count);

// The same as JSON, to a file or to standard output ("-"). Prints one line and returns false when it
// cannot be written.
bool json_report(const char *path, const struct loads *loads, const struct setting *setting,
                 const struct series *series, int32_t count);

// Every sample as a line of comma-separated values. Same errors.
bool csv_report(const char *path, const struct series *series, int32_t count);

// A picture of every device's load over time, one band for each policy. Same errors.
bool svg_report(const char *path, const struct setting *setting, const struct series *series,
                int32_t count);

#endif
