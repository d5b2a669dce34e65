// Transfers of a layer's chunks: one way of making them for each collective.
#include <string.h>

#include "passes/timeline/traffic.h"
#include "runtime/plan/plan.h"

static size_t cells(const struct hec_mover *m) {
    return (size_t)m->cost->experts * (size_t)m->stage.topology.devices;
}

void hec_movement_begin(struct hec_mover *m) {
    struct hec_arena *arena = &m->stage.arena;
    const struct hpl_topology *t = &m->stage.topology;
    const size_t devices = (size_t)t->devices;
    m->chunks = hec_chunks_take(&m->stage);
    if (!hec_has_pairs(m)) return;
    m->schedule.capacity = (int32_t)cells(m) * m->segments;
    m->schedule.transfer =
        hec_arena_alloc(arena, (size_t)m->schedule.capacity, sizeof *m->schedule.transfer);
    m->last = hec_arena_alloc(arena, devices * devices, sizeof *m->last);
    m->parent = hec_arena_alloc(arena, (size_t)m->schedule.capacity, sizeof *m->parent);
    m->arrival = hec_arena_alloc(arena, (size_t)m->segments * cells(m), sizeof *m->arrival);
    const size_t bytes = hpl_work_bytes(m->cost->experts, t->devices, t->nodes, (int32_t)cells(m));
    m->work.at = hec_arena_alloc(arena, bytes, 1);
    m->work.end = m->work.at + bytes;
}

// One kind of transfer of chunks.
struct kind {
    enum hec_lane lane;
    const char *what;
    int32_t layer;
    int64_t bytes; // A chunk's.
    bool back;     // Gradients: turned round.
};

// ---- schedules: from owners

// Which transfer brings each sender what it sends: parent, -1 for owners.
static void find_parents(struct hec_mover *m) {
    const struct hpl_schedule *s = &m->schedule;
    const int32_t devices = m->stage.topology.devices;
    memset(m->arrival, 0, (size_t)m->segments * cells(m) * sizeof *m->arrival);
    for (int32_t i = 0; i < s->count; i++) {
        const struct hpl_transfer *t = &s->transfer[i];
        int32_t *here =
            m->arrival +
            ((size_t)t->segment * (size_t)m->cost->experts + (size_t)t->expert) * (size_t)devices;
        m->parent[i] = here[t->from] - 1;
        here[t->to] = i + 1;
    }
}

// A message of the schedule, behind the one before it between the same devices.
static int32_t add_message(struct hec_mover *m, int32_t transfer, int32_t from, int32_t to,
                           double bytes) {
    const int32_t own = hec_transfer_message(m->lanes, transfer, from, to, bytes);
    int32_t *last = &m->last[from * m->stage.topology.devices + to];
    if (*last) hec_transfer_behind(m->lanes, transfer, own, *last - 1);
    *last = own + 1;
    return own;
}

// The schedule's messages; `back`: turned round, each behind those that it sums, in the reverse order. They
// follow those that the transfer has, if it has any, and begin with number `first`.
static void add_messages(struct hec_mover *m, int32_t transfer, double bytes, bool back,
                         int32_t first) {
    const struct hpl_schedule *s = &m->schedule;
    const size_t devices = (size_t)m->stage.topology.devices;
    memset(m->last, 0, devices * devices * sizeof *m->last);
    for (int32_t i = 0; i < s->count; i++) {
        const struct hpl_transfer *t = &s->transfer[back ? s->count - 1 - i : i];
        add_message(m, transfer, back ? t->to : t->from, back ? t->from : t->to, bytes);
    }
    for (int32_t i = 0; i < s->count; i++) {
        const int32_t parent = m->parent[i];
        if (parent < 0) continue;
        if (back) {
            hec_transfer_after(m->lanes, transfer, first + s->count - 1 - parent,
                               first + s->count - 1 - i);
        } else {
            hec_transfer_after(m->lanes, transfer, first + i, first + parent);
        }
    }
}

// An owner sends a sum back when all parts of it have arrived.
static void send_sums_back(struct hec_mover *m, int32_t transfer) {
    const struct hpl_schedule *s = &m->schedule;
    for (int32_t i = 0; i < s->count; i++) {
        const struct hpl_transfer *there = &s->transfer[i];
        for (int32_t k = 0; k < s->count && m->parent[i] < 0; k++) {
            const struct hpl_transfer *t = &s->transfer[k];
            if (t->expert == there->expert && t->segment == there->segment && m->parent[k] < 0)
                hec_transfer_after(m->lanes, transfer, s->count + i, s->count - 1 - k);
        }
    }
}

static int32_t add_schedule(struct hec_mover *m, const struct kind *kind) {
    const int32_t transfer = hec_transfer_new(m->lanes, kind->lane, kind->what, kind->layer);
    add_messages(m, transfer, (double)kind->bytes / m->segments, kind->back, 0);
    return transfer;
}

// Copies that stay: sums to the owner, and from there to all.
static int32_t add_sums(struct hec_mover *m, const struct kind *kind) {
    const int32_t transfer = hec_transfer_new(m->lanes, kind->lane, kind->what, kind->layer);
    const double bytes = (double)kind->bytes / m->segments;
    add_messages(m, transfer, bytes, true, 0);
    add_messages(m, transfer, bytes, false, m->schedule.count);
    send_sums_back(m, transfer);
    return transfer;
}

// ---- shards: from all devices

// One message between every two devices: the parts of all chunks that the one restores of the other's.
static int32_t add_parts(struct hec_mover *m, const struct hpl_plan *plan,
                         const struct kind *kind) {
    const int32_t devices = m->stage.topology.devices, holders = plan->first[plan->experts];
    const int32_t transfer = hec_transfer_new(m->lanes, kind->lane, kind->what, kind->layer);
    for (int32_t d = 0; d < devices; d++) {
        double count = 0;
        for (int32_t k = 0; k < holders; k++) count += plan->holder[k] == d;
        for (int32_t other = 0; other < devices && count > 0; other++) {
            if (other == d) continue;
            hec_transfer_message(m->lanes, transfer, kind->back ? d : other, kind->back ? other : d,
                                 count * (double)kind->bytes / devices);
        }
    }
    return transfer;
}

// ---- sums through ports

static int32_t add_loads(struct hec_mover *m, const struct hpl_plan *plan,
                         const struct kind *kind) {
    const struct hec_machine *machine = m->scene.machine;
    const struct hpl_topology *t = &m->stage.topology;
    struct hec_chunks *c = &m->chunks;
    hec_chunks_count(&m->stage, plan, c);
    for (int32_t i = 0; i < 2 * t->devices + 2 * t->nodes; i++) c->sent[i] *= (double)kind->bytes;
    const int32_t transfer = hec_transfer_new(m->lanes, kind->lane, kind->what, kind->layer);
    const bool back = kind->back;
    hec_transfer_loads(m->lanes, transfer, back ? c->got : c->sent, back ? c->sent : c->got,
                       back ? c->node_got : c->node_sent, back ? c->node_sent : c->node_got,
                       1e6 * (t->nodes > 1 ? machine->inter_latency : machine->intra_latency));
    return transfer;
}

// ---- plans

// Whether no chunk of the plan moves.
static bool stays(const struct hec_mover *m, const struct hpl_plan *plan) {
    return !hpl_from_shards(m->stage.episode.policy) && plan->first[plan->experts] == plan->experts;
}

// The schedule of a plan, if it has one: parameters follow it, and gradients its mirror.
static bool find_schedule(struct hec_mover *m, const struct hpl_plan *plan) {
    const struct hpl_policy *policy = m->stage.episode.policy;
    if (!hec_has_pairs(m) || hpl_from_shards(policy) || stays(m, plan)) return true;
    if (hpl_schedule_of(policy, &m->stage.topology, m->stage.owner, plan, m->segments, &m->schedule,
                        &m->work) != HPL_OK)
        return false;
    find_parents(m);
    return true;
}

// The transfer that brings the plan, whose schedule was found last, its parameters, or sums its gradients. -1: nothing
// moves.
static int32_t add_chunks(struct hec_mover *m, const struct hpl_plan *plan, const char *what,
                          int32_t layer, bool back) {
    const struct hpl_policy *policy = m->stage.episode.policy;
    const bool copies = policy->collective == HPL_COLLECTIVE_EXCHANGE;
    const struct kind kind = {back ? HEC_LANE_REDUCE : HEC_LANE_GATHER, what, layer,
                              back ? m->cost->grad_way_bytes : m->cost->chunk_bytes, back};
    if (stays(m, plan) || (copies && !back) || kind.bytes == 0) return -1;
    if (!hec_has_pairs(m) || policy->collective == HPL_COLLECTIVE_ALL_GATHER)
        return add_loads(m, plan, &kind);
    if (hpl_from_shards(policy)) return add_parts(m, plan, &kind);
    return copies ? add_sums(m, &kind) : add_schedule(m, &kind);
}

// The holders of a plan, with owners, which keep their chunks also where the policy has others compute them;
// where chunks are cut there are none.
static enum hpl_status with_owners(const struct hec_mover *m, struct hpl_plan *to,
                                   const struct hpl_plan *plan) {
    return hpl_from_shards(m->stage.episode.policy)
               ? hpl_plan_copy(to, plan)
               : hpl_plan_with_owners(to, plan, m->stage.owner);
}

// Gradients of copies that stay, or live for a step, add up by themselves until its last iteration.
static bool sums_wait(const struct hec_mover *m, const struct hec_traffic *t) {
    const bool stay = m->stage.episode.policy->collective == HPL_COLLECTIVE_EXCHANGE;
    return (stay || hec_lasts(m)) && (t->iteration + 1) % m->iterations != 0;
}

// Parameters of an iteration before are still here.
static bool is_here(const struct hec_mover *m, const struct hec_traffic *t) {
    return hec_lasts(m) && !m->movement.rematerialize && t->iteration % m->iterations != 0;
}

bool hec_movement_add(struct hec_mover *m, int32_t layer, struct hec_traffic *t) {
    const struct hec_stage *s = &m->stage;
    t->gather = t->added = t->again = t->reduce = -1;
    if (with_owners(m, &m->whole, &s->plan) != HPL_OK) return false;
    t->replicas = m->whole.first[m->cost->experts] - m->cost->experts;
    if (!find_schedule(m, &m->whole)) return false;
    t->again = add_chunks(m, &m->whole, "parameters again", layer, false);
    if (!sums_wait(m, t)) t->reduce = add_chunks(m, &m->whole, "gradients", layer, true);
    if (s->calibrated && (with_owners(m, &m->whole, &s->before) != HPL_OK ||
                          hpl_plan_added(&m->added, &m->whole, &s->plan, s->owner) != HPL_OK ||
                          !find_schedule(m, &m->whole)))
        return false;
    if (!is_here(m, t)) t->gather = add_chunks(m, &m->whole, "parameters", layer, false);
    if (!s->calibrated) return true;
    if (!find_schedule(m, &m->added)) return false;
    t->added = add_chunks(m, &m->added, "parameters, calibrated", layer, false);
    return true;
}
