// Creation: one block of memory, laid out from the bounds that are known when the program is compiled.
#include "runtime/experts/experts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/experts/layer.h"

// Hands out the block front to back; without a base it only counts.
struct carve {
    char *base;
    size_t used;
};

static void *take(struct carve *carve, int64_t count, size_t element) {
    char *at = carve->base ? carve->base + carve->used : NULL;
    carve->used += ((size_t)count * element + 63) / 64 * 64;
    return at;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t holders_of(const struct hrt_experts_set *set, int64_t ranks) {
    return set->holders ? set->holders : ranks * set->slots;
}

static void lay_out_layer(struct carve *carve, struct hrt_experts_layer *layer,
                          const struct hrt_experts_set *set, int64_t tokens, int64_t ranks) {
    const int64_t holders = holders_of(set, ranks);
    const int64_t pairs = tokens * set->picks;
    const struct hrt_experts_layer laid = {
        .set = set,
        .plan = {.experts = (int32_t)set->experts,
                 .capacity = (int32_t)holders,
                 .first = take(carve, set->experts + 1, sizeof(int32_t)),
                 .holder = take(carve, holders, sizeof(int32_t))},
        .count = take(carve, ranks * set->experts, sizeof(uint32_t)),
        .to = take(carve, holders, sizeof(uint32_t)),
        .here = take(carve, ranks * set->slots, sizeof(uint32_t)),
        .pair = take(carve, pairs, sizeof(int32_t)),
        .slot = take(carve, pairs, sizeof(int32_t)),
        .from = take(carve, holders, sizeof(int32_t)),
        .at = take(carve, holders, sizeof(int32_t)),
    };
    if (carve->base) *layer = laid;
}

static void lay_out_layers(struct carve *carve, struct hrt_experts *experts,
                           const struct hrt_experts_shape *shape, int ranks) {
    struct hrt_experts_set *set = take(carve, shape->sets, sizeof *set);
    struct hrt_experts_layer **layers = take(carve, shape->sets, sizeof *layers);
    for (int s = 0; s < shape->sets; s++) {
        const int64_t count = shape->set[s].layers;
        struct hrt_experts_layer *layer = take(carve, count, sizeof *layer);
        if (carve->base) {
            set[s] = shape->set[s];
            layers[s] = layer;
        }
        for (int64_t i = 0; i < count; i++)
            lay_out_layer(carve, layer ? &layer[i] : NULL, set ? &set[s] : &shape->set[s],
                          shape->tokens, ranks);
    }
    if (!carve->base) return;
    experts->shape = *shape;
    experts->shape.set = set;
    experts->layer = layers;
}

// What all sets and layers share, as large as the largest needs it.
static void lay_out_wave(struct carve *carve, struct hrt_experts *experts,
                         const struct hrt_experts_shape *shape, int ranks) {
    int64_t most = 0, slots = 0, holders = 0, rows = 0, pairs = 0;
    size_t sent = 0, received = 0, result = 0;
    bool limited = false;
    for (int s = 0; s < shape->sets; s++) {
        const struct hrt_experts_set *set = &shape->set[s];
        const size_t row = (size_t)set->width * shape->element;
        const size_t set_pairs = (size_t)(shape->tokens * set->picks);
        const size_t with_gate = row + shape->element;
        limited |= set->limited;
        most = larger(most, set->experts);
        slots = larger(slots, set->slots);
        holders = larger(holders, holders_of(set, ranks));
        rows = larger(rows, set->rows_max);
        pairs = larger(pairs, shape->tokens * set->picks);
        if (set_pairs * with_gate > sent) sent = set_pairs * with_gate;
        if (set_pairs * row > result) result = set_pairs * row;
        if ((size_t)set->rows_max * with_gate > received)
            received = (size_t)set->rows_max * with_gate;
    }
    experts->wave = (struct hrt_wave){
        .send = take(carve, pairs, sizeof(int32_t)),
        .recv = take(carve, rows, sizeof(int32_t)),
        .send_first = take(carve, ranks + 1, sizeof(int32_t)),
        .recv_first = take(carve, ranks + 1, sizeof(int32_t)),
        .cursor = take(carve, ranks, sizeof(int32_t)),
        .first = take(carve, slots + 1, sizeof(int32_t)),
        .next = take(carve, slots, sizeof(int32_t)),
    };
    experts->total = take(carve, ranks, sizeof *experts->total);
    experts->row = take(carve, holders, sizeof *experts->row);
    experts->before = take(carve, holders, sizeof *experts->before);
    experts->sum = take(carve, holders, sizeof *experts->sum);
    experts->mine = take(carve, most, sizeof *experts->mine);
    experts->said = take(carve, most + 2, sizeof *experts->said);
    experts->heard = take(carve, ranks * (most + 2), sizeof *experts->heard);
    for (int way = 0; way < 2; way++) {
        experts->bytes[way] = take(carve, ranks, sizeof(size_t));
        experts->offset[way] = take(carve, ranks, sizeof(size_t));
    }
    experts->counts = take(carve, ranks * shape->sequences * most, sizeof *experts->counts);
    experts->zeros = take(carve, ranks, sizeof(size_t));
    experts->steps = (struct hrt_steps){.step = take(carve, 2 * ranks, sizeof(struct hrt_step)),
                                        .room = 2 * ranks};
    experts->sent = take(carve, 1, sent);
    experts->received = take(carve, 1, received);
    experts->result = take(carve, 1, result);
    experts->result_gate = take(carve, pairs, shape->element);
    if (!limited) return;
    experts->digits = take(carve, 256 * most, sizeof *experts->digits);
    experts->least = take(carve, most, sizeof *experts->least);
    experts->room = take(carve, most, sizeof *experts->room);
}

// Lays out the block at `base`, or counts when that is NULL. Returns its bytes.
static size_t lay_out(char *base, const struct hrt_experts_shape *shape, int ranks) {
    struct carve carve = {.base = base};
    struct hrt_experts counted = {0};
    struct hrt_experts *experts = take(&carve, 1, sizeof *experts);
    if (!experts) experts = &counted;
    lay_out_layers(&carve, experts, shape, ranks);
    lay_out_wave(&carve, experts, shape, ranks);
    return carve.used;
}

size_t hrt_experts_bytes(const struct hrt_experts_shape *shape, int ranks) {
    return lay_out(NULL, shape, ranks);
}

int32_t hrt_expert_owner(int64_t expert, int64_t experts, int ranks) {
    const int64_t each = experts / ranks, more = experts % ranks;
    if (expert < more * (each + 1)) return (int32_t)(expert / (each + 1));
    return (int32_t)(more + (expert - more * (each + 1)) / each);
}

static bool check(const struct hrt_experts_shape *shape, int ranks, struct hrt_error *error) {
    for (int s = 0; s < shape->sets; s++) {
        const struct hrt_experts_set *set = &shape->set[s];
        assert(set->experts > 0 && set->picks > 0 && set->rows_max > 0);
        assert(set->slots >= (set->experts + ranks - 1) / ranks);
        if (shape->tokens > INT32_MAX / ranks / set->picks)
            return hrt_fail(error,
                            "%" PRId64 " tokens x %" PRId64 " picks x %d ranks are more rows than "
                            "can be numbered; at most %d",
                            shape->tokens, set->picks, ranks, INT32_MAX);
    }
    return true;
}

static void place_owners(struct hpl_plan *plan, int ranks) {
    for (int32_t e = 0; e < plan->experts; e++) {
        plan->first[e] = e;
        plan->holder[e] = hrt_expert_owner(e, plan->experts, ranks);
    }
    plan->first[plan->experts] = plan->experts;
}

bool hrt_experts_create(struct hrt_experts **experts, const struct hrt_experts_shape *shape,
                        struct hrt_comm *comm, struct hrt_error *error) {
    *experts = NULL;
    if (!check(shape, comm->size, error)) return false;
    const size_t bytes = hrt_experts_bytes(shape, comm->size);
    char *block = aligned_alloc(64, bytes); // Committed where it is touched.
    if (!block)
        return hrt_fail(error, "not enough memory: the exchange of rows needs %zu bytes", bytes);
    lay_out(block, shape, comm->size);
    *experts = (struct hrt_experts *)block;
    (*experts)->comm = comm;
    hrt_experts_tokens(*experts, 0, 0);
    (*experts)->word = 0;
    (*experts)->compared = 0;
    (*experts)->comparing = false;
    hrt_experts_watch(*experts, NULL, NULL);
    memset((*experts)->zeros, 0, (size_t)comm->size * sizeof(size_t));
    for (int s = 0; s < shape->sets; s++) {
        for (int64_t i = 0; i < shape->set[s].layers; i++) {
            struct hrt_experts_layer *layer = hrt_layer(*experts, s, i);
            place_owners(&layer->plan, comm->size);
            layer->divided = false;
        }
    }
    return true;
}

void hrt_experts_destroy(struct hrt_experts *experts) {
    free(experts);
}

void hrt_experts_place(struct hrt_experts *experts, int set, int64_t at,
                       const struct hpl_plan *plan) {
    struct hrt_experts_layer *layer = hrt_layer(experts, set, at);
    struct hpl_plan *own = &layer->plan;
    const int32_t holders = plan->first[plan->experts];
    assert(plan->experts == own->experts && holders <= own->capacity);
    memcpy(own->first, plan->first, (size_t)(plan->experts + 1) * sizeof *plan->first);
    memcpy(own->holder, plan->holder, (size_t)holders * sizeof *plan->holder);
}

void hrt_experts_divide(struct hrt_experts *experts, hrt_quota_fn *quota, void *context) {
    experts->shape.quota = quota;
    experts->shape.quota_context = context;
}

const uint32_t *hrt_experts_counts(const struct hrt_experts *experts, int set, int64_t layer) {
    return hrt_layer(experts, set, layer)->count;
}
