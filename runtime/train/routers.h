// How evenly routers use their experts: by the tokens of each expert, counted over a step.
#ifndef HECATE_RUNTIME_TRAIN_ROUTERS_H
#define HECATE_RUNTIME_TRAIN_ROUTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/train/load_counts.h"

// Numbers of one layer.
struct hrt_router {
    double load; // Tokens of the fullest expert over the mean of all. 1: all have equally many.
    double
        entropy; // Entropy of the experts' shares, over that of equal shares. 1: even; 0: one has all.
    int64_t dead;    // Experts without a token.
    int64_t fullest; // The expert with the most tokens.
};

// `count`: tokens of each expert, at least one expert. Without any token all is even, and no expert dead.
struct hrt_router hrt_train_router_of(const int64_t *count, int64_t experts);

// Numbers of all layers of a program. All 0 where it has no experts.
struct hrt_routers {
    double load, entropy; // The largest; the least.
    int64_t dead;         // Sum over all layers.
    // The layer whose fullest expert has the largest share of the layer's tokens, of those layers that choose at most
    // half of their experts: no share says anything of others.
    double share;
    int load_index; // Index among the program's loads; -1: there is no such layer.
    int64_t layer;
};

struct hrt_routers hrt_train_routers_of(const struct hrt_load_counts *loads);

// Notices a collapse: in each of HRT_COLLAPSED steps in a row some layer has sent nearly all of its tokens to one
// expert. Routers that learn do so for some steps at the start.
enum { HRT_COLLAPSED = 50 };

struct hrt_collapse {
    int64_t steps; // In a row, so far.
    bool told;
};

// Takes a step. True once in a run: when it is to be told.
bool hrt_train_collapse_step(struct hrt_collapse *collapse, const struct hrt_routers *routers);

// Warns of the layer that `routers`, which are those of `loads`, name.
void hrt_train_collapse_warn(const struct hrt_load_counts *loads,
                             const struct hrt_routers *routers);

#endif
