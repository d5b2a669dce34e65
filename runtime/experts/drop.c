// A capacity over groups of sequences: which top-k choices stay, as if one rank had them all.
//
// An expert keeps from each group the top-k choices that moe.limit would keep on one rank with the tokens of rank
// 0, then those of rank 1, and so on. A rank decides alone on a group that lies on it. For others the counts
// of all ranks decide, by position; by weight, the ranks look for the smallest weight that stays, a
// digit at a time from the top: they add up how many top-k choices of an expert have each digit, so that only
// counts travel, for any router.
#include "runtime/experts/experts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "runtime/experts/layer.h"
#include "runtime/net/comm.h"

enum { DIGIT = 8, DIGITS = 1 << DIGIT };

// The top-k choices of one group, and how many of each expert stay: all those that weigh more than `least`, and of
// those that weigh just as much the first `room` of this rank.
struct drop {
    struct hrt_experts *experts;
    struct hrt_experts_layer *layer;
    const int32_t *ids;
    const void *weights;
    int64_t from, to; // This rank's pairs of the group.
    bool alone;       // All of the group are this rank's.
    int64_t most;
    uint64_t *least; // [experts]
    int64_t *room;   // [experts]
};

// A whole number that orders weights as they are. NaN, zero and negative weights become 0.
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

// The group's top-k choices of an expert, and those of the ranks before this one.
static int64_t count_all(const struct drop *drop, int64_t expert, int64_t *before) {
    const struct hrt_comm *comm = drop->experts->comm;
    int64_t all = *before = 0;
    if (drop->alone) return drop->experts->mine[expert];
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank) *before = all;
        all += drop->layer->count[r * drop->layer->set->experts + expert];
    }
    return all;
}

// Counts the top-k choices of each expert, or only those that weigh `least`, for count_all.
static void count_picks(struct drop *drop, bool equal) {
    uint32_t *mine = drop->experts->mine;
    memset(mine, 0, (size_t)drop->layer->set->experts * sizeof *mine);
    for (int64_t p = drop->from; p < drop->to; p++) {
        const int32_t e = drop->ids[p];
        mine[e] += !equal || order_of(drop, p) == drop->least[e];
    }
    if (!drop->alone)
        hrt_experts_gather_counts(drop->experts, mine, drop->layer->count,
                                  drop->layer->set->experts);
}

// One digit: adds up how many top-k choices that begin like `least` go on with each digit, and lets `least`
// go on with that of the pick which just stays. `room` counts down to the top-k choices among those.
static void take_digit(struct drop *drop, int shift) {
    const int64_t experts = drop->layer->set->experts;
    int64_t *count = drop->experts->digits;
    memset(count, 0, (size_t)(experts * DIGITS) * sizeof *count);
    for (int64_t p = drop->from; p < drop->to; p++) {
        const int32_t e = drop->ids[p];
        const uint64_t order = order_of(drop, p);
        if (order >> shift >> DIGIT != drop->least[e] >> shift >> DIGIT) continue;
        count[e * DIGITS + (int64_t)(order >> shift & (DIGITS - 1))]++;
    }
    if (!drop->alone)
        hrt_net_comm_all_reduce(drop->experts->comm, count, experts * DIGITS, HRT_INT64);
    for (int64_t e = 0; e < experts; e++) {
        uint64_t digit = DIGITS - 1;
        while (digit > 0 && count[e * DIGITS + (int64_t)digit] < drop->room[e])
            drop->room[e] -= count[e * DIGITS + (int64_t)digit--];
        drop->least[e] |= digit << shift;
    }
}

// Shares the room for top-k choices of weight `least` out: the first ranks' stay.
static void share_room(struct drop *drop) {
    count_picks(drop, true);
    for (int64_t e = 0; e < drop->layer->set->experts; e++) {
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

static void drop_of_group(struct drop *drop, int32_t *kept, enum hk_drop rule) {
    memset(drop->least, 0, (size_t)drop->layer->set->experts * sizeof *drop->least);
    count_picks(drop, false);
    if (rule == HK_POSITION) {
        find_positions(drop);
    } else {
        find_weights(drop);
    }
    for (int64_t p = drop->from; p < drop->to; p++) {
        const int32_t e = drop->ids[p];
        const uint64_t order = rule == HK_POSITION ? 0 : order_of(drop, p);
        const bool equal = order == drop->least[e];
        const bool stays = order > drop->least[e] || (equal && drop->room[e] > 0);
        drop->room[e] -= stays && equal;
        kept[p] = stays ? e : -1;
    }
}

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

// Drops in groups that lie each on one rank, on a device with separate memory; the layer's next route sorts anew.
static void drop_there(struct hrt_experts *experts, struct hrt_experts_layer *layer, int32_t *kept,
                       const int32_t *ids, const void *weights, int64_t own, int64_t tokens,
                       int64_t group, double capacity, enum hk_drop rule) {
    const struct hrt_experts_copies *to = &experts->copies;
    const struct hrt_experts_set *set = layer->set;
    struct hrt_device *device = experts->device;
    hrt_experts_sort_pairs(experts, layer, experts->first, ids, own);
    device->backend->limit(device, to->kept_first, to->kept_pair, to->kept_slot, weights,
                           experts->first, layer->pair, own, set->picks, set->experts, group,
                           capacity, rule);
    device->backend->limit_ids(device, kept, ids, to->kept_slot, own * set->picks,
                               tokens * set->picks);
}

void hrt_experts_drop(struct hrt_experts *experts, int set, int64_t at, int32_t *kept,
                      const int32_t *ids, const void *weights, int64_t tokens, int64_t group,
                      double capacity, enum hk_drop rule) {
    struct hrt_experts_layer *layer = hrt_layer(experts, set, at);
    const int64_t picks = layer->set->picks;
    const struct hrt_part part = hrt_experts_part_of(experts, tokens);
    const size_t bytes = (size_t)(tokens * picks) * sizeof *ids;
    const size_t weight_bytes = (size_t)(tokens * picks) * experts->shape.element;
    int32_t *there = kept;
    assert(layer->set->limited && tokens <= experts->shape.tokens);
    hrt_experts_settle(experts);
    experts->dropped = NULL;
    if (hrt_device_is_apart(experts->device) && hrt_experts_group_is_alone(&part, group)) {
        drop_there(experts, layer, kept, ids, weights, part.own, tokens, group, capacity, rule);
        return;
    }
    ids = hrt_experts_see(experts, experts->copies.ids, ids, bytes);
    weights = hrt_experts_see(experts, experts->copies.weights, weights, weight_bytes);
    hrt_experts_join(experts);
    kept = hrt_experts_here(experts, experts->copies.kept, there);
    struct drop drop = {.experts = experts,
                        .layer = layer,
                        .ids = ids,
                        .weights = weights,
                        .alone = hrt_experts_group_is_alone(&part, group),
                        .least = experts->least,
                        .room = experts->room};
    for (int64_t p = 0; p < tokens * picks; p++) kept[p] = -1;
    if (group == 0) group = part.all;
    // Groups of several ranks are the matter of all of them, one after the other.
    const int64_t begin = drop.alone ? part.first : 0;
    const int64_t end = drop.alone ? part.first + part.own : part.all;
    for (int64_t first = begin; first < end; first += group) {
        const int64_t last = clamp(first + group, 0, part.all);
        drop.most = (int64_t)ceil(capacity * (double)((last - first) * picks) /
                                  (double)layer->set->experts);
        drop.from = clamp(first - part.first, 0, part.own) * picks;
        drop.to = clamp(last - part.first, 0, part.own) * picks;
        drop_of_group(&drop, kept, rule);
    }
    hrt_experts_show(experts, there, kept, bytes);
    if (hrt_device_is_apart(experts->device)) experts->dropped = layer;
}
