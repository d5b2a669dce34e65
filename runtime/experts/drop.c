// A capacity over the tokens of all ranks: which picks stay, as if one rank had them all.
//
// Each expert keeps the picks that moe.limit keeps on one rank, whose tokens are those of rank 0,
// then those of rank 1, and so on. By position, the counts of all ranks tell. By weight, the ranks
// look for the weight that just stays, a digit at a time from the top: they add up how many picks of
// an expert have each digit, so that only counts travel, whatever the router does.
#include "runtime/experts/experts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "runtime/comm/comm.h"
#include "runtime/experts/own.h"

enum { DIGIT = 8, DIGITS = 1 << DIGIT };

// A layer's picks, and how many of each expert stay: all those that weigh more than `least`, and of
// those that weigh just as much the first `room` of this rank.
struct drop {
    struct hrt_experts *experts;
    struct hrt_experts_layer *layer;
    const int32_t *ids;
    const void *weights;
    int64_t pairs, most;
    uint64_t *least; // [experts]
    int64_t *room;   // [experts]
};

// A whole number that orders weights as they are; what is not positive, and NaN, is 0.
static uint64_t order_of(const struct drop *drop, int64_t pair) {
    if (drop->experts->shape.element == sizeof(float)) {
        const float weight = ((const float *)drop->weights)[pair];
        uint32_t bits = 0;
        if (weight > 0) memcpy(&bits, &weight, sizeof bits);
        return bits;
    }
    const double weight = ((const double *)drop->weights)[pair];
    uint64_t bits = 0;
    if (weight > 0) memcpy(&bits, &weight, sizeof bits);
    return bits;
}

// All ranks' picks of an expert, and those of the ranks before this one.
static int64_t count_all(const struct drop *drop, int64_t expert, int64_t *before) {
    const struct hrt_comm *comm = drop->experts->comm;
    int64_t all = *before = 0;
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank) *before = all;
        all += drop->layer->count[r * drop->layer->set->experts + expert];
    }
    return all;
}

// One digit: adds up how many picks that begin like `least` go on with each digit, and lets `least`
// go on with that of the pick which just stays. `room` counts down to the picks among those.
static void take_digit(struct drop *drop, int shift) {
    const int64_t experts = drop->layer->set->experts;
    int64_t *count = drop->experts->digits;
    memset(count, 0, (size_t)(experts * DIGITS) * sizeof *count);
    for (int64_t p = 0; p < drop->pairs; p++) {
        const int32_t e = drop->ids[p];
        const uint64_t order = order_of(drop, p);
        if (order >> shift >> DIGIT != drop->least[e] >> shift >> DIGIT) continue;
        count[e * DIGITS + (int64_t)(order >> shift & (DIGITS - 1))]++;
    }
    hrt_comm_all_reduce(drop->experts->comm, count, experts * DIGITS, HRT_INT64);
    for (int64_t e = 0; e < experts; e++) {
        uint64_t digit = DIGITS - 1;
        while (digit > 0 && count[e * DIGITS + (int64_t)digit] < drop->room[e])
            drop->room[e] -= count[e * DIGITS + (int64_t)digit--];
        drop->least[e] |= digit << shift;
    }
}

// Shares the room for picks of weight `least` out: the first ranks' stay.
static void share_room(struct drop *drop) {
    const int64_t experts = drop->layer->set->experts;
    uint32_t *mine = drop->experts->mine;
    memset(mine, 0, (size_t)experts * sizeof *mine);
    for (int64_t p = 0; p < drop->pairs; p++) {
        const int32_t e = drop->ids[p];
        mine[e] += order_of(drop, p) == drop->least[e];
    }
    hrt_gather_counts(drop->experts, drop->layer);
    for (int64_t e = 0; e < experts; e++) {
        int64_t before;
        count_all(drop, e, &before);
        drop->room[e] -= before;
    }
}

// By position: everything weighs the same.
static void find_positions(struct drop *drop) {
    for (int64_t e = 0; e < drop->layer->set->experts; e++) {
        int64_t before;
        count_all(drop, e, &before);
        drop->room[e] = drop->most - before;
    }
}

// By weight. An expert that has no more than `most` keeps all: its lowest weight is above 0's order
// or 0 itself, and there is room for that.
static void find_weights(struct drop *drop) {
    const int bits = drop->experts->shape.element == sizeof(float) ? 32 : 64;
    bool over = false; // The same on every rank.
    for (int64_t e = 0; e < drop->layer->set->experts; e++) {
        int64_t before;
        const int64_t all = count_all(drop, e, &before);
        drop->room[e] = all < drop->most ? all : drop->most;
        over |= all > drop->most;
    }
    if (!over) {
        for (int64_t e = 0; e < drop->layer->set->experts; e++) drop->room[e] = drop->most;
        return;
    }
    for (int shift = bits - DIGIT; shift >= 0; shift -= DIGIT) take_digit(drop, shift);
    share_room(drop);
}

void hrt_experts_idle(struct hrt_experts *experts, bool idle) {
    experts->idle = idle;
}

void hrt_drop(struct hrt_experts *experts, int set, int64_t at, int32_t *kept, int32_t *loads,
              const int32_t *ids, const void *weights, int64_t tokens, double capacity,
              enum hk_drop rule) {
    struct hrt_experts_layer *layer = hrt_layer(experts, set, at);
    const int64_t count = layer->set->experts, pairs = tokens * layer->set->picks;
    assert(layer->set->limited && tokens <= experts->shape.tokens);
    struct drop drop = {.experts = experts,
                        .layer = layer,
                        .ids = ids,
                        .weights = weights,
                        .pairs = experts->idle ? 0 : pairs,
                        .least = experts->least,
                        .room = experts->room};
    memset(experts->mine, 0, (size_t)count * sizeof *experts->mine);
    for (int64_t p = 0; p < drop.pairs; p++) experts->mine[ids[p]]++;
    hrt_gather_counts(experts, layer);
    int64_t picks = 0;
    for (int64_t e = 0; e < count; e++) {
        int64_t before;
        const int64_t all = count_all(&drop, e, &before);
        if (loads) loads[e] = (int32_t)all;
        picks += all;
    }
    drop.most = (int64_t)ceil(capacity * (double)picks / (double)count);
    memset(drop.least, 0, (size_t)count * sizeof *drop.least);
    if (rule == HK_POSITION) {
        find_positions(&drop);
    } else {
        find_weights(&drop);
    }
    for (int64_t p = 0; p < pairs; p++) {
        const int32_t e = ids[p];
        const uint64_t order = rule == HK_POSITION ? 0 : order_of(&drop, p);
        const bool equal = order == drop.least[e];
        const bool stays = p < drop.pairs && (order > drop.least[e] || (equal && drop.room[e] > 0));
        drop.room[e] -= stays && equal;
        kept[p] = stays ? e : -1;
    }
}
