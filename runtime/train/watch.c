// Watching steps: clocks around what ranks do together, and one sum that tells all of them.
#include "runtime/train/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kernels/cpu/observe.h"
#include "runtime/experts/experts.h"

enum { RANK_NUMBERS = sizeof(struct hrt_rank_watch) / sizeof(double) };

static int64_t layers_of(const struct hrt_program *program) {
    int64_t layers = 0;
    for (int i = 0; program->owned && i < program->loads; i++)
        layers += program->set[program->load[i].set].layers;
    return layers;
}

static bool create_layer(struct hrt_layer_watch *layer, int ranks, int64_t experts,
                         const struct hpl_plan *like) {
    layer->before = calloc((size_t)ranks, sizeof *layer->before);
    layer->after = calloc((size_t)ranks, sizeof *layer->after);
    layer->owner = calloc((size_t)experts, sizeof *layer->owner);
    layer->plan = *like;
    layer->plan.first = calloc((size_t)experts + 1, sizeof *layer->plan.first);
    layer->plan.holder = malloc((size_t)like->capacity * sizeof *layer->plan.holder);
    return layer->before && layer->after && layer->owner && layer->plan.first && layer->plan.holder;
}

static bool create_layers(struct hrt_watch *watch) {
    const struct hrt_program *program = watch->state->program;
    struct hrt_layer_watch *layer = watch->layer;
    for (int i = 0; watch->layers && i < program->loads; i++) {
        const int set = program->load[i].set;
        for (int64_t at = 0; at < program->set[set].layers; at++) {
            const struct hpl_plan *plan = hrt_experts_tally(watch->state->experts, set, at).plan;
            if (!create_layer(layer++, watch->comm->size, program->set[set].experts, plan))
                return false;
        }
    }
    return true;
}

bool hrt_train_watch_create(struct hrt_watch *watch, struct hrt_state *state, struct hrt_comm *comm,
                            struct hrt_error *error) {
    const int64_t layers = state->experts ? layers_of(state->program) : 0;
    *watch = (struct hrt_watch){
        .state = state,
        .comm = comm,
        .layers = layers,
        .numbers = HRT_WATCH_OWN + (int64_t)comm->size * RANK_NUMBERS + layers,
        .layer = calloc((size_t)layers + 1, sizeof *watch->layer),
    };
    watch->told = calloc((size_t)watch->numbers, sizeof *watch->told);
    if (!watch->told || !watch->layer || !create_layers(watch)) {
        hrt_train_watch_destroy(watch);
        return hrt_fail(error, "out of memory");
    }
    watch->rank = (struct hrt_rank_watch *)(watch->told + HRT_WATCH_OWN);
    return true;
}

void hrt_train_watch_destroy(struct hrt_watch *watch) {
    for (int64_t i = 0; watch->layer && i < watch->layers; i++) {
        struct hrt_layer_watch *layer = &watch->layer[i];
        free(layer->before);
        free(layer->after);
        free(layer->owner);
        free(layer->plan.first);
        free(layer->plan.holder);
    }
    free(watch->layer);
    free(watch->told);
    *watch = (struct hrt_watch){0};
}

// ---- ranks

static int64_t waited(const struct hrt_comm *comm) {
    int64_t ns = 0;
    for (int i = 0; i < HRT_WAITS; i++) ns += comm->wait[i].ns;
    return ns;
}

static double peak_memory(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

void hrt_train_watch_begin(struct hrt_watch *watch) {
    watch->begun = hk_clock();
    watch->begun_wait = waited(watch->comm);
    watch->gathered = 0;
    if (watch->layers) hrt_experts_forget(watch->state->experts);
}

void hrt_train_watch_end(struct hrt_watch *watch) {
    watch->rank[watch->comm->rank].memory = peak_memory();
    if (!watch->gathered) return; // Its host was a step ahead of the device.
    watch->late = hk_clock() - watch->gathered;
    watch->late_wait = waited(watch->comm) - watch->gathered_wait;
}

static void see_self(struct hrt_watch *watch) {
    struct hrt_rank_watch *self = &watch->rank[watch->comm->rank];
    watch->gathered = hk_clock();
    watch->gathered_wait = waited(watch->comm);
    self->seconds = 1e-9 * (double)(watch->gathered - watch->begun + watch->late);
    self->waited = 1e-9 * (double)(watch->gathered_wait - watch->begun_wait + watch->late_wait);
    self->memory = peak_memory();
    if (watch->state->fssdp) self->moved = hrt_experts_fssdp_moved(watch->state->fssdp);
}

static void see_moves(struct hrt_watch *watch, double *exposed) {
    const struct hrt_program *program = watch->state->program;
    struct hrt_layer_watch *layer = watch->layer;
    for (int i = 0; i < program->loads; i++) {
        const int set = program->load[i].set;
        for (int64_t at = 0; at < program->set[set].layers; at++, layer++) {
            layer->moved = hrt_experts_fssdp_moved_layer(watch->state->fssdp, set, at);
            *exposed++ = layer->moved.exposed;
        }
    }
}

void hrt_train_watch_gather(struct hrt_watch *watch, double own[HRT_WATCH_OWN]) {
    const bool moves = watch->layers && watch->state->fssdp;
    double *exposed = watch->told + watch->numbers - watch->layers;
    memset(watch->told, 0, (size_t)watch->numbers * sizeof *watch->told);
    memcpy(watch->told, own, HRT_WATCH_OWN * sizeof *own);
    see_self(watch);
    if (moves) see_moves(watch, exposed);
    hrt_net_comm_all_reduce(watch->comm, watch->told, watch->numbers, HRT_DOUBLE);
    memcpy(own, watch->told, HRT_WATCH_OWN * sizeof *own);
    for (int64_t i = 0; moves && i < watch->layers; i++)
        watch->layer[i].moved.exposed = exposed[i] / watch->comm->size;
}

struct hrt_moved hrt_train_watch_moved(const struct hrt_watch *watch) {
    struct hrt_moved mean = {0};
    const double ranks = watch->comm->size;
    for (int r = 0; r < watch->comm->size; r++) {
        const struct hrt_moved *moved = &watch->rank[r].moved;
        mean.seconds += moved->seconds / ranks;
        mean.exposed += moved->exposed / ranks;
        mean.late += moved->late / ranks;
        mean.bytes += moved->bytes / ranks;
        mean.crossed += moved->crossed / ranks;
        mean.gradients += moved->gradients / ranks;
    }
    return mean;
}

// ---- layers

static void see_layer(const struct hrt_watch *watch, struct hrt_layer_watch *layer, int set,
                      int64_t at, const int64_t *count) {
    const struct hrt_experts_tally tally = hrt_experts_tally(watch->state->experts, set, at);
    const int ranks = watch->comm->size;
    const int32_t experts = tally.plan->experts;
    memset(layer->before, 0, (size_t)ranks * sizeof *layer->before);
    memcpy(layer->after, tally.computed, (size_t)ranks * sizeof *layer->after);
    memcpy(layer->plan.first, tally.plan->first, ((size_t)experts + 1) * sizeof(int32_t));
    memcpy(layer->plan.holder, tally.plan->holder,
           (size_t)tally.plan->first[experts] * sizeof(int32_t));
    layer->waves = tally.waves;
    layer->dropped = 0;
    for (int32_t e = 0; e < experts; e++) {
        layer->owner[e] = hrt_params_owner(watch->state->placement, set, at, e);
        layer->before[layer->owner[e]] += count[e];
        layer->dropped += count[e];
    }
    for (int r = 0; r < ranks; r++) layer->dropped -= layer->after[r];
}

void hrt_train_watch_layers(struct hrt_watch *watch, const struct hrt_load_counts *loads) {
    const struct hrt_program *program = watch->state->program;
    struct hrt_layer_watch *layer = watch->layer;
    for (int i = 0; watch->layers && i < program->loads; i++) {
        const int set = program->load[i].set;
        const struct hrt_set *of = &program->set[set];
        const int64_t *count = hrt_train_load_counts_of(loads, i);
        for (int64_t at = 0; at < of->layers; at++)
            see_layer(watch, layer++, set, at, count + at * of->experts);
    }
}

// The most over the mean.
static double imbalance(const int64_t *rows, int ranks) {
    int64_t most = 0, sum = 0;
    for (int r = 0; r < ranks; r++) {
        sum += rows[r];
        if (rows[r] > most) most = rows[r];
    }
    return sum > 0 ? (double)most * ranks / (double)sum : 1;
}

// Holders that are not owners.
static int64_t replicas_of(const struct hrt_layer_watch *layer) {
    int64_t replicas = 0;
    for (int32_t e = 0; e < layer->plan.experts; e++) {
        for (int32_t k = layer->plan.first[e]; k < layer->plan.first[e + 1]; k++)
            replicas += layer->plan.holder[k] != layer->owner[e];
    }
    return replicas;
}

struct hrt_watch_sums hrt_train_watch_sums(const struct hrt_watch *watch) {
    const int ranks = watch->comm->size;
    struct hrt_watch_sums sums = {.slowest = ranks > 1 ? 0 : -1};
    double seconds = 0, waits = 0;
    for (int r = 0; r < ranks; r++) {
        const struct hrt_rank_watch *rank = &watch->rank[r];
        seconds += rank->seconds;
        waits += rank->waited;
        if (rank->memory > sums.memory) sums.memory = rank->memory;
        if (ranks > 1 && rank->waited < watch->rank[sums.slowest].waited) sums.slowest = r;
    }
    sums.waited = seconds > 0 ? waits / seconds : 0;
    for (int64_t i = 0; i < watch->layers; i++) {
        const struct hrt_layer_watch *layer = &watch->layer[i];
        const double before = imbalance(layer->before, ranks),
                     after = imbalance(layer->after, ranks);
        if (before > sums.before) sums.before = before;
        if (after > sums.after) sums.after = after;
        sums.replicas += replicas_of(layer);
    }
    return sums;
}
