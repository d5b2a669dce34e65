// Replicas of a layer come, are read, and go; their gradients go home.
#include <string.h>

#include "runtime/experts/moves.h"

// The gather of the layer's plan; kept with it, as the sum of gradients is its mirror.
static const struct hpl_schedule *gather_of(struct hrt_fssdp *fssdp, int set, int64_t at) {
    struct hrt_moving_set *moving = &fssdp->set[set];
    struct hrt_moving_layer *layer = &moving->layer[at];
    if (!layer->is_scheduled)
        hrt_experts_planned(fssdp, set, at,
                            hpl_schedule_of(fssdp->policy, &fssdp->topology,
                                            hrt_experts_layer_owners(fssdp, set, at), &layer->plan,
                                            moving->slots.segments, &layer->gather,
                                            &moving->episode.work));
    layer->is_scheduled = true;
    return &layer->gather;
}

void hrt_experts_materialize(struct hrt_fssdp *fssdp, int set, int64_t layer, bool rematerialize) {
    if (layer < 0 || layer >= fssdp->set[set].set->layers) return;
    struct hrt_moving_layer *moving = &fssdp->set[set].layer[layer];
    // Again: the plan is what it was, calibrated, and with the same slots.
    if (rematerialize || !moving->prefetched)
        hrt_experts_move_start(fssdp, set, layer, HRT_MOVE_GATHER, gather_of(fssdp, set, layer));
    moving->prefetched = false;
}

// The model's tables of one layer, [experts] each.
struct tables {
    char **table[HRT_CHUNK_KINDS]; // NULL: it has none of the kind.
    char *rest[HRT_CHUNK_KINDS];   // For the entries behind the last expert, which nobody reads.
};

static struct tables tables_of(const struct hrt_fssdp *fssdp, int set, int64_t layer) {
    const struct hrt_set *of = fssdp->set[set].set;
    char *model = fssdp->state->model;
    const int64_t first = layer * of->experts;
    const struct tables tables = {
        .table = {[HRT_CHUNK_PARAMS] = (char **)(model + of->chunks) + first,
                  [HRT_CHUNK_ROUNDED] =
                      of->chunk_rounded ? (char **)(model + of->chunk_rounded) + first : NULL,
                  [HRT_CHUNK_GRADS] = (char **)(model + of->chunk_grads) + first},
        .rest = {[HRT_CHUNK_PARAMS] = fssdp->state->values[HRT_PARAMETERS],
                 [HRT_CHUNK_ROUNDED] = fssdp->state->rounded,
                 [HRT_CHUNK_GRADS] = fssdp->state->values[HRT_GRADIENTS]},
    };
    return tables;
}

// An entry that is there already is not written: kernels that a device has yet to run read it.
static void put(char **entry, char *chunk) {
    if (*entry != chunk) *entry = chunk;
}

static void point(const struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_layer *layer = &fssdp->set[set].layer[at];
    const struct tables tables = tables_of(fssdp, set, at);
    const int64_t experts = fssdp->set[set].set->experts;
    for (int kind = 0; kind < HRT_CHUNK_KINDS; kind++) {
        char **table = tables.table[kind];
        int64_t n = 0;
        if (!table) continue;
        for (int32_t e = 0; e < experts; e++) {
            for (int32_t k = layer->placed.first[e]; k < layer->placed.first[e + 1]; k++) {
                if (layer->placed.holder[k] == fssdp->comm->rank)
                    put(&table[n++],
                        hrt_experts_chunk(fssdp, set, at, e, (enum hrt_chunk_kind)kind));
            }
        }
        for (; n < experts; n++) put(&table[n], tables.rest[kind]);
    }
}

void hrt_experts_await(struct hrt_fssdp *fssdp, int set, int64_t layer) {
    struct hrt_move *move = fssdp->set[set].move;
    hrt_experts_move_await(fssdp, &move[HRT_MOVE_GATHER], layer, "the gathering of experts");
    hrt_experts_move_await(fssdp, &move[HRT_MOVE_ADDED], layer, "the gathering of experts");
    point(fssdp, set, layer);
}

void hrt_experts_reduce(struct hrt_fssdp *fssdp, int set, int64_t layer) {
    if (fssdp->set[set].slots.grad_stride == 0) return; // Nothing of it is trained.
    hrt_experts_planned(fssdp, set, layer,
                        hpl_schedule_mirror(gather_of(fssdp, set, layer), &fssdp->schedule,
                                            &fssdp->set[set].episode.work));
    hrt_experts_move_start(fssdp, set, layer, HRT_MOVE_REDUCE, &fssdp->schedule);
}

void hrt_experts_release_params(struct hrt_fssdp *fssdp, int set, int64_t layer) {
    struct hrt_move *move = fssdp->set[set].move;
    hrt_experts_move_wait(fssdp, &move[HRT_MOVE_GATHER], layer, "the gathering of experts");
    hrt_experts_move_wait(fssdp, &move[HRT_MOVE_ADDED], layer, "the gathering of experts");
}

void hrt_experts_release_grads(struct hrt_fssdp *fssdp, int set, int64_t at) {
    const struct hrt_moving_set *moving = &fssdp->set[set];
    if (at < 0 || at >= moving->set->layers) return;
    hrt_experts_move_wait(fssdp, &fssdp->set[set].move[HRT_MOVE_REDUCE], at,
                          "the sum of experts' gradients");
    const size_t stride = moving->stride[HRT_CHUNK_GRADS];
    const size_t first = (size_t)(at % moving->slots.grad_layers * moving->slots.replicas) * stride;
    const size_t used = (size_t)moving->layer[at].used * stride;
    // As the layer that takes them next expects them.
    if (used) hrt_device_clear(&fssdp->state->device, moving->pool[HRT_CHUNK_GRADS] + first, used);
}

void hrt_experts_moves_finish(struct hrt_fssdp *fssdp) {
    for (int s = 0; fssdp->set && s < fssdp->program->sets; s++) {
        for (int kind = 0; kind < HRT_MOVES; kind++)
            hrt_experts_move_wait(fssdp, &fssdp->set[s].move[kind], -1, "the movement of experts");
    }
}

struct hrt_moved hrt_experts_fssdp_moved(struct hrt_fssdp *fssdp) {
    const struct hrt_moved moved = fssdp->moved;
    fssdp->moved = (struct hrt_moved){0};
    return moved;
}

struct hrt_moved_layer hrt_experts_fssdp_moved_layer(struct hrt_fssdp *fssdp, int set, int64_t at) {
    struct hrt_moving_layer *layer = &fssdp->set[set].layer[at];
    const struct hrt_moved_layer moved = layer->moved;
    layer->moved = (struct hrt_moved_layer){0};
    return moved;
}

bool hrt_experts_step_begins(const struct hrt_fssdp *fssdp) {
    return fssdp->is_first;
}

bool hrt_experts_step_ends(const struct hrt_fssdp *fssdp) {
    return fssdp->is_last;
}

void hrt_experts_fssdp_begin(struct hrt_fssdp *fssdp, bool training, int64_t iteration,
                             int64_t iterations) {
    hrt_experts_moves_finish(fssdp);
    fssdp->is_first = iteration == 0;
    fssdp->is_last = iteration + 1 == iterations;
    fssdp->left = iterations - iteration;
    fssdp->training = training;
    if (training) fssdp->iterations++;
}
