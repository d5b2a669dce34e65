// New owners, and the way of their chunks.
#include "runtime/experts/change_owners.h"

#include <stdint.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/experts/moves.h"
#include "runtime/experts/paths.h"
#include "runtime/params/snapshot.h"
#include "runtime/params/tensor.h"

// ---- new owners

// A periodic policy's new placement of every layer, and owners that are part of it.
static void place_anew(struct hrt_fssdp *fssdp, int index, int32_t *next) {
    struct hrt_moving_set *set = &fssdp->set[index];
    int64_t *owned = fssdp->order;
    memset(owned, 0, (size_t)fssdp->comm->size * sizeof *owned);
    for (int64_t at = 0; at < set->set->layers; at++) {
        struct hpl_plan *placed = &set->layer[at].placed;
        hrt_planned(fssdp, index, at, hpl_episode_place_anew(&set->episode, (int32_t)at, placed));
        hpl_episode_follow(&set->episode, (int32_t)at, placed, owned,
                           next + at * set->set->experts);
    }
}

// Writes the owners that a set is to have. False: they stay.
static bool find_owners(struct hrt_fssdp *fssdp, int index, int32_t *next) {
    struct hrt_moving_set *set = &fssdp->set[index];
    const int64_t chunks = set->set->layers * set->set->experts;
    if (fssdp->policy->when != HPL_WHEN_PERIODIC) {
        hrt_planned(fssdp, index, 0, hpl_episode_spread(&set->episode, next));
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
            hrt_decide_plan(fssdp, index, at, &layer->placed);
        hrt_decide(fssdp, (struct hrt_decision){
                              HRT_DECIDED_OWNERS, index, at, layer->seen + 1,
                              hrt_hash(0, next + at * experts, (size_t)experts * sizeof *next)});
    }
    hrt_agree_now(fssdp);
}

// ---- moving
//
// A rank that receives before it sends takes more memory than it will have. So chunks move along paths
// from owner to owner (paths.h), few of a rank at a time; what has been sent is given back at once, and gradients, which
// are zero now, before all.

enum { BUFFERS = 4, AT_A_TIME = 2, UNDER_WAY = AT_A_TIME * BUFFERS };

struct buffer {
    char *base; // NULL: there is none.
    int64_t element;
};

// Messages of this rank, at most UNDER_WAY at a time. All ranks list theirs in one order, so the first
// one that is left can always go on; and in the same batches, so that both ranks of a message have it in the same group of
// messages of their devices (net/launch.h).
struct way {
    struct hrt_steps steps; // The first member.
    const struct hrt_fssdp *fssdp;
    int set;
    struct hrt_paths paths;
    const int64_t *order; // [count] chunks.
    int64_t at, count;
    struct hrt_step step[UNDER_WAY];
};

static void list_chunk(struct way *way, int64_t chunk) {
    const struct hrt_fssdp *fssdp = way->fssdp;
    const struct hrt_state *state = fssdp->state;
    const struct hrt_set *set = fssdp->set[way->set].set;
    const int64_t element = hrt_element_bytes(fssdp->program->precision);
    const struct buffer buffer[BUFFERS] = {{state->values[HRT_PARAMETERS], element},
                                           {state->rounded, sizeof(hk_bf16)},
                                           {state->values[HRT_MEANS], element},
                                           {state->values[HRT_VARIANCES], element}};
    const int32_t from = way->paths.owner[chunk], to = way->paths.next[chunk];
    const int64_t at = hrt_chunk_offset(set, chunk / set->experts, chunk % set->experts);
    if (from != fssdp->comm->rank && to != fssdp->comm->rank) return;
    for (int i = 0; i < BUFFERS; i++) {
        const int64_t size = buffer[i].element;
        if (!buffer[i].base) continue;
        char *data = buffer[i].base + at * size;
        const size_t bytes = (size_t)(set->chunk_elements * size);
        if (from == fssdp->comm->rank) {
            hrt_steps_send(&way->steps, to, data, bytes, -1);
        } else {
            hrt_steps_receive(&way->steps, from, data, bytes, -1);
        }
    }
}

// Gives back what has been sent, and goes on with the next chunks.
static bool next_chunks(struct hrt_steps *steps) {
    struct way *way = (struct way *)steps;
    for (int32_t i = 0; i < steps->count; i++) {
        if (way->step[i].kind == HRT_SEND)
            hrt_device_forget(&way->fssdp->state->device, (char *)way->step[i].from,
                              way->step[i].bytes); // Its owner's, till now.
    }
    hrt_steps_clear(steps);
    while (way->at < way->count && steps->count == 0) { // Batches of others have nothing here.
        const int64_t end = hrt_paths_batch(&way->paths, way->order, way->at, way->count, AT_A_TIME,
                                            way->fssdp->cursor);
        while (way->at < end) list_chunk(way, way->order[way->at++]);
    }
    return steps->count > 0;
}

static void drop_gradients(const struct hrt_fssdp *fssdp, int index) {
    const struct hrt_set *set = fssdp->set[index].set;
    const int64_t bytes = set->chunk_elements * hrt_element_bytes(fssdp->program->precision);
    char *grads = fssdp->state->values[HRT_GRADIENTS];
    grads += set->offset * hrt_element_bytes(fssdp->program->precision);
    for (int64_t chunk = 0; chunk < set->layers * set->experts; chunk++) {
        if (fssdp->state->placement->owner[index][chunk] == fssdp->comm->rank)
            hrt_device_forget(&fssdp->state->device, grads + chunk * bytes, (size_t)bytes);
    }
}

// What is being saved of chunks that leave is theirs of before. The optimizer has asked, too, but not in a step that is skipped.
static void keep_for_saving(const struct way *way) {
    const struct hrt_state *state = way->fssdp->state;
    const struct hrt_set *set = way->fssdp->set[way->set].set;
    for (int64_t i = 0; i < way->count; i++) {
        const int64_t chunk = way->order[i];
        if (state->placement->owner[way->set][chunk] != way->fssdp->comm->rank) continue;
        hrt_snapshot_change(state->snapshot,
                            hrt_chunk_offset(set, chunk / set->experts, chunk % set->experts),
                            set->chunk_elements);
    }
}

// Returns how many chunks have moved.
static int64_t move_set(const struct hrt_fssdp *fssdp, int index, const int32_t *next) {
    const struct hrt_set *set = fssdp->set[index].set;
    int32_t *owner = fssdp->state->placement->owner[index];
    const struct hrt_paths paths = {owner, next, set->layers * set->experts, fssdp->comm->size};
    const int64_t count = hrt_paths_order(&paths, fssdp->order, fssdp->cursor);
    struct way way = {.steps = {.room = UNDER_WAY, .next = next_chunks},
                      .fssdp = fssdp,
                      .set = index,
                      .paths = paths,
                      .order = fssdp->order,
                      .count = count};
    way.steps.step = way.step;
    way.steps.on_device = hrt_device_is_apart(&fssdp->state->device);
    drop_gradients(fssdp, index);
    keep_for_saving(&way);
    hrt_join(fssdp->comm, hrt_submit(fssdp->comm, HRT_LANE_SAVE, &way.steps),
             "the experts' new owners");
    for (int64_t i = 0; i < count; i++) owner[fssdp->order[i]] = next[fssdp->order[i]];
    return count;
}

// Plans with the owners before are of no use.
static void forget_plans(struct hrt_fssdp *fssdp, int index) {
    for (int64_t at = 0; at < fssdp->set[index].set->layers; at++)
        fssdp->set[index].layer[at].is_ahead = false;
}

int64_t hrt_fssdp_end_step(struct hrt_fssdp *fssdp) {
    const int64_t every = fssdp->movement->reshard_every;
    int64_t moved = 0;
    if (every == 0 || fssdp->iterations < every) return 0;
    fssdp->iterations = 0;
    hrt_moves_finish(fssdp);
    for (int i = 0; i < fssdp->program->sets; i++) {
        const bool found = find_owners(fssdp, i, fssdp->next_owner);
        compare_owners(fssdp, i, fssdp->next_owner);
        if (!found) continue;
        moved += move_set(fssdp, i, fssdp->next_owner);
        forget_plans(fssdp, i);
    }
    return moved;
}
