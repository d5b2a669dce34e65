// New owners, and the way of their chunks.
#define _GNU_SOURCE // The program's name.
#include "runtime/experts/change_owners.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/experts/moves.h"
#include "runtime/experts/paths.h"
#include "runtime/params/chunks.h"
#include "runtime/params/snapshot.h"

// ---- new owners

// A periodic policy's new placement of every layer, and owners that are part of it.
static void place_anew(struct hrt_fssdp *fssdp, int index, int32_t *next) {
    struct hrt_moving_set *set = &fssdp->set[index];
    int64_t *owned = fssdp->order;
    memset(owned, 0, (size_t)fssdp->comm->size * sizeof *owned);
    for (int64_t at = 0; at < set->set->layers; at++) {
        struct hpl_plan *placed = &set->layer[at].placed;
        hrt_experts_planned(fssdp, index, at,
                            hpl_episode_place_anew(&set->episode, (int32_t)at, placed));
        hpl_episode_follow(&set->episode, (int32_t)at, placed, owned,
                           next + at * set->set->experts);
    }
}

// Writes the owners that a set is to have. False: they stay.
static bool find_owners(struct hrt_fssdp *fssdp, int index, int32_t *next) {
    struct hrt_moving_set *set = &fssdp->set[index];
    const int64_t chunks = set->set->layers * set->set->experts;
    if (fssdp->policy->when != HPL_WHEN_PERIODIC) {
        hrt_experts_planned(fssdp, index, 0, hpl_episode_spread(&set->episode, next));
    } else if (set->layer[0].seen > 0) {
        place_anew(fssdp, index, next);
    } else {
        memcpy(next, fssdp->state->placement->owner[index], (size_t)chunks * sizeof *next);
    }
    return memcmp(next, fssdp->state->placement->owner[index], (size_t)chunks * sizeof *next) != 0;
}

// Before anything moves: all ranks have the same owners in mind, of placements that are the same.
static void compare_owners(struct hrt_fssdp *fssdp, int index, const int32_t *next) {
    const struct hrt_moving_set *set = &fssdp->set[index];
    const int64_t experts = set->set->experts;
    for (int64_t at = 0; at < set->set->layers; at++) {
        const struct hrt_moving_layer *layer = &set->layer[at];
        if (fssdp->policy->when == HPL_WHEN_PERIODIC)
            hrt_experts_decide_plan(fssdp, index, at, &layer->placed);
        hrt_experts_decide(fssdp,
                           (struct hrt_decision){HRT_DECIDED_OWNERS, index, at, layer->seen + 1,
                                                 hrt_experts_hash(0, next + at * experts,
                                                                  (size_t)experts * sizeof *next)});
    }
    hrt_experts_agree_now(fssdp);
}

// ---- moving
//
// A rank that receives before it sends takes more memory than it will have. So chunks move along paths
// from owner to owner (paths.h), few of a rank at a time, and buffer by buffer: parameters of all chunks, then a state of
// all. Each batch is waited for: then what has been sent is given back. Gradients, which are zero now, are given back before
// all others, and stand again behind them.

// All ranks list their messages in the same batches, so both ranks of a message have it in the same one.
struct way {
    const struct hrt_fssdp *fssdp;
    int set;
    struct hrt_paths paths;
    const int64_t *order; // [count] chunks.
    int64_t count;
    enum hpl_buffer buffer; // Moves now.
    struct hrt_step step[HPL_UNDER_WAY];
};

static void list_chunk(const struct way *way, struct hrt_steps *steps, int64_t chunk) {
    const int32_t from = way->paths.owner[chunk], to = way->paths.next[chunk];
    const int rank = way->fssdp->comm->rank;
    if (from != rank && to != rank) return;
    size_t bytes;
    char *data = hrt_params_chunk_at(way->fssdp->state, way->buffer, way->set, chunk, &bytes);
    if (!data) return;
    if (from == rank)
        hrt_net_steps_send(steps, to, data, bytes, -1);
    else
        hrt_net_steps_receive(steps, from, data, bytes, -1);
}

// Memory stands behind a chunk before its first byte arrives.
static void touch_chunk(const struct way *way, enum hpl_buffer buffer, int64_t chunk) {
    const struct hrt_fssdp *fssdp = way->fssdp;
    if (hrt_params_chunk_touch(fssdp->state, buffer, way->set, chunk)) return;
    fprintf(stderr, "%s: error: not enough memory on %s for an expert's new owner\n",
            program_invocation_short_name, fssdp->state->device.name);
    hrt_net_comm_abort(fssdp->comm, HRT_EXIT_FAILED);
}

static void leave_gradients(const struct way *way) {
    for (int64_t i = 0; i < way->count; i++) {
        if (way->paths.owner[way->order[i]] == way->fssdp->comm->rank)
            hrt_params_chunk_leave(way->fssdp->state, HPL_GRADIENTS, way->set, way->order[i]);
    }
}

static void touch_gradients(const struct way *way) {
    for (int64_t i = 0; i < way->count; i++) {
        if (way->paths.next[way->order[i]] == way->fssdp->comm->rank)
            touch_chunk(way, HPL_GRADIENTS, way->order[i]);
    }
}

static void move_batch(struct way *way, int64_t begin, int64_t end) {
    struct hrt_comm *comm = way->fssdp->comm;
    struct hrt_steps steps = {.step = way->step, .room = HPL_UNDER_WAY};
    steps.on_device = hrt_device_is_apart(&way->fssdp->state->device);
    for (int64_t i = begin; i < end; i++) {
        if (way->paths.next[way->order[i]] == comm->rank)
            touch_chunk(way, way->buffer, way->order[i]);
        list_chunk(way, &steps, way->order[i]);
    }
    hrt_net_lane_join(comm, hrt_net_lane_submit(comm, HRT_LANE_SAVE, &steps),
                      "the experts' new owners");
    for (int64_t i = begin; i < end; i++) {
        if (way->paths.owner[way->order[i]] == comm->rank)
            hrt_params_chunk_leave(way->fssdp->state, way->buffer, way->set, way->order[i]);
    }
}

static void move_buffer(struct way *way) {
    for (int64_t at = 0, end; at < way->count; at = end) {
        end = hrt_experts_paths_batch(&way->paths, way->order, at, way->count, HPL_UNDER_WAY,
                                      way->fssdp->cursor);
        move_batch(way, at, end);
    }
}

// Chunks that leave are saved with their old values. The optimizer has asked for that, too, but not in a skipped step.
static void keep_for_saving(const struct way *way) {
    const struct hrt_state *state = way->fssdp->state;
    const struct hrt_set *set = way->fssdp->set[way->set].set;
    for (int64_t i = 0; i < way->count; i++) {
        const int64_t chunk = way->order[i];
        if (state->placement->owner[way->set][chunk] != way->fssdp->comm->rank) continue;
        hrt_params_snapshot_change(
            state->snapshot,
            hrt_params_chunk_offset(set, chunk / set->experts, chunk % set->experts),
            set->chunk_elements);
    }
}

// Returns how many chunks have moved.
static int64_t move_set(const struct hrt_fssdp *fssdp, int index, const int32_t *next) {
    const struct hrt_set *set = fssdp->set[index].set;
    int32_t *owner = fssdp->state->placement->owner[index];
    const struct hrt_paths paths = {owner, next, set->layers * set->experts, fssdp->comm->size};
    const int64_t count = hrt_experts_paths_order(&paths, fssdp->order, fssdp->cursor);
    struct way way = {
        .fssdp = fssdp, .set = index, .paths = paths, .order = fssdp->order, .count = count};
    keep_for_saving(&way);
    leave_gradients(&way);
    for (way.buffer = 0; way.buffer < HPL_BUFFERS; way.buffer++) {
        if (way.buffer != HPL_GRADIENTS) move_buffer(&way);
    }
    touch_gradients(&way);
    // The host goes on to compare plans with other ranks, whose devices may still wait for what this one sends.
    hrt_device_join(&fssdp->state->device, HRT_WHY_VALUES);
    for (int64_t i = 0; i < count; i++) owner[fssdp->order[i]] = next[fssdp->order[i]];
    return count;
}

// Plans with the owners before are of no use.
static void forget_plans(struct hrt_fssdp *fssdp, int index) {
    for (int64_t at = 0; at < fssdp->set[index].set->layers; at++)
        fssdp->set[index].layer[at].is_ahead = fssdp->set[index].layer[at].is_known = false;
}

static int64_t change_owners(struct hrt_fssdp *fssdp) {
    const int64_t every = fssdp->movement->reshard_every;
    int64_t moved = 0;
    if (every == 0 || fssdp->iterations < every) return 0;
    fssdp->iterations = 0;
    hrt_experts_moves_finish(fssdp);
    for (int i = 0; i < fssdp->program->sets; i++) {
        const bool found = find_owners(fssdp, i, fssdp->next_owner);
        compare_owners(fssdp, i, fssdp->next_owner);
        if (!found) continue;
        moved += move_set(fssdp, i, fssdp->next_owner);
        forget_plans(fssdp, i);
    }
    return moved;
}

int64_t hrt_experts_fssdp_end_step(struct hrt_fssdp *fssdp) {
    const int64_t moved = change_owners(fssdp);
    // A device computes the optimizer meanwhile; in the next step's first layer it would wait for the plans of all.
    if (fssdp->movement->lifetime == HPL_LIFETIME_STEP && !fssdp->movement->known)
        hrt_experts_plan_ahead(fssdp);
    return moved;
}
