// Rows that cross once to a node (parallel.rows = node): to a relay, and from it to the devices of its node; back the
// same way, as sums. Messages and phases are those of runtime/experts/relay_rows.c, but that a relay sends the rows of
// all its sources to a device as one message.
#include <string.h>

#include "passes/timeline/traffic.h"

// Bytes of the number of a row's place, and of a count.
enum { NUMBER = 4 };

static int32_t size_of(const struct hpl_topology *t, int32_t node) {
    return t->first[node + 1] - t->first[node];
}

static int32_t relay_of(const struct hpl_topology *t, int32_t node, int32_t device) {
    return t->first[node] + (device - t->first[t->node[device]]) % size_of(t, node);
}

// Rows between two devices in a wave.
static double rows_of(const struct hec_mover *m, const struct hec_traffic *t, int64_t wave,
                      int32_t from, int32_t to) {
    if (t->load[to] <= 0) return 0;
    const double part = hec_traffic_rows(m, t, to, wave) / t->load[to];
    return part * t->pair[(size_t)from * (size_t)m->stage.topology.devices + (size_t)to];
}

// Tokens of a device with rows for a node in a wave, and these rows.
static double tokens_of(const struct hec_mover *m, const struct hec_traffic *t, int64_t wave,
                        int32_t from, int32_t node, double *rows) {
    const struct hpl_topology *p = &m->stage.topology;
    const double tokens = (double)m->cost->rows / m->cost->picks;
    double all = 0;
    *rows = 0;
    for (int32_t to = p->first[node]; to < p->first[node + 1]; to++) {
        *rows += rows_of(m, t, wave, from, to);
        all += t->pair[(size_t)from * (size_t)p->devices + (size_t)to];
    }
    if (all <= 0) return 0;
    const double once = t->once[(size_t)from * (size_t)p->nodes + (size_t)node];
    const double some = hec_rows_once_part(tokens, once, m->cost->picks, *rows / all);
    return some < *rows ? some : *rows;
}

// Adds a message of the phase at hand, behind all that its ends have in the phase before.
static void add(struct hec_mover *m, int32_t transfer, int32_t from, int32_t to, double bytes) {
    struct hec_phases *p = &m->phases;
    const int32_t message = hec_transfer_message(m->lanes, transfer, from, to, bytes);
    const int32_t end[2] = {from, to};
    for (int i = 0; i < 2; i++) {
        const int32_t *before = p->message[!p->now] + end[i] * p->room;
        for (int32_t k = 0; k < p->count[!p->now][end[i]]; k++)
            hec_transfer_after(m->lanes, transfer, message, before[k]);
        p->message[p->now][end[i] * p->room + p->count[p->now][end[i]]++] = message;
    }
}

static void next_phase(struct hec_mover *m) {
    struct hec_phases *p = &m->phases;
    p->now = !p->now;
    memset(p->count[p->now], 0, (size_t)m->stage.topology.devices * sizeof *p->count[0]);
}

static void add_near(struct hec_mover *m, const struct hec_traffic *t, int64_t wave,
                     int32_t transfer, bool back) {
    const struct hpl_topology *p = &m->stage.topology;
    for (int32_t from = 0; from < p->devices; from++) {
        const int32_t node = p->node[from];
        for (int32_t to = p->first[node]; to < p->first[node + 1]; to++) {
            const double rows = from == to ? 0 : rows_of(m, t, wave, from, to);
            if (rows > 0)
                add(m, transfer, back ? to : from, back ? from : to,
                    rows * (double)m->cost->row_bytes);
        }
    }
}

// Messages between devices and their relays: the count of what comes, or else rows.
static void add_far(struct hec_mover *m, const struct hec_traffic *t, int64_t wave,
                    int32_t transfer, bool heads, bool back) {
    const struct hpl_topology *p = &m->stage.topology;
    const double number = back ? 0 : NUMBER;
    for (int32_t device = 0; device < p->devices; device++) {
        for (int32_t node = 0; node < p->nodes; node++) {
            double rows;
            if (node == p->node[device]) continue;
            const double tokens = tokens_of(m, t, wave, device, node, &rows);
            const int32_t relay = relay_of(p, node, device);
            if (heads)
                add(m, transfer, device, relay, NUMBER * (1.0 + size_of(p, node)));
            else if (rows > 0)
                add(m, transfer, back ? relay : device, back ? device : relay,
                    tokens * (double)m->cost->row_bytes + number * rows);
        }
    }
}

// Rows of all sources of a relay, between it and the other devices of its node.
static void add_handed(struct hec_mover *m, const struct hec_traffic *t, int64_t wave,
                       int32_t transfer, int32_t relay, bool back) {
    const struct hpl_topology *p = &m->stage.topology;
    const int32_t node = p->node[relay];
    for (int32_t device = p->first[node]; device < p->first[node + 1]; device++) {
        double rows = 0;
        for (int32_t from = 0; from < p->devices && device != relay; from++) {
            if (p->node[from] != node && relay_of(p, node, from) == relay)
                rows += rows_of(m, t, wave, from, device);
        }
        if (rows > 0)
            add(m, transfer, back ? device : relay, back ? relay : device,
                rows * (double)m->cost->row_bytes);
    }
}

void hec_relay_begin(struct hec_mover *m) {
    const struct hpl_topology *p = &m->stage.topology;
    const size_t devices = (size_t)p->devices;
    struct hec_phases *phases = &m->phases;
    phases->room = 2 * (p->devices + p->nodes);
    for (int i = 0; i < 2; i++) {
        phases->message[i] = hec_arena_alloc(&m->stage.arena, devices * (size_t)phases->room,
                                             sizeof *phases->message[i]);
        phases->count[i] = hec_arena_alloc(&m->stage.arena, devices, sizeof *phases->count[i]);
    }
}

void hec_relay_wave(struct hec_mover *m, const struct hec_traffic *t, int64_t wave,
                    int32_t transfer, bool back) {
    const int32_t devices = m->stage.topology.devices;
    next_phase(m);
    next_phase(m); // Both are empty.
    if (!back) {
        add_far(m, t, wave, transfer, true, back);
        next_phase(m);
        add_far(m, t, wave, transfer, false, back);
    } else {
        for (int32_t d = 0; d < devices; d++) add_handed(m, t, wave, transfer, d, back);
    }
    add_near(m, t, wave, transfer, back);
    next_phase(m);
    if (back) add_far(m, t, wave, transfer, false, back);
    for (int32_t d = 0; d < devices && !back; d++) add_handed(m, t, wave, transfer, d, back);
}

// Relays hand on all rows that enter a node, but those for themselves. Where no single device's rows are known, tokens
// count as alike.
void hec_relay_sums(const struct hec_mover *m, struct hec_traffic *t, double all) {
    const struct hpl_topology *p = &m->stage.topology;
    double rows = 0, crossed = 0;
    for (int32_t node = 0; node < p->nodes; node++) {
        const double size = size_of(p, node), outside = all * (1 - size / p->devices);
        const double tokens = outside / m->cost->picks, got = t->node_got[node];
        double once = tokens > 0 ? hec_rows_once(tokens, got, m->cost->picks) : got;
        if (once > got) once = got;
        for (int32_t d = p->first[node]; d < p->first[node + 1]; d++) {
            t->got[d] += once / size; // At the relay; at their devices they are counted.
            t->got[d] -= got / (size * size);
            t->sent[d] += got * (size - 1) / (size * size);
        }
        rows += got;
        crossed += once;
        t->node_got[node] = once;
    }
    const double kept = rows > 0 ? crossed / rows : 1;
    for (int32_t node = 0; node < p->nodes; node++) {
        const double less = (1 - kept) * t->node_sent[node] / size_of(p, node);
        for (int32_t d = p->first[node]; d < p->first[node + 1]; d++) t->sent[d] -= less;
        t->node_sent[node] *= kept;
    }
    t->cross = crossed / all;
}
