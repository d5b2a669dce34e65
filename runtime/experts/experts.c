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

static bool is_apart(const struct hrt_experts_shape *shape) {
    return shape->device && hrt_device_is_apart(shape->device);
}

static int64_t holders_of(const struct hrt_experts_set *set, int64_t ranks) {
    return set->holders ? set->holders : ranks * set->slots;
}

static void lay_out_layer(struct carve *carve, struct carve *there, struct hrt_experts_layer *layer,
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
        .slot_there = there ? take(there, pairs, sizeof(int32_t)) : NULL,
        .from = take(carve, holders, sizeof(int32_t)),
        .at = take(carve, holders, sizeof(int32_t)),
    };
    if (carve->base) *layer = laid;
}

static void lay_out_layers(struct carve *carve, struct carve *there, struct hrt_experts *experts,
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
            lay_out_layer(carve, is_apart(shape) ? there : NULL, layer ? &layer[i] : NULL,
                          set ? &set[s] : &shape->set[s], shape->tokens, ranks);
    }
    if (!carve->base) return;
    experts->shape = *shape;
    experts->shape.set = set;
    experts->layer = layers;
}

// The largest of any set, and bytes of a wave's messages and results.
struct largest {
    int64_t experts, slots, holders, rows, pairs;
    size_t sent, received, result;
    bool limited;
};

static struct largest largest_of(const struct hrt_experts_shape *shape, int ranks) {
    struct largest most = {0};
    for (int s = 0; s < shape->sets; s++) {
        const struct hrt_experts_set *set = &shape->set[s];
        const size_t row = hrt_row_bytes(shape, set);
        const size_t set_pairs = (size_t)(shape->tokens * set->picks);
        const size_t with_gate = hrt_gate_offset(shape, set) + shape->element;
        most.limited |= set->limited;
        most.experts = larger(most.experts, set->experts);
        most.slots = larger(most.slots, set->slots);
        most.holders = larger(most.holders, holders_of(set, ranks));
        most.rows = larger(most.rows, set->rows_max);
        most.pairs = larger(most.pairs, shape->tokens * set->picks);
        if (set_pairs * with_gate > most.sent) most.sent = set_pairs * with_gate;
        if (set_pairs * row > most.result) most.result = set_pairs * row;
        if ((size_t)set->rows_max * with_gate > most.received)
            most.received = (size_t)set->rows_max * with_gate;
    }
    return most;
}

// What the host sees of a device that is apart, and the lists that this one reads.
static void lay_out_copies(struct carve *carve, struct carve *there, struct hrt_experts *experts,
                           const struct hrt_experts_shape *shape, const struct largest *most) {
    experts->copies = (struct hrt_experts_copies){0};
    if (!is_apart(shape)) return;
    experts->copies = (struct hrt_experts_copies){
        .ids = take(carve, most->pairs, sizeof(int32_t)),
        .kept = take(carve, most->pairs, sizeof(int32_t)),
        .weights = take(carve, most->pairs, shape->element),
        .fractions = take(carve, shape->sequences * most->experts, shape->element),
        .running = take(carve, most->experts, sizeof(int32_t)),
        .sent_pair = take(there, most->pairs, sizeof(int32_t)),
        .send = take(there, most->pairs, sizeof(int32_t)),
        .recv = take(there, most->rows, sizeof(int32_t)),
    };
}

// What all sets and layers share, as large as the largest needs it.
static void lay_out_wave(struct carve *carve, struct carve *there, struct hrt_experts *experts,
                         const struct hrt_experts_shape *shape, int ranks) {
    const struct largest most = largest_of(shape, ranks);
    experts->wave = (struct hrt_wave){
        .send = take(carve, most.pairs, sizeof(int32_t)),
        .recv = take(carve, most.rows, sizeof(int32_t)),
        .send_first = take(carve, ranks + 1, sizeof(int32_t)),
        .recv_first = take(carve, ranks + 1, sizeof(int32_t)),
        .cursor = take(carve, ranks, sizeof(int32_t)),
        .first = take(carve, most.slots + 1, sizeof(int32_t)),
        .next = take(carve, most.slots, sizeof(int32_t)),
    };
    experts->sent_pair = take(carve, most.pairs, sizeof *experts->sent_pair);
    experts->total = take(carve, ranks, sizeof *experts->total);
    experts->row = take(carve, most.holders, sizeof *experts->row);
    experts->before = take(carve, most.holders, sizeof *experts->before);
    experts->sum = take(carve, most.holders, sizeof *experts->sum);
    experts->mine = take(carve, most.experts, sizeof *experts->mine);
    experts->said = take(carve, most.experts + 2, sizeof *experts->said);
    experts->heard = take(carve, ranks * (most.experts + 2), sizeof *experts->heard);
    for (int way = 0; way < 2; way++) {
        experts->bytes[way] = take(carve, ranks, sizeof(size_t));
        experts->offset[way] = take(carve, ranks, sizeof(size_t));
    }
    experts->counts = take(carve, ranks * shape->sequences * most.experts, sizeof *experts->counts);
    experts->zeros = take(carve, ranks, sizeof(size_t));
    experts->steps = (struct hrt_steps){.step = take(carve, 2 * ranks, sizeof(struct hrt_step)),
                                        .room = 2 * ranks};
    experts->sent = take(there, 1, most.sent);
    experts->received = take(there, 1, most.received);
    experts->result = take(there, 1, most.result);
    experts->result_gate = take(there, most.pairs, shape->element);
    lay_out_copies(carve, there, experts, shape, &most);
    if (!most.limited) return;
    experts->digits = take(carve, 256 * most.experts, sizeof *experts->digits);
    experts->least = take(carve, most.experts, sizeof *experts->least);
    experts->room = take(carve, most.experts, sizeof *experts->room);
}

// Lays out the blocks at `base` and, of what moves, at `there`, or counts when they are NULL. Returns their bytes.
static struct hrt_experts_bytes lay_out(char *base, char *there,
                                        const struct hrt_experts_shape *shape, int ranks) {
    struct carve carve = {.base = base}, apart = {.base = there};
    struct hrt_experts counted = {0};
    struct hrt_experts *experts = take(&carve, 1, sizeof *experts);
    if (!experts) experts = &counted;
    lay_out_layers(&carve, &apart, experts, shape, ranks);
    lay_out_wave(&carve, &apart, experts, shape, ranks);
    return (struct hrt_experts_bytes){carve.used, apart.used};
}

struct hrt_experts_bytes hrt_experts_bytes(const struct hrt_experts_shape *shape, int ranks) {
    return lay_out(NULL, NULL, shape, ranks);
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
        assert(!set->bf16 || is_apart(shape));
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

// Fills in what is not laid out.
static void begin(struct hrt_experts *experts, const struct hrt_experts_shape *shape,
                  struct hrt_comm *comm) {
    experts->comm = comm;
    hrt_experts_tokens(experts, 0, 0);
    experts->word = 0;
    experts->compared = 0;
    experts->comparing = false;
    experts->steps.on_device = false;
    hrt_experts_watch(experts, NULL, NULL);
    memset(experts->zeros, 0, (size_t)comm->size * sizeof(size_t));
    for (int s = 0; s < shape->sets; s++) {
        for (int64_t i = 0; i < shape->set[s].layers; i++) {
            struct hrt_experts_layer *layer = hrt_layer(experts, s, i);
            place_owners(&layer->plan, comm->size);
            layer->divided = false;
        }
    }
}

bool hrt_experts_create(struct hrt_experts **experts, const struct hrt_experts_shape *shape,
                        struct hrt_comm *comm, struct hrt_error *error) {
    static struct hrt_device host = {.backend = &hrt_device_host};
    struct hrt_device *device = shape->device ? shape->device : &host;
    *experts = NULL;
    if (!check(shape, comm->size, error)) return false;
    const struct hrt_experts_bytes bytes = lay_out(NULL, NULL, shape, comm->size);
    char *block = aligned_alloc(64, bytes.here); // Committed where it is touched.
    char *there = device->backend->take(device, HRT_OF_DEVICE, bytes.there, true);
    if (!block || !there) {
        free(block);
        device->backend->give(device, HRT_OF_DEVICE, there, bytes.there);
        return hrt_fail(error, "not enough memory: the exchange of rows needs %zu bytes",
                        bytes.here + bytes.there);
    }
    lay_out(block, there, shape, comm->size);
    *experts = (struct hrt_experts *)block;
    (*experts)->device = device;
    (*experts)->there = there;
    (*experts)->there_bytes = bytes.there;
    begin(*experts, shape, comm);
    return true;
}

void hrt_experts_destroy(struct hrt_experts *experts) {
    if (!experts) return;
    experts->device->backend->give(experts->device, HRT_OF_DEVICE, experts->there,
                                   experts->there_bytes);
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
