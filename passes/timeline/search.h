// The choices of movement: those of the user, and for the others the best of a few candidates, by simulated steps on
// recorded loads (--profile) or on assumed ones.
#ifndef HECATE_PASSES_TIMELINE_SEARCH_H
#define HECATE_PASSES_TIMELINE_SEARCH_H

#include "passes/base/pass.h"
#include "passes/cost/setup.h"
#include "passes/timeline/script.h"

enum { HEC_CANDIDATES_MAX = 128, HEC_SEARCH_LAYERS = 12 };

// How candidates are simulated, each way for fewer of them than the one before.
enum hec_detail {
    HEC_DETAIL_SUMS,  // Messages are sums.
    HEC_DETAIL_BRIEF, // Message by message, in few layers.
    HEC_DETAIL_WHOLE, // Message by message, in as many layers as sums.
    HEC_DETAILS
};

// Choices of one candidate, and their result.
struct hec_candidate {
    struct hpl_movement movement;
    double us; // To compare candidates with.
    enum hec_detail detail;
    double took[HEC_DETAILS]; // hec_search_us up to that detail.
    int64_t replica_bytes;    // On one device: runtime/plan/slots.h.
    bool fits;                // In memory.
};

struct hec_search {
    struct hec_setup setup;
    // The user's settings.
    bool uses_overlap, uses_slots; // Whether t and m mean anything to the policy.
    bool fixed_overlap, fixed_slots, fixed_calibrate, fixed_rematerialize, fixed_lifetime;
    int64_t slot_bytes;   // placement.memory in bytes; 0: not given so.
    const int32_t **even; // [sets] Owners before loads count: [layers][experts].
    bool sharded,
        spread; // Owners follow recorded loads; or all layers' chunks are dealt out in turn.
    int count;
    int most; // Candidates that are compared; fewer than HEC_CANDIDATES_MAX on a very large cluster.
    struct hec_candidate candidate[HEC_CANDIDATES_MAX];
    int among;              // The lifetime of the candidates among which is chosen; -1: any.
    enum hec_detail detail; // Is chosen among those alone that were simulated so...
    int singles;            // ... and how many were, message by message.
    int chosen, second;     // Indices in `candidate`; second -1: there is no other.
};

// Reads the user's settings, and the memory that a device has for replicas.
void hec_search_settings(MlirOperation module, struct hec_search *search);

// Decides everything for a module that pass shard goes over, whose options say what comes behind. Memory is of
// `arena`, loads are freed with hec_recorded_free. False after a report.
bool hec_search(MlirOperation module, const struct hec_pass_options *options,
                struct hec_arena *arena, struct hec_search *search);

// A step's time, as the search counts it: of few iterations, with a full forecast, in some detail. False: the planner
// refuses.
bool hec_search_us(const struct hec_setup *setup, const struct hec_script *script,
                   const struct hpl_movement *movement, enum hec_detail detail, double *us);

// The candidates that reports tell of, as the attribute hecate.searched: the chosen one, the runner-up, and for
// each choice the nearest that differs in it alone. For a module without the attribute, or with text that is no list
// of candidates, `count` becomes 0.
void hec_compared_write(MlirOperation module, const struct hec_search *search);
void hec_compared_read(MlirOperation module, struct hec_search *search);

// The choices of which candidates differ.
enum hec_differs {
    HEC_DIFFERS_OVERLAP,
    HEC_DIFFERS_SLOTS,
    HEC_DIFFERS_REMATERIALIZE,
    HEC_DIFFERS_CALIBRATE,
    HEC_DIFFERS_LIFETIME,
    HEC_DIFFERS_DISCOUNT,
    HEC_DIFFERS
};

// Which one choice two candidates differ in; HEC_DIFFERS: in none, or in several.
enum hec_differs hec_differs_in(const struct hec_candidate *a, const struct hec_candidate *b);

#endif
