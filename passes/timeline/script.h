// The list of actions of every device in a step: computation, and the places where it starts or awaits transfers.
// All devices run the same list; the numbers of rows and chunks, which differ between them, are not in it.
#ifndef HECATE_PASSES_TIMELINE_SCRIPT_H
#define HECATE_PASSES_TIMELINE_SCRIPT_H

#include "lang/base/arena.h"
#include "passes/cost/set_cost.h"

enum hec_act {
    HEC_ACT_COMPUTE, // us; between HEC_ACT_WAVES and its end: of a full wave, in proportion to rows
    HEC_ACT_PLAN,    // Plans a layer, on the host.
    HEC_ACT_GATHER,  // Starts; `again`: by the plan of this iteration, for backward.
    HEC_ACT_PREFETCH,    // Plans the next layer and starts its chunks, in the first wave.
    HEC_ACT_EXCHANGE,    // Starts to tell all the counts of rows.
    HEC_ACT_COUNTS,      // Waits for those of all.
    HEC_ACT_CALIBRATE,   // Plans on, and starts the added chunks.
    HEC_ACT_AWAIT,       // Waits for chunks.
    HEC_ACT_WAVES,       // The body up to its end, once for each wave.
    HEC_ACT_OVERWRITTEN, // Likewise, once for each wave but the last in which it stands.
    HEC_ACT_END,         // The end of the innermost open one of these two.
    HEC_ACT_ROWS, // Sends rows of the wave to where they are computed, and waits for those of others.
    HEC_ACT_RETURN,  // Starts to send results back.
    HEC_ACT_COLLECT, // Waits for results.
    HEC_ACT_REDUCE,  // Starts gradients of chunks.
    HEC_ACT_RELEASE, // Waits for them.
    HEC_ACT_DENSE, // Dense gradients; bytes. dense = shard: in every iteration, else in the step's last.
    HEC_ACT_UNIT,       // dense = shard: starts to gather parameters; bytes.
    HEC_ACT_UNIT_AWAIT, // Waits for them.
    // Behind the last iteration of a step:
    HEC_ACT_SUMS,    // Waits for the dense sums.
    HEC_ACT_NORM,    // Waits until all ranks know the gradient's norm.
    HEC_ACT_PUBLISH, // dense = states: parts of the parameters to all, and waits for those of others.
    HEC_ACT_RESHARD, // New owners, every so many iterations.
    HEC_ACTS,
};

enum { HEC_LABEL = 48 };

struct hec_action {
    enum hec_act act;
    int set;       // Index in hec_costs; -1: none.
    int32_t layer; // 0 where the set has no layers.
    bool back;     // In backward.
    bool again;
    bool first, last; // In the first, or last, iteration of a step alone.
    int end;          // For an action done once for each wave: its end.
    int unit;         // For HEC_ACT_UNIT and HEC_ACT_UNIT_AWAIT: which gather of the iteration.
    double us;
    int64_t bytes;
    char label[HEC_LABEL]; // Names the computation, for people.
};

struct hec_script {
    struct hec_action *action; // One iteration, forward and backward.
    int count;
    int64_t iterations; // In one step.
    double
        shortened; // How many times as many layers of experts the module has: 1 where it has all.
    bool states;   // dense = states or shard: sums stay in parts.
    bool shard;    // dense = shard: parameters stay in parts, too.
    int units;     // Gathers of dense parameters in an iteration.
    int64_t dense_bytes; // Parameters that all have.
    double way;          // Bytes of gradients on their way, for each in memory.
    int64_t bucket;      // Bytes of gradients whose sum starts at once; 0 with dense = shard: any.
};

// AdamW of parameters that take so many bytes, outside and inside of experts.
double hec_optimizer_us(const struct hec_machine *machine, double dense, double experts);

// The module has been placed. Each loop over layers takes `layers` steps at most, 0: all. Memory is of `arena`.
// False after a report.
bool hec_script_of(MlirOperation module, const struct hec_costs *costs, int64_t layers,
                   struct hec_arena *arena, struct hec_script *script);

#endif
