// Candidates of a search, and their simulated times. A candidate is simulated on a copy of the module that the passes
// behind have gone over: the program that will be built. Private to this folder.
#ifndef HECATE_PASSES_TIMELINE_CANDIDATES_H
#define HECATE_PASSES_TIMELINE_CANDIDATES_H

#include "passes/timeline/search.h"

enum { HEC_LISTED_MAX = 16 };

// The program of candidates whose replicas live as long.
struct hec_variant {
    MlirOperation module;
    struct hec_setup setup;          // Its costs; the rest is the search's.
    struct hec_script script, brief; // HEC_SEARCH_LAYERS layers; few, for HEC_DETAIL_BRIEF.
    int64_t room; // Bytes of a device that are left for replicas; negative: not even the rest fits.
    bool sound;
};

struct hec_searching {
    struct hec_search *search;
    struct hec_arena *arena;
    MlirOperation module;
    const struct hec_pass_options *options;
    struct hec_variant variant[2][2]; // By lifetime, and whether they re-materialize.
    int64_t left;                     // Iterations message by message that there is still time for.
};

// Adds the choices that are not known yet, HEC_LISTED_MAX at most, in their order, as far as there is room; those that
// the planner refuses, as a policy does that cannot hold all experts in so few slots, are left out. `rematerialize`: 0
// or 1; -1: where replicas that are kept do not fit. Behind hec_detail those that may be among the fastest are
// simulated in that detail, too. False: a pass behind shard refuses the module, which it has reported.
bool hec_consider(struct hec_searching *g, const struct hpl_movement *choice, int count,
                  int rematerialize);

// Simulates `choice`, which are known, in more detail: from now on candidates are chosen among those.
void hec_detail(struct hec_searching *g, enum hec_detail detail, const struct hpl_movement *choice,
                int count);

// Whether both have the same program and the same plans: where t or m are more than plans use, times as sums are equal
// to the bit. Then they are in any detail.
bool hec_is_twin(const struct hec_candidate *a, const struct hec_candidate *b);

// Whether messages are single where there are so many devices, and candidates are simulated in such detail.
bool hec_may_be_single(const struct hec_searching *g);

void hec_searching_free(struct hec_searching *g);

#endif
