// New owners and new copies, as the planner's episode finds them, and the way of their chunks.
#include "passes/timeline/owners.h"

#include <string.h>

#include "runtime/plan/plan.h"

static bool lasts(const struct hec_mover *m) {
    return m->stage.episode.policy->when == HPL_WHEN_PERIODIC;
}

static int64_t times(const struct hec_mover *m) {
    return (int64_t)m->scene.loads->iterations * m->scene.loads->microbatches;
}

int64_t hec_time_of(const struct hec_mover *m, int64_t iteration) {
    const int64_t all = times(m), at = m->begins + iteration;
    const int64_t first = m->movement.window < all ? m->movement.window : all - 1;
    return at < all ? at : first + (at - first) % (all - first);
}

// Parameters, rounded ones too, and moments: all that an owner has but the gradient.
static double state_bytes(const struct hec_mover *m) {
    return (double)(m->cost->owner_bytes - m->cost->grad_bytes);
}

// The layers that are planned for may stand for more.
static double layers_each(const struct hec_mover *m) {
    return (double)m->cost->layers / (double)m->scene.layers;
}

static void move_chunk(struct hec_mover *m, int32_t from, int32_t to, double *chunks) {
    const size_t devices = (size_t)m->stage.topology.devices;
    if (from == to) return;
    m->states[(size_t)from * devices + (size_t)to] += layers_each(m) * state_bytes(m);
    *chunks += layers_each(m);
}

// A holder that has the expert, in the device's node if there is one there.
static int32_t source_of(const struct hec_mover *m, const struct hpl_plan *before, int32_t expert,
                         int32_t device) {
    const int32_t *node = m->stage.topology.node;
    for (int32_t k = before->first[expert]; k < before->first[expert + 1]; k++) {
        if (node[before->holder[k]] == node[device]) return before->holder[k];
    }
    return before->holder[before->first[expert]];
}

// ---- placements that last

static bool place_anew(struct hec_mover *m, int32_t layer, int64_t *owned, double *chunks) {
    struct hec_stage *s = &m->stage;
    struct hpl_plan *placed = &m->placed[layer];
    int32_t *owner = m->owner + (size_t)layer * (size_t)m->cost->experts;
    if (hpl_plan_copy(&m->whole, placed) != HPL_OK ||
        hpl_episode_place_anew(&s->episode, layer, placed) != HPL_OK)
        return false;
    for (int32_t e = 0; e < placed->experts; e++) {
        for (int32_t k = placed->first[e]; k < placed->first[e + 1]; k++) {
            const int32_t d = placed->holder[k];
            if (!hpl_plan_holds(&m->whole, e, d))
                move_chunk(m, source_of(m, &m->whole, e, d), d, chunks);
        }
    }
    hpl_episode_follow(&s->episode, layer, placed, owned, s->owner);
    memcpy(owner, s->owner, (size_t)m->cost->experts * sizeof *owner);
    return true;
}

bool hec_owners_begin(struct hec_mover *m, int64_t at) {
    struct hec_arena *arena = &m->stage.arena;
    const size_t devices = (size_t)m->stage.topology.devices, experts = (size_t)m->cost->experts;
    const size_t layers = (size_t)m->scene.layers;
    double chunks = 0;
    m->states = hec_arena_alloc(arena, devices * devices, sizeof *m->states);
    m->next = hec_arena_alloc(arena, layers * experts, sizeof *m->next);
    if (!lasts(m)) return true;
    m->placed = hec_arena_alloc(arena, layers, sizeof *m->placed);
    for (size_t l = 0; l < layers; l++) {
        m->placed[l] = (struct hpl_plan){
            .experts = m->cost->experts,
            .capacity = (int32_t)(experts * devices),
            .first = hec_arena_alloc(arena, experts + 1, sizeof(int32_t)),
            .holder = hec_arena_alloc(arena, experts * devices, sizeof(int32_t)),
        };
        if (hpl_plan_of_owners(&m->placed[l], m->cost->experts, m->owner + l * experts) != HPL_OK)
            return false;
    }
    m->stage.placed = m->placed;
    return m->movement.reshard_every == 0 || hec_owners_change(m, at, &chunks);
}

// ---- all of it

static bool spread(struct hec_mover *m, double *chunks) {
    if (hpl_episode_spread(&m->stage.episode, m->next) != HPL_OK) return false;
    for (int64_t i = 0; i < m->scene.layers * m->cost->experts; i++) {
        move_chunk(m, m->owner[i], m->next[i], chunks);
        m->owner[i] = m->next[i];
    }
    return true;
}

bool hec_owners_change(struct hec_mover *m, int64_t at, double *chunks) {
    const size_t devices = (size_t)m->stage.topology.devices;
    bool sound = true;
    *chunks = 0;
    m->changes++;
    memset(m->states, 0, devices * devices * sizeof *m->states);
    m->stage.now = at < times(m) ? at : times(m) - 1;
    if (!lasts(m)) return spread(m, chunks);
    memset(m->stage.chunks, 0, devices * sizeof *m->stage.chunks);
    for (int32_t l = 0; l < m->scene.layers && sound; l++)
        sound = place_anew(m, l, m->stage.chunks, chunks);
    return sound;
}

static void add_up(struct hec_mover *m) {
    const struct hpl_topology *t = &m->stage.topology;
    for (int32_t d = 0; d < t->devices; d++) m->out[d] = m->in[d] = 0;
    for (int32_t n = 0; n < t->nodes; n++) m->node_out[n] = m->node_in[n] = 0;
    for (int32_t from = 0; from < t->devices; from++) {
        for (int32_t to = 0; to < t->devices; to++) {
            const double bytes = m->states[(size_t)from * (size_t)t->devices + (size_t)to];
            m->out[from] += bytes, m->in[to] += bytes;
            if (t->node[from] == t->node[to]) continue;
            m->node_out[t->node[from]] += bytes, m->node_in[t->node[to]] += bytes;
        }
    }
}

int32_t hec_owners_transfer(struct hec_mover *m) {
    const int32_t devices = m->stage.topology.devices;
    double all = 0;
    for (int32_t i = 0; i < devices * devices; i++) all += m->states[i];
    if (all == 0) return -1;
    const int32_t transfer = hec_transfer_new(m->lanes, HEC_LANE_STATES, "new owners", -1);
    if (!hec_has_pairs(m)) {
        add_up(m);
        hec_transfer_loads(m->lanes, transfer, m->out, m->in, m->node_out, m->node_in,
                           1e6 * m->scene.machine->inter_latency);
        return transfer;
    }
    for (int32_t i = 0; i < devices * devices; i++) {
        if (m->states[i] > 0)
            hec_transfer_message(m->lanes, transfer, i / devices, i % devices, m->states[i]);
    }
    return transfer;
}
