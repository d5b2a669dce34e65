// Runs a function on paper: every operation in the order in which a program runs it, every layer of every
// loop, a given number of waves. Loop edges are run, not argued about. The meaning of values is the
// domain's affair; the walk itself knows only indices.
#ifndef HECATE_PASSES_BASE_WALK_H
#define HECATE_PASSES_BASE_WALK_H

#include "ir/core/op.h"

struct hec_walk {
    int64_t waves; // Waves of every route.
    void *domain;
    // An operation that is no loop and computes no index.
    void (*op)(struct hec_walk *walk, MlirOperation op);
    // The values that a loop carries, on each of its edges: first `take` reads the initial values (`again`: those that
    // the iteration yields, still in its layer), then `carry` gives them to the loop's arguments (`out`: to
    // its results, in the layer around). NULL: the domain knows nothing that is carried.
    void (*take)(struct hec_walk *walk, const struct hec_for *loop, bool again);
    void (*carry)(struct hec_walk *walk, const struct hec_for *loop, bool out);

    bool stop;             // Set by the domain: the walk ends.
    int64_t layer;         // Layer of the loop over layers around; -1 outside of loops.
    struct hec_map number; // Index value -> its number plus 1.
};

// Walks @forward or @backward; nothing when the module has none. Layers beyond constants in text are the
// caller's to check (passes/form.h).
void hec_walk_func(struct hec_walk *walk, MlirOperation module, const char *name);
void hec_walk_free(struct hec_walk *walk);

// The number of an index at this point; 0 for one that was not computed.
int64_t hec_walk_number(const struct hec_walk *walk, MlirValue index);

#endif
