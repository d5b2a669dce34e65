// Creation: one block of memory, laid out from the bounds that are known when the program is compiled.
#include "runtime/experts/experts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/experts/layer.h"
#include "runtime/plan/plan.h"

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

// The blocks: of the host, of the device, of both.
struct blocks {
    struct carve here, there, both;
};

static void lay_out_layer(struct blocks *blocks, struct hrt_experts_layer *layer,
                          const struct hrt_experts_set *set, const struct hrt_experts_shape *shape,
                          int64_t ranks) {
    struct carve *here = &blocks->here, *there = &blocks->there, *both = &blocks->both;
    const int64_t holders = holders_of(set, ranks);
    const int64_t pairs = shape->tokens * set->picks;
    const struct hrt_experts_layer laid = {
        .set = set,
        .plan = {.experts = (int32_t)set->experts,
                 .capacity = (int32_t)holders,
                 .first = take(here, set->experts + 1, sizeof(int32_t)),
                 .holder = take(here, holders, sizeof(int32_t))},
        .count = take(here, ranks * set->experts, sizeof(uint32_t)),
        .sends = take(here, ranks + 1, sizeof(int32_t)),
        .send = take(both, holders, sizeof(struct hk_run)),
        .recv = take(both, ranks * set->slots, sizeof(struct hk_run)),
        .start = take(both, set->slots + 1, sizeof(int32_t)),
        .pair = take(there, pairs, sizeof(int32_t)),
        .slot = take(there, pairs, sizeof(int32_t)),
        .summed = take(there, shape->nodes > 1 ? pairs : 0, sizeof(int32_t)),
        .running = take(here, set->experts, sizeof(int32_t)),
        .computed = take(here, ranks, sizeof(int64_t)),
    };
    if (layer) *layer = laid;
}

static void lay_out_layers(struct blocks *blocks, struct hrt_experts *experts,
                           const struct hrt_experts_shape *shape, int ranks) {
    struct carve *carve = &blocks->here;
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
            lay_out_layer(blocks, layer ? &layer[i] : NULL, set ? &set[s] : &shape->set[s], shape,
                          ranks);
    }
    if (!carve->base) return;
    experts->shape = *shape;
    experts->shape.set = set;
    experts->layer = layers;
}

// The largest of any set, and bytes of a wave's messages and results.
struct largest {
    int64_t experts, slots, holders, rows, pairs;
    size_t row, gated; // Bytes of a row, and of one with its gate in a message.
    size_t sent, received, result;
    bool limited;
};

static struct largest largest_of(const struct hrt_experts_shape *shape, int ranks, bool relays) {
    struct largest most = {0};
    for (int s = 0; s < shape->sets; s++) {
        const struct hrt_experts_set *set = &shape->set[s];
        const size_t row = hrt_row_bytes(shape, set);
        const size_t set_pairs = (size_t)(shape->tokens * set->picks);
        const size_t with_gate = hrt_gated_bytes(shape, set);
        const size_t pitch = relays ? hrt_experts_relay_pitch(with_gate) : with_gate;
        most.limited |= set->limited;
        most.row = row > most.row ? row : most.row;
        most.gated = with_gate > most.gated ? with_gate : most.gated;
        most.experts = larger(most.experts, set->experts);
        most.slots = larger(most.slots, set->slots);
        most.holders = larger(most.holders, holders_of(set, ranks));
        most.rows = larger(most.rows, set->wave_rows);
        most.pairs = larger(most.pairs, shape->tokens * set->picks);
        if (set_pairs * pitch > most.sent) most.sent = set_pairs * pitch;
        if (set_pairs * row > most.result) most.result = set_pairs * row;
        if ((size_t)set->wave_rows * with_gate > most.received)
            most.received = (size_t)set->wave_rows * with_gate;
    }
    return most;
}

// The most that a rank relays: ranks lie on so many nodes of equally many, or as `comm` says where there is one.
static struct hrt_experts_relay_sizes relay_sizes_of(const struct hrt_experts_shape *shape,
                                                     int64_t ranks, const struct hrt_comm *comm) {
    struct hrt_experts_relay_sizes most = {shape->nodes - 1,
                                           (ranks + shape->nodes - 1) / shape->nodes, 0, 0};
    if (comm) most = hrt_experts_relay_sizes(comm);
    for (int s = 0; s < shape->sets; s++) {
        const struct hrt_experts_set *set = &shape->set[s];
        const int64_t sent = most.sources * shape->tokens, here = most.devices * set->wave_rows;
        const int64_t pairs = sent * set->picks < here ? sent * set->picks : here;
        most.pairs = larger(most.pairs, pairs);
        most.rows = larger(most.rows, sent < pairs ? sent : pairs);
    }
    return most;
}

static void lay_out_relay(struct blocks *blocks, struct hrt_relay *relay,
                          const struct hrt_experts_shape *shape, const struct largest *most,
                          const struct hrt_experts_relay_sizes *sizes, int ranks) {
    struct carve *here = &blocks->here;
    const int64_t steps = 2 * ranks + sizes->sources * (sizes->devices + 1);
    *relay = (struct hrt_relay){
        .most = *sizes,
        .steps = {.step = take(here, steps, sizeof(struct hrt_step)), .room = (int32_t)steps},
        .node_first = take(here, ranks + 1, sizeof(int32_t)),
        .place = take(here, most->pairs, sizeof(int32_t)),
        .lead_pair = take(here, most->pairs, sizeof(int32_t)),
        .lead_row = take(here, most->pairs, sizeof(int32_t)),
        .seen = take(here, shape->tokens, sizeof(int32_t)),
        .rows = take(here, ranks, sizeof(int32_t)),
        .heads = take(here, 2 * ranks, sizeof(int32_t)),
        .hears = take(here, sizes->sources * (1 + sizes->devices), sizeof(int32_t)),
        .relayed = take(here, sizes->sources, sizeof(struct hrt_relayed)),
        .in = take(here, 1,
                   (size_t)sizes->rows * most->row +
                       (size_t)sizes->pairs * (sizeof(int32_t) + shape->element) +
                       48 * (size_t)sizes->sources),
        .out = take(here, sizes->pairs, most->gated),
    };
}

// Only for a device with separate memory.
static void lay_out_copies(struct blocks *blocks, struct hrt_experts *experts,
                           const struct hrt_experts_shape *shape, const struct largest *most) {
    struct carve *both = &blocks->both, *there = &blocks->there;
    experts->copies = (struct hrt_experts_copies){0};
    if (!is_apart(shape)) return;
    experts->copies = (struct hrt_experts_copies){
        .ids = take(both, most->pairs, sizeof(int32_t)),
        .fractions = take(both, shape->sequences * most->experts, shape->element),
    };
    if (!most->limited) return;
    experts->copies.kept = take(both, most->pairs, sizeof(int32_t));
    experts->copies.weights = take(both, most->pairs, shape->element);
    experts->copies.kept_first = take(there, most->experts + 1, sizeof(int32_t));
    experts->copies.kept_pair = take(there, most->pairs, sizeof(int32_t));
    experts->copies.kept_slot = take(there, most->pairs, sizeof(int32_t));
}

// Lays out the arrays that counts and quotas pass through.
static void lay_out_counts(struct carve *here, struct hrt_experts *experts,
                           const struct hrt_experts_shape *shape, const struct largest *most,
                           int ranks) {
    experts->total = take(here, ranks, sizeof *experts->total);
    experts->cursor = take(here, ranks, sizeof *experts->cursor);
    experts->row = take(here, most->holders, sizeof *experts->row);
    experts->before = take(here, most->holders, sizeof *experts->before);
    experts->sum = take(here, most->holders, sizeof *experts->sum);
    experts->to = take(here, most->holders, sizeof *experts->to);
    experts->here = take(here, ranks * most->slots, sizeof *experts->here);
    experts->mine = take(here, most->experts, sizeof *experts->mine);
    experts->heard = take(here, ranks * (most->experts + 2), sizeof *experts->heard);
    experts->counts = take(here, ranks * shape->sequences * most->experts, sizeof *experts->counts);
    if (!most->limited) return;
    experts->digits = take(here, 256 * most->experts, sizeof *experts->digits);
    experts->least = take(here, most->experts, sizeof *experts->least);
    experts->room = take(here, most->experts, sizeof *experts->room);
}

// Lays out the arrays that all sets and layers share, as large as the largest needs.
static void lay_out_wave(struct blocks *blocks, struct hrt_experts *experts,
                         const struct hrt_experts_shape *shape, int ranks,
                         const struct hrt_comm *comm) {
    const bool relays = shape->nodes > 1 && (!comm || comm->nodes > 1);
    const struct largest most = largest_of(shape, ranks, relays);
    struct carve *here = &blocks->here, *there = &blocks->there;
    experts->wave = (struct hrt_wave){
        .send = take(there, most.pairs, sizeof(int32_t)),
        .pair = take(there, most.pairs, sizeof(int32_t)),
        .recv = take(there, most.rows, sizeof(int32_t)),
        .send_first = take(here, ranks + 1, sizeof(int32_t)),
        .recv_first = take(here, ranks + 1, sizeof(int32_t)),
    };
    experts->first = take(&blocks->both, most.experts + 1, sizeof *experts->first);
    for (int way = 0; way < 2; way++) {
        experts->bytes[way] = take(here, ranks, sizeof(size_t));
        experts->offset[way] = take(here, ranks, sizeof(size_t));
    }
    experts->steps = (struct hrt_steps){.step = take(here, 2 * ranks, sizeof(struct hrt_step)),
                                        .room = 2 * ranks};
    experts->returns = (struct hrt_steps){.step = take(here, 2 * ranks, sizeof(struct hrt_step)),
                                          .room = 2 * ranks};
    experts->sent = take(there, 1, most.sent);
    experts->received = take(there, 1, most.received);
    experts->result = take(there, 1, most.result);
    experts->result_gate = take(there, most.pairs, shape->element);
    experts->relay = (struct hrt_relay){0};
    if (relays) {
        const struct hrt_experts_relay_sizes sizes = relay_sizes_of(shape, ranks, comm);
        lay_out_relay(blocks, &experts->relay, shape, &most, &sizes, ranks);
    }
    lay_out_counts(here, experts, shape, &most, ranks);
    lay_out_copies(blocks, experts, shape, &most);
}

// Lays out the blocks, or counts where their bases are NULL. Returns their bytes. Without `comm` nodes have equally
// many ranks.
static struct hrt_experts_bytes lay_out(struct blocks *blocks,
                                        const struct hrt_experts_shape *shape, int ranks,
                                        const struct hrt_comm *comm) {
    struct hrt_experts counted = {0};
    struct hrt_experts *experts = take(&blocks->here, 1, sizeof *experts);
    if (!experts) experts = &counted;
    lay_out_layers(blocks, experts, shape, ranks);
    lay_out_wave(blocks, experts, shape, ranks, comm);
    return (struct hrt_experts_bytes){blocks->here.used, blocks->there.used, blocks->both.used};
}

struct hrt_experts_bytes hrt_experts_bytes(const struct hrt_experts_shape *shape, int ranks) {
    struct blocks none = {0};
    return lay_out(&none, shape, ranks, NULL);
}

static bool check(const struct hrt_experts_shape *shape, int ranks, struct hrt_error *error) {
    for (int s = 0; s < shape->sets; s++) {
        const struct hrt_experts_set *set = &shape->set[s];
        assert(set->experts > 0 && set->picks > 0 && set->wave_rows > 0);
        assert(!set->bf16 || is_apart(shape));
        assert(shape->nodes <= 1 || !is_apart(shape));
        assert(set->slots >= (set->experts + ranks - 1) / ranks);
        if (shape->tokens > INT32_MAX / ranks / set->picks)
            return hrt_fail(error,
                            "%" PRId64 " tokens x %" PRId64
                            " choices x %d ranks are more rows than "
                            "can be numbered; at most %d",
                            shape->tokens, set->picks, ranks, INT32_MAX);
    }
    return true;
}

static void place_owners(struct hpl_plan *plan, int ranks) {
    for (int32_t e = 0; e < plan->experts; e++) {
        plan->first[e] = e;
        plan->holder[e] = hpl_even_owner(e, plan->experts, ranks);
    }
    plan->first[plan->experts] = plan->experts;
}

// Fills in what is not laid out.
static void begin(struct hrt_experts *experts, const struct hrt_experts_shape *shape,
                  struct hrt_comm *comm) {
    experts->comm = comm;
    experts->grid = hpl_grid_of(comm->size, comm->nodes, comm->node_of);
    hrt_experts_tokens(experts, 0, 0);
    experts->word = 0;
    experts->compared = 0;
    experts->routed = experts->dropped = NULL;
    experts->telling = experts->returning = false;
    experts->steps.on_device = false;
    if (experts->relay.most.devices) hrt_experts_relay_begin(experts);
    hrt_experts_watch(experts, NULL, NULL);
    for (int s = 0; s < shape->sets; s++) {
        for (int64_t i = 0; i < shape->set[s].layers; i++) {
            struct hrt_experts_layer *layer = hrt_layer(experts, s, i);
            place_owners(&layer->plan, comm->size);
            layer->divided = false;
        }
    }
    hrt_experts_forget(experts);
}

bool hrt_experts_create(struct hrt_experts **experts, const struct hrt_experts_shape *shape,
                        struct hrt_comm *comm, struct hrt_error *error) {
    static struct hrt_device host = {.backend = &hrt_device_host};
    struct hrt_device *device = shape->device ? shape->device : &host;
    *experts = NULL;
    if (!check(shape, comm->size, error)) return false;
    struct blocks none = {0};
    const struct hrt_experts_bytes bytes = lay_out(&none, shape, comm->size, comm);
    struct blocks blocks = {
        .here.base = aligned_alloc(64, bytes.here), // Committed where it is touched.
        .there.base = device->backend->take(device, HRT_OF_DEVICE, bytes.there, true),
        .both.base = device->backend->take(device, HRT_OF_BOTH, bytes.both, true),
    };
    if (!blocks.here.base || !blocks.there.base || !blocks.both.base) {
        free(blocks.here.base);
        device->backend->give(device, HRT_OF_DEVICE, blocks.there.base, bytes.there);
        device->backend->give(device, HRT_OF_BOTH, blocks.both.base, bytes.both);
        return hrt_fail(error, "not enough memory: the exchange of rows needs %zu bytes",
                        bytes.here + bytes.there + bytes.both);
    }
    lay_out(&blocks, shape, comm->size, comm);
    *experts = (struct hrt_experts *)blocks.here.base;
    (*experts)->device = device;
    (*experts)->there = blocks.there.base;
    (*experts)->both = blocks.both.base;
    (*experts)->bytes_taken = bytes;
    begin(*experts, shape, comm);
    return true;
}

void hrt_experts_destroy(struct hrt_experts *experts) {
    if (!experts) return;
    struct hrt_device *device = experts->device;
    const struct hrt_experts_bytes bytes = experts->bytes_taken;
    device->backend->give(device, HRT_OF_DEVICE, experts->there, bytes.there);
    device->backend->give(device, HRT_OF_BOTH, experts->both, bytes.both);
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

void hrt_experts_forget(struct hrt_experts *experts) {
    for (int s = 0; s < experts->shape.sets; s++) {
        for (int64_t i = 0; i < experts->shape.set[s].layers; i++) {
            struct hrt_experts_layer *layer = hrt_layer(experts, s, i);
            memset(layer->computed, 0, (size_t)experts->comm->size * sizeof *layer->computed);
            layer->most_waves = 0;
        }
    }
}

struct hrt_experts_tally hrt_experts_tally(const struct hrt_experts *experts, int set, int64_t at) {
    const struct hrt_experts_layer *layer = hrt_layer(experts, set, at);
    return (struct hrt_experts_tally){layer->computed, layer->most_waves, &layer->plan};
}

const uint32_t *hrt_experts_counts(const struct hrt_experts *experts, int set, int64_t layer) {
    return hrt_layer(experts, set, layer)->count;
}
