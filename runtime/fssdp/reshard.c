// New owners, and the way of their chunks.
#include "runtime/fssdp/reshard.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/bf16.h"
#include "runtime/fssdp/own.h"
#include "runtime/params/tensor.h"
#include "runtime/plan/reshard.h"

// ---- new owners

// What the iterations of the window sent to each expert, [layers][experts]. False: there were none.
static bool sum_loads(struct hrt_fssdp *fssdp, int index) {
    const struct hrt_moving_set *set = &fssdp->set[index];
    const int64_t experts = set->set->experts;
    for (int64_t layer = 0; layer < set->set->layers; layer++) {
        if (!hrt_forecast(fssdp, index, layer)) return false;
        for (int64_t e = 0; e < experts; e++) {
            int64_t *rows = &fssdp->rows[layer * experts + e];
            *rows = 0;
            for (int r = 0; r < fssdp->comm->size; r++) *rows += fssdp->forecast[r * experts + e];
        }
    }
    return true;
}

// Among the holders the one that owns fewest of the chunks so far.
static int32_t new_owner(const struct hpl_plan *plan, int32_t expert, const int64_t *owned) {
    int32_t best = plan->holder[plan->first[expert]];
    for (int32_t k = plan->first[expert]; k < plan->first[expert + 1]; k++) {
        if (owned[plan->holder[k]] < owned[best]) best = plan->holder[k];
    }
    return best;
}

static bool is_among(const struct hpl_plan *plan, int32_t expert, int32_t rank) {
    for (int32_t k = plan->first[expert]; k < plan->first[expert + 1]; k++) {
        if (plan->holder[k] == rank) return true;
    }
    return false;
}

// A periodic policy's new placement of every layer, and owners that are part of it.
static void place_anew(struct hrt_fssdp *fssdp, int index, int32_t *next) {
    struct hrt_moving_set *set = &fssdp->set[index];
    const int64_t experts = set->set->experts;
    int64_t *owned = fssdp->rows; // By rank; the sums are not needed here.
    memset(owned, 0, (size_t)fssdp->comm->size * sizeof *owned);
    for (int64_t layer = 0; layer < set->set->layers; layer++) {
        hrt_place_anew(fssdp, index, layer);
        for (int32_t e = 0; e < experts; e++) {
            int32_t *owner = &next[layer * experts + e];
            if (!is_among(&set->layer[layer].placed, e, *owner))
                *owner = new_owner(&set->layer[layer].placed, e, owned);
            owned[*owner]++;
        }
    }
}

// Writes the owners that a set is to have. False: they stay.
static bool find_owners(struct hrt_fssdp *fssdp, int index, int32_t *next) {
    const struct hrt_set *set = fssdp->set[index].set;
    const int32_t *owner = fssdp->program->owners[index];
    const int64_t chunks = set->layers * set->experts;
    if (fssdp->policy->when == HPL_WHEN_PERIODIC) {
        memcpy(next, owner, (size_t)chunks * sizeof *next);
        if (fssdp->set[index].layer[0].seen == 0) return false;
        place_anew(fssdp, index, next);
    } else {
        if (!fssdp->policy->calibrates || !sum_loads(fssdp, index)) return false;
        const int64_t overlap = fssdp->movement->overlap;
        hrt_planned(fssdp, index, 0,
                    hpl_reshard(&fssdp->topology, (int32_t)set->layers, (int32_t)set->experts,
                                fssdp->rows,
                                (int32_t)(overlap < set->experts ? overlap : set->experts), owner,
                                next, &fssdp->work));
    }
    return memcmp(next, owner, (size_t)chunks * sizeof *next) != 0;
}

// ---- moving

enum { UNDER_WAY = 16, TAG = (1 << 14) - 1 };

// Messages of this rank, at most UNDER_WAY at a time. All ranks post theirs in one order, that of
// chunks, so the first one that is left can always go on.
struct way {
    struct hrt_comm *comm;
    struct hrt_request request[UNDER_WAY];
    int64_t posted, done;
};

static void finish_one(struct way *way) {
    while (!hrt_comm_test(way->comm, &way->request[way->done % UNDER_WAY])) continue;
    way->done++;
}

static void post(struct way *way, bool send, int peer, void *data, size_t bytes) {
    if (way->posted - way->done == UNDER_WAY) finish_one(way);
    struct hrt_request *request = &way->request[way->posted++ % UNDER_WAY];
    if (send) {
        hrt_comm_isend(way->comm, request, peer, TAG, data, bytes);
    } else {
        hrt_comm_irecv(way->comm, request, peer, TAG, data, bytes);
    }
}

struct buffer {
    char *base;
    int64_t element;
};

// What a chunk has at its owner; the first four move, and all are given back.
enum { BUFFERS = 5, MOVING = 4 };
static void buffers_of(const struct hrt_fssdp *fssdp, struct buffer buffer[BUFFERS]) {
    const struct hrt_state *state = fssdp->state;
    const int64_t element = hrt_element_bytes(fssdp->program->precision);
    buffer[0] = (struct buffer){state->params, element};
    buffer[1] = (struct buffer){state->rounded, sizeof(hk_bf16)};
    buffer[2] = (struct buffer){state->mean, element};
    buffer[3] = (struct buffer){state->variance, element};
    buffer[4] = (struct buffer){state->grads, element};
}

// The whole pages of a chunk that went away; what shares a page with others stays.
static void give_back(char *begin, size_t bytes) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)begin + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)begin + bytes) / page * page;
    if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
}

static void move_set(const struct hrt_fssdp *fssdp, int index, const int32_t *next,
                     struct way *way) {
    const struct hrt_set *set = fssdp->set[index].set;
    const int32_t *owner = fssdp->program->owners[index];
    const int rank = fssdp->comm->rank;
    struct buffer buffer[BUFFERS];
    buffers_of(fssdp, buffer);
    for (int64_t chunk = 0; chunk < set->layers * set->experts; chunk++) {
        if (owner[chunk] == next[chunk]) continue;
        if (owner[chunk] != rank && next[chunk] != rank) continue;
        const bool send = owner[chunk] == rank;
        const int64_t at = set->offset + chunk * set->chunk_elements;
        for (int i = 0; i < MOVING; i++) {
            if (buffer[i].base)
                post(way, send, send ? next[chunk] : owner[chunk],
                     buffer[i].base + at * buffer[i].element,
                     (size_t)(set->chunk_elements * buffer[i].element));
        }
    }
}

static void leave_set(const struct hrt_fssdp *fssdp, int index, const int32_t *next) {
    const struct hrt_set *set = fssdp->set[index].set;
    int32_t *owner = fssdp->program->owners[index];
    struct buffer buffer[BUFFERS];
    buffers_of(fssdp, buffer);
    for (int64_t chunk = 0; chunk < set->layers * set->experts; chunk++) {
        const bool left = owner[chunk] == fssdp->comm->rank && next[chunk] != owner[chunk];
        const int64_t at = set->offset + chunk * set->chunk_elements;
        for (int i = 0; left && i < BUFFERS; i++) {
            if (buffer[i].base)
                give_back(buffer[i].base + at * buffer[i].element,
                          (size_t)(set->chunk_elements * buffer[i].element));
        }
        owner[chunk] = next[chunk];
    }
}

bool hrt_fssdp_end_step(struct hrt_fssdp *fssdp) {
    const int64_t every = fssdp->movement->reshard_every;
    bool changed = false;
    if (every == 0 || fssdp->iterations < every) return false;
    fssdp->iterations = 0;
    hrt_moves_finish(fssdp);
    for (int i = 0; i < fssdp->program->sets; i++) {
        struct way way = {.comm = fssdp->comm};
        if (!find_owners(fssdp, i, fssdp->next_owner)) continue;
        move_set(fssdp, i, fssdp->next_owner, &way);
        while (way.done < way.posted) finish_one(&way);
        leave_set(fssdp, i, fssdp->next_owner);
        changed = true;
    }
    return changed;
}
