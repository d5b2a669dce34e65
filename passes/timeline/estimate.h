// The one estimate of a step's time. Reports of every kind, and --autotune, tell of it, and so does a
// simulation without a number of steps.
#ifndef HECATE_PASSES_TIMELINE_ESTIMATE_H
#define HECATE_PASSES_TIMELINE_ESTIMATE_H

#include <stdio.h>

#include "passes/timeline/timeline.h"

struct hec_estimate {
    double
        us; // The median of steps that know the loads of those before, and its part of a change of owners.
    // Its sources; `median` is the median step.
    struct hec_script script;
    struct hec_timeline_request request;
    struct hec_timeline_result result;
    struct hec_owners owners;
    struct hec_step_time median;
};

struct hec_estimate_request {
    MlirOperation module; // Placed.
    const struct hec_setup *setup;
    const struct hec_watcher *watcher; // NULL: nobody.
    int64_t steps;                     // 0: as many as say enough.
    bool sums;                         // As those of hec_timeline_request.
};

// Memory is of `arena`; the request's is borrowed. False after a report.
bool hec_estimate(const struct hec_estimate_request *request, struct hec_arena *arena,
                  struct hec_estimate *estimate);

// A step's time as the speed of a whole run.
struct hec_speed {
    double us, tokens; // One step's.
    double mfu;        // Part of the devices' arithmetic that the model's GEMMs are; 0: unknown.
    double steps;      // The run's; 0: not said.
};
struct hec_speed hec_speed_of(MlirOperation module, const struct hec_machine *machine, double us);

// "24.3 s: 173 ktokens/s, MFU 12.3 %;", and on a second line "  the run's 84 Gtokens take 5.6 days".
struct hec_speed_text {
    char text[160];
};
struct hec_speed_text hec_speed_text(const struct hec_speed *speed);

// An estimate of a placed module in a few numbers, for comparing it with others.
struct hec_step_score {
    struct hec_speed speed;
    double bytes, memory; // A device's: the bytes that it must remember, and its memory.
    double replicas;      // The part of the bytes that the search for slots has chosen.
    double
        actions; // Actions of all devices: the cost of the simulation, the same on every machine.
    bool apart;  // The device has memory of its own.
    int64_t overlap, slots;                      // t and m; 0 where nothing moves.
    int64_t wave_rows;                           // In the first set.
    int64_t nodes, ranks, positions, vocabulary; // The program's; no vocabulary: 0.
};

// `steps` and `sums` as in hec_estimate_request. False after a report.
bool hec_estimate_score(MlirOperation module, int64_t steps, bool sums,
                        struct hec_step_score *score);

// Fills in the bytes, the memory and the speed of a step as hec_search_us counts it. False after a report.
bool hec_estimate_brief(MlirOperation module, struct hec_step_score *score);

// Fills in the bytes and the memory alone, for which nothing is simulated. False after a report.
bool hec_estimate_memory(MlirOperation module, struct hec_step_score *score);

#endif
