// Transfers of a layer, from the planner's plan of it.
#include "passes/timeline/traffic.h"

#include <string.h>

#include "runtime/plan/plan.h"
#include "runtime/plan/schedule.h"

static size_t cells(const struct hec_mover *m) {
    return (size_t)m->cost->experts * (size_t)m->stage.topology.devices;
}

static bool has_pairs(const struct hec_mover *m) {
    return !m->sums && m->stage.topology.devices <= HEC_PAIRS_MOST;
}

static struct hpl_plan take_plan(struct hec_mover *m) {
    struct hec_arena *arena = &m->stage.arena;
    return (struct hpl_plan){
        .experts = m->cost->experts,
        .capacity = (int32_t)cells(m),
        .first = hec_arena_alloc(arena, (size_t)m->cost->experts + 1, sizeof(int32_t)),
        .holder = hec_arena_alloc(arena, cells(m), sizeof(int32_t)),
    };
}

void hec_mover_begin(struct hec_mover *m) {
    hec_stage_begin(&m->stage, &m->scene, &m->choice);
    struct hec_arena *arena = &m->stage.arena;
    const struct hpl_topology *t = &m->stage.topology;
    const size_t devices = (size_t)t->devices, nodes = (size_t)t->nodes;
    const int32_t holders = (int32_t)cells(m);
    m->rows = hec_rows_take(&m->stage);
    m->out = hec_arena_alloc(arena, 2 * devices + 2 * nodes, sizeof *m->out);
    m->in = m->out + devices;
    m->node_out = m->in + devices, m->node_in = m->node_out + nodes;
    m->whole = take_plan(m);
    m->added = take_plan(m);
    if (!has_pairs(m)) return;
    m->schedule.capacity = holders * m->segments;
    m->schedule.transfer =
        hec_arena_alloc(arena, (size_t)m->schedule.capacity, sizeof *m->schedule.transfer);
    m->last = hec_arena_alloc(arena, devices * devices, sizeof *m->last);
    m->parent = hec_arena_alloc(arena, (size_t)m->schedule.capacity, sizeof *m->parent);
    m->arrival = hec_arena_alloc(arena, (size_t)m->segments * (size_t)holders, sizeof *m->arrival);
    const size_t bytes = hpl_work_bytes(m->cost->experts, t->devices, t->nodes, holders);
    m->work.at = hec_arena_alloc(arena, bytes, 1);
    m->work.end = m->work.at + bytes;
}

void hec_mover_free(struct hec_mover *m) {
    hec_stage_free(&m->stage);
}

void hec_traffic_take(struct hec_mover *m, struct hec_traffic *traffic) {
    const size_t devices = (size_t)m->stage.topology.devices,
                 nodes = (size_t)m->stage.topology.nodes;
    double *numbers = hec_arena_alloc(&m->stage.arena, 3 * devices + 2 * nodes, sizeof *numbers);
    *traffic = (struct hec_traffic){.iteration = -1, .load = numbers};
    traffic->sent = numbers + devices, traffic->got = traffic->sent + devices;
    traffic->node_sent = traffic->got + devices;
    traffic->node_got = traffic->node_sent + nodes;
    if (has_pairs(m))
        traffic->pair = hec_arena_alloc(&m->stage.arena, devices * devices, sizeof(double));
}

// ---- chunks

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

// The schedule's messages, those between the same devices one behind the other; `back`: turned round, each behind those
// that it sums, in the reverse order.
static int32_t add_messages(struct hec_mover *m, enum hec_lane lane, const char *what,
                            int32_t layer, int64_t chunk_bytes, bool back) {
    const struct hpl_schedule *s = &m->schedule;
    const int32_t devices = m->stage.topology.devices;
    const double bytes = (double)chunk_bytes / m->segments;
    const int32_t transfer = hec_transfer_new(m->lanes, lane, what, layer);
    memset(m->last, 0, (size_t)devices * (size_t)devices * sizeof *m->last);
    for (int32_t i = 0; i < s->count; i++) {
        const struct hpl_transfer *t = &s->transfer[back ? s->count - 1 - i : i];
        const int32_t from = back ? t->to : t->from, to = back ? t->from : t->to;
        const int32_t own = hec_transfer_message(m->lanes, transfer, from, to, bytes);
        int32_t *last = &m->last[from * devices + to];
        if (*last) hec_transfer_behind(m->lanes, transfer, own, *last - 1);
        *last = own + 1;
    }
    for (int32_t i = 0; i < s->count; i++) {
        const int32_t parent = m->parent[i];
        if (parent < 0) continue;
        if (back) {
            hec_transfer_after(m->lanes, transfer, s->count - 1 - parent, s->count - 1 - i);
        } else {
            hec_transfer_after(m->lanes, transfer, i, parent);
        }
    }
    return transfer;
}

// Sums through ports: what devices and nodes get of the plan's chunks. What is sent is taken to be spread over the
// holders evenly, as schedules do.
static int32_t add_loads(struct hec_mover *m, const struct hpl_plan *plan, enum hec_lane lane,
                         const char *what, int32_t layer, int64_t chunk_bytes, bool back) {
    const struct hpl_topology *t = &m->stage.topology;
    const double bytes = (double)chunk_bytes;
    memset(m->out, 0, sizeof *m->out * (size_t)(2 * t->devices + 2 * t->nodes));
    for (int32_t e = 0; e < plan->experts; e++) {
        const int32_t owner = m->stage.owner[e], count = plan->first[e + 1] - plan->first[e];
        int32_t last = -1, nodes = 1;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t d = plan->holder[k], n = t->node[d];
            m->out[d] += bytes * (count - 1) / count;
            if (d != owner) m->in[d] += bytes;
            if (n != last && n != t->node[owner]) m->node_in[n] += bytes, nodes++;
            last = n;
        }
        last = -1;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t n = t->node[plan->holder[k]];
            if (n != last) m->node_out[n] += bytes * (nodes - 1) / nodes;
            last = n;
        }
    }
    const int32_t transfer = hec_transfer_new(m->lanes, lane, what, layer);
    hec_transfer_loads(m->lanes, transfer, back ? m->in : m->out, back ? m->out : m->in,
                       back ? m->node_in : m->node_out, back ? m->node_out : m->node_in,
                       1e6 * m->scene.machine->inter_latency);
    return transfer;
}

// The transfer that brings `plan` from its owners, and where `reduce` is not NULL the one that sums its gradients. Set
// to -1 where nothing moves.
static bool add_chunks(struct hec_mover *m, const struct hpl_plan *plan, const char *what,
                       int32_t layer, int32_t *gather, int32_t *reduce) {
    *gather = -1;
    if (plan->first[plan->experts] == plan->experts) return true;
    const struct hec_set_cost *c = m->cost;
    if (!has_pairs(m)) {
        *gather = add_loads(m, plan, HEC_LANE_GATHER, what, layer, c->chunk_bytes, false);
        if (reduce)
            *reduce = add_loads(m, plan, HEC_LANE_REDUCE, "gradients", layer, c->grad_bytes, true);
        return true;
    }
    if (hpl_schedule_gather(&m->stage.topology, m->stage.owner, plan, m->segments, &m->schedule,
                            &m->work) != HPL_OK)
        return false;
    find_parents(m);
    *gather = add_messages(m, HEC_LANE_GATHER, what, layer, c->chunk_bytes, false);
    if (reduce) *reduce = add_messages(m, HEC_LANE_REDUCE, "gradients", layer, c->grad_bytes, true);
    return true;
}

// What the runtime does: chunks travel from owners, who keep theirs also where the policy has others compute them.
static bool add_movement(struct hec_mover *m, int32_t layer, struct hec_traffic *t) {
    const struct hec_stage *s = &m->stage;
    t->gather = t->added = t->again = t->reduce = -1;
    if (!m->moves) return true;
    if (hpl_plan_with_owners(&m->whole, &s->plan, s->owner) != HPL_OK) return false;
    t->replicas = m->whole.first[m->cost->experts] - m->cost->experts;
    if (!add_chunks(m, &m->whole, "parameters again", layer, &t->again, &t->reduce)) return false;
    if (!s->calibrated) return add_chunks(m, &m->whole, "parameters", layer, &t->gather, NULL);
    return hpl_plan_with_owners(&m->whole, &s->before, s->owner) == HPL_OK &&
           hpl_plan_added(&m->added, &m->whole, &s->plan, s->owner) == HPL_OK &&
           add_chunks(m, &m->whole, "parameters", layer, &t->gather, NULL) &&
           add_chunks(m, &m->added, "parameters, calibrated", layer, &t->added, NULL);
}

// ---- counts

static int32_t add_exchange(struct hec_mover *m, int32_t layer) {
    const struct hpl_topology *t = &m->stage.topology;
    const double own = 4.0 * m->cost->experts * (t->devices - 1);
    const double each = t->nodes > 1 ? (double)t->devices / t->nodes : 0;
    for (int32_t d = 0; d < t->devices; d++) m->out[d] = m->in[d] = own;
    for (int32_t n = 0; n < t->nodes; n++)
        m->node_out[n] = m->node_in[n] = 4.0 * m->cost->experts * each * (t->devices - each);
    const struct hec_machine *machine = m->scene.machine;
    const int32_t transfer = hec_transfer_new(m->lanes, HEC_LANE_COUNTS, "counts", layer);
    hec_transfer_loads(m->lanes, transfer, m->out, m->in, m->node_out, m->node_in,
                       1e6 * (t->nodes > 1 ? machine->inter_latency : machine->intra_latency));
    return transfer;
}

// ---- rows

static void count_rows(struct hec_mover *m, struct hec_traffic *t) {
    const struct hpl_topology *topology = &m->stage.topology;
    const int32_t devices = topology->devices, nodes = topology->nodes;
    double all = 0, most = 0;
    for (int32_t d = 0; d < devices; d++) {
        all += (double)m->rows.load[d];
        if ((double)m->rows.load[d] > most) most = (double)m->rows.load[d];
    }
    const double mean = all > 0 ? all / devices : 1;
    const double scale = (double)m->cost->rows / mean; // Recorded rows stand for the program's.
    for (int32_t d = 0; d < devices; d++) {
        t->load[d] = scale * (double)m->rows.load[d];
        t->sent[d] = scale * (double)m->rows.sent[d];
        t->got[d] = scale * (double)m->rows.got[d];
    }
    for (int32_t n = 0; n < nodes; n++) {
        t->node_sent[n] = scale * (double)m->rows.node_sent[n];
        t->node_got[n] = scale * (double)m->rows.node_got[n];
    }
    for (int64_t i = 0; t->pair && i < (int64_t)devices * devices; i++) t->pair[i] *= scale;
    const double room = (double)(m->cost->rows_max > 0 ? m->cost->rows_max : 1);
    t->imbalance = most / mean;
    t->waves = (int64_t)(scale * most / room);
    if ((double)t->waves * room < scale * most || t->waves < 1) t->waves++;
}

double hec_traffic_rows(const struct hec_mover *m, const struct hec_traffic *t, int32_t device,
                        int64_t wave) {
    const double room = (double)m->cost->rows_max, left = t->load[device] - (double)wave * room;
    return left <= 0 ? 0 : left < room || wave == t->waves - 1 ? left : room;
}

int32_t hec_traffic_wave(struct hec_mover *m, const struct hec_traffic *t, int32_t layer,
                         int64_t wave, const char *what, bool back) {
    const int32_t devices = m->stage.topology.devices, nodes = m->stage.topology.nodes;
    const double bytes = (double)m->cost->row_bytes;
    const int32_t transfer = hec_transfer_new(m->lanes, HEC_LANE_ROWS, what, layer);
    for (int32_t to = 0; t->pair && to < devices; to++) {
        const double part = t->load[to] > 0 ? hec_traffic_rows(m, t, to, wave) / t->load[to] : 0;
        for (int32_t from = 0; from < devices; from++) {
            const double rows = part * t->pair[(size_t)from * (size_t)devices + (size_t)to];
            if (from == to || rows <= 0) continue;
            hec_transfer_message(m->lanes, transfer, back ? to : from, back ? from : to,
                                 bytes * rows);
        }
    }
    if (t->pair) return transfer;
    const double part = bytes / (double)t->waves;
    for (int32_t d = 0; d < devices; d++) {
        m->out[d] = part * (back ? t->got[d] : t->sent[d]);
        m->in[d] = part * (back ? t->sent[d] : t->got[d]);
    }
    for (int32_t n = 0; n < nodes; n++) {
        m->node_out[n] = part * (back ? t->node_got[n] : t->node_sent[n]);
        m->node_in[n] = part * (back ? t->node_sent[n] : t->node_got[n]);
    }
    hec_transfer_loads(m->lanes, transfer, m->out, m->in, m->node_out, m->node_in,
                       1e6 * m->scene.machine->inter_latency);
    return transfer;
}

// ---- all of it

// When loads come to their end they go on where the forecast is full.
static int64_t time_of(const struct hec_mover *m, int64_t iteration) {
    const struct loads *l = m->scene.loads;
    const int64_t times = (int64_t)l->iterations * l->microbatches;
    const int64_t first = m->choice.window < times ? m->choice.window : times - 1;
    return iteration < times ? iteration : first + (iteration - first) % (times - first);
}

bool hec_traffic_plan(struct hec_mover *m, int32_t layer, int64_t iteration,
                      struct hec_traffic *t) {
    if (!hec_stage_plan(&m->stage, layer % m->scene.layers, time_of(m, iteration))) return false;
    if (!hec_rows_count(&m->stage, &m->rows)) return false;
    if (t->pair && !hec_rows_pairs(&m->stage, t->pair)) return false;
    t->iteration = iteration;
    count_rows(m, t);
    t->exchange = add_exchange(m, layer);
    return add_movement(m, layer, t);
}
