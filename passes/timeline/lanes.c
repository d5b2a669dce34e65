// Transfers: the devices that have come to them, the messages that may leave, and the order among these.
#include "passes/timeline/lanes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "passes/timeline/network.h"
#include "passes/timeline/streams.h"

const char *const hec_lane_names[HEC_LANES] = {"counts", "rows",  "gather",
                                               "reduce", "dense", "states"};

// The part of a port that may lie idle before its other flows get it: times are wrong by no more, and found several
// times as fast.
static const double slack = 0.02;

enum state { ABSENT, QUEUED, STARTED, DONE };

struct message {
    int32_t from, to; // Sums: devices from .. to - 1 wait for it.
    int32_t port;     // Sums; -1: from device to device.
    int32_t waits;    // For so many others.
    int32_t edge;     // The first of those that wait for it; -1: none.
    bool sent, behind;
    double bytes;
};

struct edge {
    int32_t message, next;
};

struct transfer {
    enum hec_lane lane;
    const char *what;
    int32_t layer;
    bool together; // Starts when all devices have come.
    double delay;
    double *bytes;        // [ports] where there are sums alone; NULL: messages
    double sent;          // When these began,
    struct hec_path path; // the path to that.
    struct message *message;
    int32_t count, room;
    struct edge *edge;
    int32_t edges, edge_room;
    int32_t started, done; // Devices.
    unsigned char *state;  // [devices]
    double *begin;         // [devices]
    int32_t *left;         // [devices] messages that have not arrived
    int32_t *first, *of;   // [devices + 1] messages by device, once the first has come
};

// Transfers of one lane that a device has come to.
struct queue {
    int32_t *transfer;
    int32_t head, count, room;
};

// A message under way. There are many more messages than these: fields that only these need are here.
struct slot {
    int32_t transfer, message;
    double begin;
    struct hec_path path; // To its begin.
};

struct hec_lanes {
    int32_t devices, nodes, of_node;
    int32_t ports;
    double near_us, far_us; // Latencies.
    double *capacity;       // [ports] what transfers reach of links
    struct hec_network *network;
    struct hec_streams *streams;  // Where there are sums alone; NULL elsewhere.
    double *streamed;             // [ports] bytes
    int32_t streaming[HEC_LANES]; // The transfer under way on the lane.
    struct transfer *transfer;
    int32_t count, room;
    struct queue *queue; // [devices][HEC_LANES]
    struct slot *slot;   // By flow: the network's owners.
    int32_t slots, slot_room, *vacant, vacancies, vacant_room;
    struct hec_woken *woken;
    int32_t wakes, wakes_at, wake_room;
    struct hec_lanes_watcher watcher;
};

// ---- memory

static void *take(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) abort(); // As the arenas of the compiler do.
    return memory;
}

static void *grown(void *memory, int32_t count, int32_t *room, size_t size) {
    if (count < *room) return memory;
    *room = *room ? 2 * *room : 64;
    memory = realloc(memory, (size_t)*room * size);
    if (!memory) abort();
    return memory;
}

struct hec_lanes *hec_lanes_create(const struct hec_machine *m, bool sums) {
    struct hec_lanes *l = take(1, sizeof *l);
    l->devices = (int32_t)(m->nodes * m->devices);
    l->nodes = (int32_t)m->nodes;
    l->of_node = (int32_t)m->devices;
    l->ports = 2 * l->devices + 2 * l->nodes;
    l->near_us = 1e6 * m->intra_latency;
    l->far_us = 1e6 * m->inter_latency;
    l->queue = take((size_t)l->devices * HEC_LANES, sizeof *l->queue);
    l->capacity = take((size_t)l->ports, sizeof *l->capacity);
    for (int32_t p = 0; p < l->ports; p++)
        l->capacity[p] = 1e-6 * (p < 2 * l->devices ? hec_intra_rate(m) : hec_inter_rate(m));
    if (sums) {
        l->streams = hec_streams_create(l->devices, l->of_node, HEC_LANES, l->capacity);
        l->streamed = take((size_t)l->ports, sizeof *l->streamed);
    } else {
        l->network = hec_network_create(l->ports, l->capacity, slack);
    }
    return l;
}

static void free_messages(struct transfer *t) {
    free(t->message);
    free(t->edge);
    free(t->state);
    free(t->begin);
    free(t->left);
    free(t->first);
    free(t->of);
    free(t->bytes);
    t->bytes = NULL, t->message = NULL, t->edge = NULL, t->state = NULL, t->begin = NULL;
    t->left = NULL, t->first = NULL, t->of = NULL;
}

void hec_lanes_free(struct hec_lanes *l) {
    if (!l) return;
    for (int32_t i = 0; i < l->count; i++) free_messages(&l->transfer[i]);
    for (int32_t i = 0; i < l->devices * HEC_LANES; i++) free(l->queue[i].transfer);
    hec_network_free(l->network);
    hec_streams_free(l->streams);
    free(l->streamed);
    free(l->capacity);
    free(l->transfer);
    free(l->queue);
    free(l->slot);
    free(l->vacant);
    free(l->woken);
    free(l);
}

// ---- building

int32_t hec_transfer_new(struct hec_lanes *l, enum hec_lane lane, const char *what, int32_t layer) {
    const size_t devices = (size_t)l->devices;
    l->transfer = grown(l->transfer, l->count, &l->room, sizeof *l->transfer);
    l->transfer[l->count] = (struct transfer){
        .lane = lane,
        .what = what,
        .layer = layer,
        .state = take(devices, sizeof(unsigned char)),
        .begin = take(devices, sizeof(double)),
        .left = take(devices, sizeof(int32_t)),
    };
    return l->count++;
}

static int32_t add_message(struct transfer *t, const struct message *message) {
    assert(t->started == 0);
    t->message = grown(t->message, t->count, &t->room, sizeof *t->message);
    t->message[t->count] = *message;
    return t->count++;
}

int32_t hec_transfer_message(struct hec_lanes *l, int32_t transfer, int32_t from, int32_t to,
                             double bytes) {
    assert(from != to && from >= 0 && to >= 0 && from < l->devices && to < l->devices);
    struct transfer *t = &l->transfer[transfer];
    assert(!l->streams);
    t->left[from]++;
    t->left[to]++;
    return add_message(
        t, &(struct message){.from = from, .to = to, .port = -1, .edge = -1, .bytes = bytes});
}

void hec_transfer_after(struct hec_lanes *l, int32_t transfer, int32_t message, int32_t before) {
    struct transfer *t = &l->transfer[transfer];
    t->edge = grown(t->edge, t->edges, &t->edge_room, sizeof *t->edge);
    t->edge[t->edges] = (struct edge){message, t->message[before].edge};
    t->message[before].edge = t->edges++;
    t->message[message].waits++;
}

void hec_transfer_behind(struct hec_lanes *l, int32_t transfer, int32_t message, int32_t before) {
    hec_transfer_after(l, transfer, message, before);
    l->transfer[transfer].message[message].behind = true;
}

static void add_load(struct transfer *t, int32_t port, int32_t from, int32_t to, double bytes) {
    for (int32_t d = from; d < to; d++) t->left[d]++;
    add_message(
        t, &(struct message){.from = from, .to = to, .port = port, .edge = -1, .bytes = bytes});
}

static void keep_bytes(const struct hec_lanes *l, struct transfer *t, const double *sent,
                       const double *got, const double *node_sent, const double *node_got) {
    const size_t devices = (size_t)l->devices, nodes = l->nodes > 1 ? (size_t)l->nodes : 0;
    t->bytes = take((size_t)l->ports, sizeof *t->bytes);
    memcpy(t->bytes, sent, devices * sizeof *sent);
    memcpy(t->bytes + devices, got, devices * sizeof *got);
    memcpy(t->bytes + 2 * devices, node_sent, nodes * sizeof *node_sent);
    memcpy(t->bytes + 2 * devices + nodes, node_got, nodes * sizeof *node_got);
    for (int32_t d = 0; d < l->devices; d++) t->left[d] = 1;
}

void hec_transfer_loads(struct hec_lanes *l, int32_t transfer, const double *sent,
                        const double *got, const double *node_sent, const double *node_got,
                        double delay) {
    struct transfer *t = &l->transfer[transfer];
    t->together = true;
    t->delay = delay;
    if (l->streams) {
        keep_bytes(l, t, sent, got, node_sent, node_got);
        return;
    }
    for (int32_t d = 0; d < l->devices; d++) {
        add_load(t, d, d, d + 1, sent[d]);
        add_load(t, l->devices + d, d, d + 1, got[d]);
    }
    for (int32_t n = 0; n < l->nodes && l->nodes > 1; n++) {
        const int32_t from = n * l->of_node, to = from + l->of_node;
        if (node_sent[n] > 0) add_load(t, 2 * l->devices + n, from, to, node_sent[n]);
        if (node_got[n] > 0) add_load(t, 2 * l->devices + l->nodes + n, from, to, node_got[n]);
    }
}

// Lists the messages of each device.
static void list_messages(const struct hec_lanes *l, struct transfer *t) {
    t->first = take((size_t)l->devices + 1, sizeof *t->first);
    t->of = take(2 * (size_t)t->count, sizeof *t->of);
    for (int32_t i = 0; i < t->count; i++) {
        t->first[t->message[i].from + 1]++;
        t->first[t->message[i].to + 1]++;
    }
    for (int32_t d = 0; d < l->devices; d++) t->first[d + 1] += t->first[d];
    int32_t *at = take((size_t)l->devices, sizeof *at);
    memcpy(at, t->first, (size_t)l->devices * sizeof *at);
    for (int32_t i = 0; i < t->count; i++) {
        t->of[at[t->message[i].from]++] = i;
        t->of[at[t->message[i].to]++] = i;
    }
    free(at);
}

// ---- messages

static int32_t take_slot(struct hec_lanes *l, int32_t transfer, int32_t message, double now,
                         const struct hec_path *path) {
    int32_t slot;
    if (l->vacancies) {
        slot = l->vacant[--l->vacancies];
    } else {
        l->slot = grown(l->slot, l->slots, &l->slot_room, sizeof *l->slot);
        slot = l->slots++;
    }
    l->slot[slot] = (struct slot){transfer, message, now, *path};
    return slot;
}

static void send_sums(struct hec_lanes *l, int32_t transfer, double now,
                      const struct hec_path *path) {
    struct transfer *t = &l->transfer[transfer];
    if (l->streams) {
        t->sent = now;
        t->path = *path;
        l->streaming[t->lane] = transfer;
        for (int32_t p = 0; p < l->ports; p++) l->streamed[p] += t->bytes[p];
        hec_streams_start(l->streams, (int32_t)t->lane, now + t->delay, t->bytes);
        return;
    }
    for (int32_t i = 0; i < t->count; i++) {
        const struct message *m = &t->message[i];
        hec_network_start(l->network, now, &m->port, 1, m->bytes, t->delay,
                          take_slot(l, transfer, i, now, path), (int32_t)t->lane);
    }
}

// Sends the message if nothing is missing; `path` is that of what came last.
static void try_send(struct hec_lanes *l, int32_t transfer, int32_t number, double now,
                     const struct hec_path *path) {
    struct transfer *t = &l->transfer[transfer];
    struct message *m = &t->message[number];
    if (m->sent || m->waits || t->state[m->from] < STARTED || t->state[m->to] < STARTED) return;
    const int32_t from = m->from / l->of_node, to = m->to / l->of_node, nodes = 2 * l->devices;
    const int32_t port[HEC_FLOW_PORTS] = {m->from, l->devices + m->to, nodes + from,
                                          nodes + l->nodes + to};
    m->sent = true;
    hec_network_start(l->network, now, port, from == to ? 2 : 4, m->bytes,
                      m->behind    ? 0
                      : from == to ? l->near_us
                                   : l->far_us,
                      take_slot(l, transfer, number, now, path), (int32_t)t->lane);
}

// ---- parts

static void end_part(struct hec_lanes *l, int32_t transfer, int32_t device, double now,
                     const struct hec_path *path);

static void start_part(struct hec_lanes *l, int32_t transfer, int32_t device, double now,
                       const struct hec_path *path) {
    struct transfer *t = &l->transfer[transfer];
    t->state[device] = STARTED;
    t->begin[device] = now;
    if (t->started++ == 0 && !t->together) list_messages(l, t);
    if (t->together) {
        if (t->started == l->devices) send_sums(l, transfer, now, path);
    } else {
        for (int32_t i = t->first[device]; i < t->first[device + 1]; i++)
            try_send(l, transfer, t->of[i], now, path);
    }
    if (t->left[device] == 0) end_part(l, transfer, device, now, path);
}

static double bytes_to(const struct hec_lanes *l, const struct transfer *t, int32_t device) {
    double bytes = 0;
    if (t->bytes) return t->bytes[l->devices + device]; // Streams.
    if (t->together) {
        for (int32_t i = 0; i < t->count; i++)
            bytes += t->message[i].port == l->devices + device ? t->message[i].bytes : 0;
        return bytes;
    }
    for (int32_t i = t->first[device]; i < t->first[device + 1]; i++) {
        const struct message *m = &t->message[t->of[i]];
        bytes += m->to == device ? m->bytes : 0;
    }
    return bytes;
}

static void end_part(struct hec_lanes *l, int32_t transfer, int32_t device, double now,
                     const struct hec_path *path) {
    struct transfer *t = &l->transfer[transfer];
    struct queue *q = &l->queue[device * HEC_LANES + (int32_t)t->lane];
    t->state[device] = DONE;
    if (l->watcher.part)
        l->watcher.part(l->watcher.context, &(struct hec_part){transfer, device, t->begin[device],
                                                               now, bytes_to(l, t, device)});
    l->woken = grown(l->woken, l->wakes, &l->wake_room, sizeof *l->woken);
    l->woken[l->wakes++] = (struct hec_woken){device, transfer, *path};
    q->head++;
    if (++t->done == l->devices) free_messages(t);
    if (q->head < q->count) start_part(l, q->transfer[q->head], device, now, path);
}

void hec_transfer_start(struct hec_lanes *l, int32_t transfer, int32_t device, double now,
                        const struct hec_path *path) {
    struct transfer *t = &l->transfer[transfer];
    struct queue *q = &l->queue[device * HEC_LANES + (int32_t)t->lane];
    assert(t->state && t->state[device] == ABSENT);
    if (q->head == q->count) q->head = q->count = 0;
    q->transfer = grown(q->transfer, q->count, &q->room, sizeof *q->transfer);
    q->transfer[q->count++] = transfer;
    t->state[device] = QUEUED;
    if (q->head + 1 == q->count) start_part(l, transfer, device, now, path);
}

bool hec_transfer_begun(const struct hec_lanes *l, int32_t transfer, int32_t device) {
    const struct transfer *t = &l->transfer[transfer];
    return t->done == l->devices || t->state[device] != ABSENT;
}

bool hec_transfer_done(const struct hec_lanes *l, int32_t transfer, int32_t device) {
    const struct transfer *t = &l->transfer[transfer];
    return t->done == l->devices || t->state[device] == DONE;
}

// ---- time

double hec_lanes_next(struct hec_lanes *l) {
    return l->streams ? hec_streams_next(l->streams) : hec_network_next(l->network);
}

static void arrive(struct hec_lanes *l, int32_t device, int32_t transfer, double now,
                   const struct hec_path *path) {
    struct transfer *t = &l->transfer[transfer];
    if (--t->left[device] == 0 && t->state[device] == STARTED)
        end_part(l, transfer, device, now, path);
}

static_assert((int)HEC_LANES <= (int)HEC_FLOW_KINDS, "a kind for each lane");

// Where lanes share a port, each takes its part of the time.
static void add_parts(struct hec_path *path, enum hec_lane own, double us, const double *part) {
    for (int k = 0; k < HEC_LANES; k++) {
        path->lane[k] += part[k];
        us -= part[k];
    }
    path->lane[own] += us;
}

static void end_message(struct hec_lanes *l, int32_t slot, double now, const double *part) {
    struct slot of = l->slot[slot];
    struct transfer *t = &l->transfer[of.transfer];
    const struct message m = t->message[of.message];
    add_parts(&of.path, t->lane, now - of.begin, part);
    l->vacant = grown(l->vacant, l->vacancies, &l->vacant_room, sizeof *l->vacant);
    l->vacant[l->vacancies++] = slot;
    for (int32_t e = m.edge; e >= 0; e = t->edge[e].next) {
        t->message[t->edge[e].message].waits--;
        try_send(l, of.transfer, t->edge[e].message, now, &of.path);
    }
    if (m.port >= 0) {
        for (int32_t d = m.from; d < m.to; d++) arrive(l, d, of.transfer, now, &of.path);
    } else {
        const struct hec_sent sent = {of.transfer, m.from, m.to, of.begin, now};
        if (l->watcher.sent) l->watcher.sent(l->watcher.context, &sent);
        arrive(l, m.from, of.transfer, now, &of.path);
        arrive(l, m.to, of.transfer, now, &of.path);
    }
}

static void pass_streams(struct hec_lanes *l, double now) {
    double part[HEC_LANES];
    hec_streams_pass(l->streams, now);
    for (int32_t lane, device; (device = hec_streams_done(l->streams, &lane, part)) >= 0;) {
        const int32_t transfer = l->streaming[lane];
        const struct transfer *t = &l->transfer[transfer];
        struct hec_path path = t->path;
        add_parts(&path, (enum hec_lane)lane, now - t->sent, part);
        arrive(l, device, transfer, now, &path);
    }
}

void hec_lanes_pass(struct hec_lanes *l, double now) {
    if (l->streams) {
        pass_streams(l, now);
        return;
    }
    double part[HEC_FLOW_KINDS];
    hec_network_pass(l->network, now);
    for (int32_t slot; (slot = hec_network_done(l->network, part)) >= 0;)
        end_message(l, slot, now, part);
}

const struct hec_woken *hec_lanes_woken(struct hec_lanes *l) {
    if (l->wakes_at < l->wakes) return &l->woken[l->wakes_at++];
    l->wakes = l->wakes_at = 0;
    return NULL;
}

// ---- what it was

void hec_lanes_observe(struct hec_lanes *l, struct hec_lanes_watcher watcher) {
    l->watcher = watcher;
}

enum hec_lane hec_transfer_lane(const struct hec_lanes *l, int32_t transfer) {
    return l->transfer[transfer].lane;
}

const char *hec_transfer_what(const struct hec_lanes *l, int32_t transfer) {
    return l->transfer[transfer].what;
}

int32_t hec_transfer_layer(const struct hec_lanes *l, int32_t transfer) {
    return l->transfer[transfer].layer;
}

const double *hec_lanes_carried(const struct hec_lanes *l) {
    return l->streams ? l->streamed : hec_network_carried(l->network);
}
