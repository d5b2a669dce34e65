// The route of a layer: counts are exchanged, and from them every rank derives the same numbers.
#include <assert.h>
#include <string.h>

#include "kernels/route/route.h"
#include "runtime/experts/layer.h"
#include "runtime/net/all_gather.h"
#include "runtime/plan/share.h"

// Elements of the compared word, which comes first in a message.
enum { WORD = sizeof(uint64_t) / sizeof(uint32_t) };

void hrt_experts_sort_pairs(struct hrt_experts *experts, struct hrt_experts_layer *layer,
                            int32_t *first, const int32_t *ids, int64_t tokens) {
    const struct hrt_experts_set *set = layer->set;
    struct hrt_device *device = experts->device;
    if (hrt_device_is_apart(device))
        device->backend->route(device, first, layer->pair, layer->slot, ids, tokens, set->picks,
                               set->experts);
    else
        hk_route(first, layer->pair, layer->slot, ids, tokens, set->picks, set->experts);
}

// ---- what all ranks learn

uint32_t *hrt_experts_told(const struct hrt_experts *experts, uint32_t *heard, size_t words,
                           int rank) {
    return heard + words * hrt_net_gathered_at(&experts->grid, experts->comm->rank, rank);
}

// The same of the compared word, and others behind it.
static uint32_t *words_of(const struct hrt_experts *experts, int rank, size_t words) {
    return hrt_experts_told(experts, experts->heard, words, rank);
}

// Begins to tell all ranks this one's words, which are in their place.
static struct hrt_mark begin_to_tell(struct hrt_experts *experts, uint32_t *heard, size_t words) {
    experts->steps.on_device = false;
    hrt_net_steps_all_gather(&experts->steps, &experts->grid, experts->comm->rank, heard,
                             words * sizeof *heard);
    return hrt_net_lane_submit(experts->comm, HRT_LANE_COUNTS, &experts->steps);
}

void hrt_experts_tell(struct hrt_experts *experts, uint32_t *heard, size_t words) {
    hrt_experts_agree(experts);
    hrt_net_lane_join(experts->comm, begin_to_tell(experts, heard, words),
                      "the counts of rows to come");
}

static struct hrt_mark begin_to_compare(struct hrt_experts *experts, uint64_t word) {
    memcpy(words_of(experts, experts->comm->rank, WORD), &word, sizeof word);
    return begin_to_tell(experts, experts->heard, WORD);
}

static void compare_heard(struct hrt_experts *experts, size_t words) {
    experts->compared++;
    for (int r = 1; r < experts->comm->size; r++) {
        if (experts->differ && memcmp(words_of(experts, r, words), words_of(experts, 0, words),
                                      sizeof experts->word) != 0)
            experts->differ(experts->differ_context);
    }
}

// Begins to tell all ranks mine [size]: count [ranks][size] is that of each of them once hrt_experts_agree returns.
static void tell_counts(struct hrt_experts *experts, const uint32_t *mine, uint32_t *count,
                        int64_t size) {
    const size_t words = (size_t)size + WORD;
    hrt_experts_agree(experts);
    uint32_t *own = words_of(experts, experts->comm->rank, words);
    memcpy(own, &experts->word, sizeof experts->word);
    memcpy(own + WORD, mine, (size_t)size * sizeof *mine);
    experts->telling = true;
    experts->told_counts = count;
    experts->told_size = size;
    experts->told = begin_to_tell(experts, experts->heard, words);
}

void hrt_experts_gather_counts(struct hrt_experts *experts, const uint32_t *mine, uint32_t *count,
                               int64_t size) {
    tell_counts(experts, mine, count, size);
    hrt_experts_agree(experts);
}

void hrt_experts_vouch(struct hrt_experts *experts, uint64_t word) {
    experts->word = word;
}

void hrt_experts_watch(struct hrt_experts *experts, hrt_differ_fn *differ, void *context) {
    experts->differ = differ;
    experts->differ_context = context;
}

void hrt_experts_compare(struct hrt_experts *experts) {
    hrt_experts_agree(experts);
    experts->telling = true;
    experts->told_counts = NULL;
    experts->told_size = 0;
    experts->told = begin_to_compare(experts, experts->word);
}

void hrt_experts_agree(struct hrt_experts *experts) {
    if (!experts->telling) return;
    uint32_t *count = experts->told_counts;
    const int64_t size = experts->told_size;
    const size_t words = (size_t)size + WORD;
    experts->telling = false;
    hrt_net_lane_join(experts->comm, experts->told,
                      count ? "the counts of rows" : "the comparison of plans");
    compare_heard(experts, words);
    for (int r = 0; r < experts->comm->size && count; r++)
        memcpy(count + r * size, words_of(experts, r, words) + WORD, (size_t)size * sizeof *count);
}

int64_t hrt_experts_compared(const struct hrt_experts *experts) {
    return experts->compared;
}

void hrt_experts_gather(struct hrt_experts *experts, uint64_t word, uint64_t *all) {
    hrt_experts_agree(experts);
    hrt_net_lane_join(experts->comm, begin_to_compare(experts, word), "the comparison of plans");
    for (int r = 0; r < experts->comm->size; r++)
        memcpy(&all[r], words_of(experts, r, WORD), sizeof word);
}

// ---- a device with separate memory

const void *hrt_experts_see(struct hrt_experts *experts, void *copy, const void *array,
                            size_t bytes) {
    if (!hrt_device_is_apart(experts->device)) return array;
    hrt_device_fetch(experts->device, copy, array, bytes);
    return copy;
}

void hrt_experts_show(struct hrt_experts *experts, void *array, const void *copy, size_t bytes) {
    if (hrt_device_is_apart(experts->device)) hrt_device_fetch(experts->device, array, copy, bytes);
}

// ---- quotas

// Everything to the first holder.
static void give_to_first(const struct hpl_plan *plan, const struct hpl_loads *loads, int rank,
                          uint32_t *row, const struct hpl_part *part) {
    hpl_part_begin(part, plan);
    for (int32_t source = 0; source < loads->devices; source++) {
        memset(row, 0, (size_t)plan->first[plan->experts] * sizeof *row);
        for (int32_t e = 0; e < plan->experts; e++)
            row[plan->first[e]] = loads->rows[(int64_t)source * plan->experts + e];
        hpl_part_add(part, plan, rank, source, row);
    }
}

// Counts the holders of each rank: layer->sends and layer->here.
static void count_holders(const struct hrt_experts *experts, struct hrt_experts_layer *layer) {
    const struct hpl_plan *plan = &layer->plan;
    const int ranks = experts->comm->size, rank = experts->comm->rank;
    memset(layer->sends, 0, (size_t)(ranks + 1) * sizeof *layer->sends);
    for (int32_t k = 0; k < plan->first[plan->experts]; k++) layer->sends[plan->holder[k] + 1]++;
    for (int r = 0; r < ranks; r++) layer->sends[r + 1] += layer->sends[r];
    layer->here = layer->sends[rank + 1] - layer->sends[rank];
    assert(layer->here <= layer->set->slots);
}

// Where this rank's rows for each holder begin, here and there, and how many waves that takes: experts->before
// counts the rows of ranks before this one.
static void place_sent(const struct hrt_experts *experts, struct hrt_experts_layer *layer) {
    const struct hpl_plan *plan = &layer->plan;
    const int ranks = experts->comm->size, rank = experts->comm->rank;
    int64_t *total = experts->total, own = 0;
    memset(total, 0, (size_t)ranks * sizeof *total);
    memcpy(experts->cursor, layer->sends, (size_t)ranks * sizeof *experts->cursor);
    for (int32_t e = 0; e < plan->experts; e++) {
        int64_t given = own;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t holder = plan->holder[k];
            layer->send[experts->cursor[holder]++] =
                (struct hk_run){.at = (int32_t)(experts->before[k] + total[holder]),
                                .from = (int32_t)given,
                                .count = (int32_t)experts->to[k]};
            total[holder] += experts->sum[k];
            given += experts->to[k];
        }
        own += layer->count[(int64_t)rank * plan->experts + e];
        assert(given == own); // The quotas of an expert sum to its rows.
    }
    int64_t most = 1;
    for (int r = 0; r < ranks; r++) most = total[r] > most ? total[r] : most;
    layer->waves = (most + layer->set->wave_rows - 1) / layer->set->wave_rows;
    for (int r = 0; r < ranks; r++) layer->computed[r] += total[r];
    if (layer->waves > layer->most_waves) layer->most_waves = layer->waves;
}

// Where the rows of every expert that is here begin, and those of each source among them.
static void place_received(const struct hrt_experts *experts, struct hrt_experts_layer *layer) {
    const int64_t slots = layer->set->slots;
    int32_t rows = 0;
    for (int64_t n = 0; n <= slots; n++) {
        layer->start[n] = rows;
        for (int r = 0; r < experts->comm->size && n < layer->here; r++) {
            const int32_t count = (int32_t)experts->here[r * slots + n];
            layer->recv[r * layer->here + n] = (struct hk_run){rows, rows, count};
            rows += count;
        }
    }
}

// Tells all ranks how many rows this one has for each expert of the layer, as they were sorted.
static void tell_sorted(struct hrt_experts *experts, struct hrt_experts_layer *layer) {
    for (int64_t e = 0; e < layer->set->experts; e++)
        experts->mine[e] = (uint32_t)(experts->first[e + 1] - experts->first[e]);
    tell_counts(experts, experts->mine, layer->count, layer->set->experts);
}

// Likewise where the host has dropped some, and so has what was kept.
static void tell_kept(struct hrt_experts *experts, struct hrt_experts_layer *layer) {
    const int64_t pairs = layer->tokens * layer->set->picks;
    memset(experts->mine, 0, (size_t)layer->set->experts * sizeof *experts->mine);
    for (int64_t p = 0; p < pairs; p++) {
        if (experts->copies.kept[p] >= 0) experts->mine[experts->copies.kept[p]]++;
    }
    tell_counts(experts, experts->mine, layer->count, layer->set->experts);
}

// Once the device has counted.
static void tell_routed(struct hrt_experts *experts) {
    struct hrt_experts_layer *layer = experts->routed;
    experts->routed = NULL;
    if (layer) tell_sorted(experts, layer);
}

void hrt_experts_join(struct hrt_experts *experts) {
    hrt_device_join(experts->device, HRT_WHY_ROUTES);
    tell_routed(experts);
}

void hrt_experts_settle(struct hrt_experts *experts) {
    if (experts->routed) hrt_device_await(experts->device, HRT_MARK_COUNTS, HRT_WHY_ROUTES);
    tell_routed(experts);
    hrt_experts_agree(experts);
}

void hrt_experts_route(struct hrt_experts *experts, int set, int64_t at, const int32_t *ids,
                       int64_t tokens) {
    struct hrt_experts_layer *layer = hrt_layer(experts, set, at);
    assert(tokens >= 0 && tokens <= experts->shape.tokens);
    hrt_experts_settle(experts); // Counts of another set take the same places.
    if (experts->wave.layer == layer) experts->wave.layer = NULL;
    layer->tokens = tokens;
    layer->divided = false;
    hrt_experts_sort_pairs(experts, layer, experts->first, ids, tokens);
    if (experts->relay.serves)
        memcpy(layer->summed, layer->slot, (size_t)(tokens * layer->set->picks) * sizeof(int32_t));
    if (experts->dropped == layer) {
        tell_kept(experts, layer);
    } else if (hrt_device_is_apart(experts->device)) {
        hrt_device_mark(experts->device, HRT_MARK_COUNTS);
        experts->routed = layer;
    } else {
        tell_sorted(experts, layer);
    }
}

void hrt_experts_await_counts(struct hrt_experts *experts, int set, int64_t at) {
    (void)set, (void)at; // At most one exchange is under way.
    hrt_experts_settle(experts);
}

// Which rows go where, by the counts of the route and the plan as it now is.
static void divide(struct hrt_experts *experts, int set, int64_t at) {
    struct hrt_experts_layer *layer = hrt_layer(experts, set, at);
    const struct hrt_experts_shape *shape = &experts->shape;
    const struct hpl_loads counts = {experts->comm->size, layer->plan.experts, layer->count};
    const struct hpl_part part = {.to = experts->to,
                                  .before = experts->before,
                                  .sum = experts->sum,
                                  .here = experts->here,
                                  .stride = (int32_t)layer->set->slots};
    if (shape->quota) {
        shape->quota(shape->quota_context, set, at, &layer->plan, &counts, &part);
    } else {
        give_to_first(&layer->plan, &counts, experts->comm->rank, experts->row, &part);
    }
    count_holders(experts, layer);
    place_sent(experts, layer);
    place_received(experts, layer);
    layer->divided = true;
}

int64_t hrt_experts_waves(struct hrt_experts *experts, int set, int64_t at) {
    const struct hrt_experts_layer *layer = hrt_layer(experts, set, at);
    if (!layer->divided) divide(experts, set, at);
    return layer->waves;
}
