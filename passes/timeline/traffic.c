// Transfers of a layer, from the planner's plan of it.
#include "passes/timeline/traffic.h"

#include <string.h>

#include "passes/timeline/owners.h"
#include "runtime/plan/grid.h"
#include "runtime/plan/plan.h"

static size_t cells(const struct hec_mover *m) {
    return (size_t)m->cost->experts * (size_t)m->stage.topology.devices;
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
    hec_stage_begin(&m->stage, &m->scene, &m->movement);
    struct hec_arena *arena = &m->stage.arena;
    const struct hpl_topology *t = &m->stage.topology;
    const size_t devices = (size_t)t->devices, nodes = (size_t)t->nodes;
    m->rows = hec_rows_take(&m->stage);
    m->out = hec_arena_alloc(arena, 2 * devices + 2 * nodes, sizeof *m->out);
    m->in = m->out + devices;
    m->node_out = m->in + devices, m->node_in = m->node_out + nodes;
    if (m->cost->once && hec_has_pairs(m)) hec_relay_begin(m);
    m->whole = take_plan(m);
    m->added = take_plan(m);
    m->planned = hec_arena_alloc(arena, (size_t)m->scene.layers * HEC_PLANNED, sizeof *m->planned);
    for (int64_t i = 0; i < m->scene.layers * HEC_PLANNED; i++) m->planned[i].at = -1;
    m->kept = hec_arena_alloc(arena, (size_t)m->scene.layers, sizeof *m->kept);
    for (int64_t i = 0; hec_lasts(m) && i < m->scene.layers; i++) m->kept[i] = take_plan(m);
    hec_movement_begin(m);
}

void hec_mover_free(struct hec_mover *m) {
    hec_stage_free(&m->stage);
}

static size_t numbers_of(const struct hec_mover *m) {
    return 3 * (size_t)m->stage.topology.devices + 2 * (size_t)m->stage.topology.nodes;
}

void hec_traffic_take(struct hec_mover *m, struct hec_traffic *traffic) {
    const size_t devices = (size_t)m->stage.topology.devices,
                 nodes = (size_t)m->stage.topology.nodes;
    double *numbers = hec_arena_alloc(&m->stage.arena, numbers_of(m), sizeof *numbers);
    *traffic = (struct hec_traffic){.iteration = -1, .load = numbers};
    traffic->sent = numbers + devices, traffic->got = traffic->sent + devices;
    traffic->node_sent = traffic->got + devices;
    traffic->node_got = traffic->node_sent + nodes;
    if (hec_has_pairs(m))
        traffic->pair = hec_arena_alloc(&m->stage.arena, devices * devices, sizeof(double));
    if (hec_has_pairs(m) && m->cost->once)
        traffic->once = hec_arena_alloc(&m->stage.arena, devices * nodes, sizeof(double));
}

// ---- counts

// The latencies that a device waits for, one after the other. Over a grid the words that are compared behind the counts,
// where ranks decide by these, go the same way, and rows wait for them; single ones come while the host finds its quotas.
static double exchange_us(const struct hec_mover *m, const struct hpl_grid *grid) {
    const struct hec_machine *machine = m->scene.machine;
    const bool alone = m->stage.topology.nodes == 1;
    const double once = alone ? machine->intra_latency : machine->inter_latency;
    if (grid->groups == 1) return 1e6 * once;
    const double inside = grid->inside > 1 ? machine->intra_latency : 0;
    const double exchanges = hpl_episode_decides(&m->stage.episode) ? 2 : 1;
    return 1e6 * exchanges * (hpl_grid_rounds(grid) * machine->inter_latency + inside);
}

static int32_t add_exchange(struct hec_mover *m, int32_t layer) {
    const struct hpl_topology *t = &m->stage.topology;
    const struct hpl_grid grid = hpl_grid_of(t->devices, t->nodes, t->node);
    const double own = 4.0 * m->cost->experts * (t->devices - 1);
    const double each = t->nodes > 1 ? (double)t->devices / t->nodes : 0;
    const double enter = grid.groups == t->nodes ? t->nodes - 1 : t->devices - each;
    for (int32_t d = 0; d < t->devices; d++) m->out[d] = m->in[d] = own;
    for (int32_t n = 0; n < t->nodes; n++)
        m->node_out[n] = m->node_in[n] = 4.0 * m->cost->experts * each * enter;
    const int32_t transfer = hec_transfer_new(m->lanes, HEC_LANE_COUNTS, "counts", layer);
    hec_transfer_loads(m->lanes, transfer, m->out, m->in, m->node_out, m->node_in,
                       exchange_us(m, &grid));
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
    t->cross = 0;
    for (int32_t n = 0; n < nodes; n++) {
        t->cross += all > 0 ? (double)m->rows.node_sent[n] / all : 0;
        t->node_sent[n] = scale * (double)m->rows.node_sent[n];
        t->node_got[n] = scale * (double)m->rows.node_got[n];
    }
    for (int64_t i = 0; t->pair && i < (int64_t)devices * devices; i++) t->pair[i] *= scale;
    for (int64_t i = 0; t->once && i < (int64_t)devices * nodes; i++) t->once[i] *= scale;
    if (m->cost->once && all > 0) hec_relay_sums(m, t, scale * all);
    const double room = (double)(m->cost->wave_rows > 0 ? m->cost->wave_rows : 1);
    t->imbalance = most / mean;
    t->waves = (int64_t)(scale * most / room);
    if ((double)t->waves * room < scale * most || t->waves < 1) t->waves++;
}

int32_t hec_traffic_wave(struct hec_mover *m, const struct hec_traffic *t, int32_t layer,
                         int64_t wave, const char *what, bool back) {
    const int32_t devices = m->stage.topology.devices, nodes = m->stage.topology.nodes;
    const double bytes = (double)m->cost->row_bytes;
    const int32_t transfer = hec_transfer_new(m->lanes, HEC_LANE_ROWS, what, layer);
    if (t->once) hec_relay_wave(m, t, wave, transfer, back);
    for (int32_t to = 0; t->pair && !t->once && to < devices; to++) {
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

// The layer of the loads that stands for it: the first one for itself alone, as its parameters have less time
// to come.
static int32_t layer_of(const struct hec_mover *m, int32_t layer) {
    const int32_t layers = (int32_t)m->scene.layers;
    return layer < layers ? layer : layers > 1 ? 1 + (layer - 1) % (layers - 1) : 0;
}

static void copy_rows(const struct hec_mover *m, struct hec_traffic *to,
                      const struct hec_traffic *from) {
    const size_t devices = (size_t)m->stage.topology.devices;
    memcpy(to->load, from->load, numbers_of(m) * sizeof *to->load);
    const size_t nodes = (size_t)m->stage.topology.nodes;
    if (to->pair) memcpy(to->pair, from->pair, devices * devices * sizeof *to->pair);
    if (to->once) memcpy(to->once, from->once, devices * nodes * sizeof *to->once);
    to->waves = from->waves;
    to->imbalance = from->imbalance;
    to->cross = from->cross;
}

// Plans for loads of time `at`, adding to a plan that is kept or anew, and counts the rows.
static bool plan(struct hec_mover *m, int32_t layer, int64_t at, int64_t left,
                 const struct hpl_plan *kept, struct hec_planned *p) {
    struct hec_traffic *t = &p->traffic;
    if (p->at < 0) {
        p->plan = take_plan(m);
        p->before = take_plan(m);
        hec_traffic_take(m, t);
    }
    if (!hec_stage_plan(&m->stage, layer, at, left, kept) || !hec_rows_count(&m->stage, &m->rows))
        return false;
    if (t->pair && !hec_rows_pairs(&m->stage, t->pair, t->once)) return false;
    count_rows(m, t);
    p->at = at;
    p->changes = m->changes;
    p->calibrated = m->stage.calibrated;
    return hpl_plan_copy(&p->plan, &m->stage.plan) == HPL_OK &&
           hpl_plan_copy(&p->before, &m->stage.before) == HPL_OK;
}

bool hec_traffic_plan(struct hec_mover *m, int32_t layer, int64_t iteration,
                      struct hec_traffic *t) {
    const int32_t of = layer_of(m, layer);
    const int64_t begin = hec_lasts(m) ? iteration - iteration % m->iterations : iteration;
    const int64_t at = hec_time_of(m, iteration), since = hec_time_of(m, begin);
    struct hec_planned *p = &m->planned[of * HEC_PLANNED + at % HEC_PLANNED];
    const int64_t left = hec_lasts(m) ? begin + m->iterations - iteration : 1;
    if (p->at != at || p->since != since || p->left != left || p->changes != m->changes) {
        if (!plan(m, of, at, left, begin < iteration ? &m->kept[of] : NULL, p)) return false;
        p->since = since;
        p->left = left;
    } else if (!hec_stage_recall(&m->stage, of, &p->before, &p->plan, p->calibrated)) {
        return false;
    }
    if (hec_lasts(m) && hpl_plan_copy(&m->kept[of], &p->plan) != HPL_OK) return false;
    copy_rows(m, t, &p->traffic);
    t->iteration = iteration;
    t->exchange = add_exchange(m, layer);
    return hec_movement_add(m, layer, t);
}
