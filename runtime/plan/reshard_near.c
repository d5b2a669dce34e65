// reshard_near.c: owners as even as algorithm 2 makes them, with few changes.
//
// Algorithm 2 deals all light experts out anew, so that nearly every chunk moves, whether loads have changed much or
// little. Here it only says what the fullest node and device of a layer may carry; owners of now are then changed one
// exchange at a time, until none carries more.
#include "runtime/plan/order.h"
#include "runtime/plan/reshard.h"
#include "runtime/plan/work.h"

enum { NOBODY = -1 };

struct near {
    const struct hpl_topology *topology;
    int32_t experts;
    int64_t *weight; // [layers][experts] rows, but 0 of heavy experts, which may lie anywhere.
    int32_t *order;  // [experts]
    int32_t *free;   // [devices] chunks that a device may still own; negative: it owns too many.
    int64_t *load, *limit,
        *speed; // [devices] rows of light experts in the present layer, and how many may be.
    int64_t *node_load, *node_limit, *node_speed; // [nodes]
    const int32_t *present;                       // [experts] of the present layer.
    const int64_t *light;                         // [experts] weights of it.
    int32_t *owner;                               // [experts]
};

// A change of owners: `expert` goes to `device`, in exchange for `other` or for NOBODY; and what comes of it.
struct change {
    int32_t expert, other, device;
    int64_t node,
        fullest;   // The larger excess behind it, of the two nodes, of the two devices.
    int32_t moved; // Chunks that are then not where they were at first, more than now.
    int64_t rows;  // Rows that change places.
};

static bool take_arrays(struct near *r, int32_t layers, struct hpl_work *work) {
    const int32_t devices = r->topology->devices, nodes = r->topology->nodes;
    r->weight = HPL_TAKE(work, (int64_t)layers * r->experts, int64_t);
    r->order = HPL_TAKE(work, r->experts, int32_t);
    r->free = HPL_TAKE(work, devices, int32_t);
    r->load = HPL_TAKE(work, devices, int64_t);
    r->limit = HPL_TAKE(work, devices, int64_t);
    r->speed = HPL_TAKE(work, devices, int64_t);
    r->node_load = HPL_TAKE(work, nodes, int64_t);
    r->node_limit = HPL_TAKE(work, nodes, int64_t);
    r->node_speed = HPL_TAKE(work, nodes, int64_t);
    return r->weight && r->order && r->free && r->load && r->limit && r->speed && r->node_load &&
           r->node_limit && r->node_speed;
}

static void weigh(struct near *r, int32_t layers, const int64_t *rows, int32_t overlap) {
    for (int32_t l = 0; l < layers; l++) {
        const int64_t base = (int64_t)l * r->experts;
        for (int32_t e = 0; e < r->experts; e++) {
            r->order[e] = e;
            r->weight[base + e] = rows[base + e];
        }
        hpl_order_desc(r->order, r->experts, rows + base);
        for (int32_t i = 0; i < overlap && i < r->experts; i++) r->weight[base + r->order[i]] = 0;
    }
}

// ---- too many chunks

static int32_t most_room(const struct near *r, int32_t from, int32_t to) {
    int32_t best = from;
    for (int32_t d = from; d < to; d++) {
        if (r->free[d] > r->free[best]) best = d;
    }
    return best;
}

static void give_away(struct near *r, int32_t *owner, int64_t chunks, bool heavy) {
    const struct hpl_topology *topology = r->topology;
    for (int64_t i = 0; i < chunks; i++) {
        const int32_t from = owner[i], node = topology->node[from];
        if (r->free[from] >= 0 || (heavy && r->weight[i] > 0)) continue;
        int32_t to = most_room(r, topology->first[node], topology->first[node + 1]);
        if (r->free[to] <= 0) to = most_room(r, 0, topology->devices);
        owner[i] = to;
        r->free[from]++, r->free[to]--;
    }
}

static void keep_shares(struct near *r, int64_t chunks, int32_t *owner) {
    const int32_t devices = r->topology->devices;
    for (int32_t d = 0; d < devices; d++) r->free[d] = (int32_t)((chunks + devices - 1) / devices);
    for (int64_t i = 0; i < chunks; i++) r->free[owner[i]]--;
    give_away(r, owner, chunks, true);
    give_away(r, owner, chunks, false);
}

// ---- what a layer's devices and nodes carry, and may

static void sum_up(struct near *r, const int32_t *owner) {
    hpl_zero_i64(r->load, r->topology->devices);
    hpl_zero_i64(r->node_load, r->topology->nodes);
    for (int32_t e = 0; e < r->experts; e++) {
        r->load[owner[e]] += r->light[e];
        r->node_load[r->topology->node[owner[e]]] += r->light[e];
    }
}

static int64_t part(int64_t rows, int64_t of, int64_t all) {
    return (int64_t)((__int128)rows * of / all);
}

// The fullest one's load, or an even part of `even`, in proportion to speed.
static void set_limits(const int64_t *load, int64_t *most, int32_t count, const int64_t *speed,
                       int64_t even) {
    int64_t all = 0;
    int32_t fullest = 0;
    for (int32_t i = 1; i < count; i++) {
        if ((__int128)load[i] * speed[fullest] > (__int128)load[fullest] * speed[i]) fullest = i;
    }
    const int64_t rows = load[fullest], of = speed[fullest];
    for (int32_t i = 0; i < count; i++) all += speed[i];
    for (int32_t i = 0; i < count; i++)
        most[i] = hpl_max(part(rows, speed[i], of), part(even, speed[i], all));
}

static int64_t beyond(int64_t load, int64_t limit) {
    return hpl_max(load - limit, 0);
}

static int64_t node_beyond(const struct near *r, int32_t node, int64_t more) {
    return beyond(r->node_load[node] + more, r->node_limit[node]);
}

static int64_t device_beyond(const struct near *r, int32_t device, int64_t more) {
    return beyond(r->load[device] + more, r->limit[device]);
}

// ---- changes

static int32_t is_away(const struct near *r, int32_t expert, int32_t device) {
    return expert != NOBODY && device != r->present[expert];
}

static struct change make(const struct near *r, int32_t expert, int32_t other, int32_t device) {
    const int32_t *node = r->topology->node, from = r->owner[expert];
    const int64_t rows = r->light[expert] - (other == NOBODY ? 0 : r->light[other]);
    const int64_t across = node[from] == node[device] ? 0 : rows;
    return (struct change){
        .expert = expert,
        .other = other,
        .device = device,
        .node = hpl_max(node_beyond(r, node[from], -across), node_beyond(r, node[device], across)),
        .fullest = hpl_max(device_beyond(r, from, -rows), device_beyond(r, device, rows)),
        .moved = is_away(r, expert, device) - is_away(r, expert, from) + is_away(r, other, from) -
                 is_away(r, other, device),
        .rows = rows,
    };
}

static bool is_better(const struct change *a, const struct change *b) {
    if (a->node != b->node) return a->node < b->node;
    if (a->fullest != b->fullest) return a->fullest < b->fullest;
    if (a->moved != b->moved) return a->moved < b->moved;
    return a->rows < b->rows;
}

// Whether it makes the worse of its two nodes better; or leaves that, and makes the worse of its two devices better.
static bool helps(const struct near *r, const struct change *c) {
    const int32_t *node = r->topology->node, from = r->owner[c->expert];
    const int64_t before =
        hpl_max(node_beyond(r, node[from], 0), node_beyond(r, node[c->device], 0));
    if (c->node != before) return c->node < before;
    return c->fullest < hpl_max(device_beyond(r, from, 0), device_beyond(r, c->device, 0));
}

static void consider(const struct near *r, struct change change, struct change *best) {
    if (change.rows <= 0 || !helps(r, &change)) return;
    if (best->expert == NOBODY || is_better(&change, best)) *best = change;
}

static void apply(struct near *r, const struct change *c) {
    const int32_t *node = r->topology->node, from = r->owner[c->expert];
    r->owner[c->expert] = c->device;
    if (c->other != NOBODY) r->owner[c->other] = from;
    if (c->other == NOBODY) r->free[from]++, r->free[c->device]--;
    r->load[from] -= c->rows, r->load[c->device] += c->rows;
    r->node_load[node[from]] -= c->rows, r->node_load[node[c->device]] += c->rows;
}

// Makes the change that helps devices [from, to) most, of those with other devices. False: none does.
static bool improve(struct near *r, int32_t from, int32_t to) {
    struct change best = {.expert = NOBODY};
    for (int32_t e = 0; e < r->experts; e++) {
        if (r->owner[e] < from || r->owner[e] >= to || r->light[e] == 0) continue;
        for (int32_t f = 0; f < r->experts; f++) {
            if (r->owner[f] >= from && r->owner[f] < to) continue;
            consider(r, make(r, e, f, r->owner[f]), &best);
        }
        for (int32_t d = 0; d < r->topology->devices; d++) {
            if ((d >= from && d < to) || r->free[d] <= 0) continue;
            consider(r, make(r, e, NOBODY, d), &best);
        }
    }
    if (best.expert == NOBODY) return false;
    apply(r, &best);
    return true;
}

// The one that carries most beyond its limit.
static int32_t worst(const int64_t *load, const int64_t *most, int32_t count) {
    int32_t worst = 0;
    for (int32_t i = 1; i < count; i++) {
        if (load[i] - most[i] > load[worst] - most[worst]) worst = i;
    }
    return worst;
}

// Makes the worst node better, else the worst device; false: no change does. Nodes count more, and no change makes the
// worse of two worse.
static bool even_out(struct near *r) {
    const struct hpl_topology *topology = r->topology;
    const int32_t n = worst(r->node_load, r->node_limit, topology->nodes);
    const int32_t d = worst(r->load, r->limit, topology->devices);
    return (node_beyond(r, n, 0) > 0 && improve(r, topology->first[n], topology->first[n + 1])) ||
           (device_beyond(r, d, 0) > 0 && improve(r, d, d + 1));
}

// ---- all layers

static void change_layer(struct near *r, const int64_t *rows, int32_t slack, const int32_t *even,
                         int32_t *owner) {
    const struct hpl_topology *topology = r->topology;
    int64_t all = 0, light = 0;
    for (int32_t e = 0; e < r->experts; e++) all += rows[e], light += r->light[e];
    const int64_t given = light + part(all, slack, 1000);
    sum_up(r, even);
    set_limits(r->load, r->limit, topology->devices, r->speed, given);
    set_limits(r->node_load, r->node_limit, topology->nodes, r->node_speed, given);
    sum_up(r, owner);
    r->owner = owner;
    for (int32_t left = 4 * r->experts; left > 0 && even_out(r); left--) continue;
}

enum hpl_status hpl_reshard_near(const struct hpl_topology *topology, int32_t layers,
                                 int32_t experts, const int64_t *rows, int32_t overlap,
                                 int32_t slack, const int32_t *present, int32_t *owner,
                                 struct hpl_work *work) {
    const int64_t chunks = (int64_t)layers * experts;
    const struct hpl_work before = *work;
    struct near r = {.topology = topology, .experts = experts};
    if (slack < 0) return HPL_BAD_ARGUMENT;
    enum hpl_status status =
        hpl_reshard(topology, layers, experts, rows, overlap, present, owner, work);
    if (status != HPL_OK) return status;
    int32_t *even = HPL_TAKE(work, chunks, int32_t); // As algorithm 2 has them.
    if (even && take_arrays(&r, layers, work)) {
        for (int64_t i = 0; i < chunks; i++) even[i] = owner[i], owner[i] = present[i];
        hpl_zero_i64(r.node_speed, topology->nodes);
        for (int32_t d = 0; d < topology->devices; d++) {
            r.speed[d] = topology->speed[d];
            r.node_speed[topology->node[d]] += topology->speed[d];
        }
        weigh(&r, layers, rows, overlap);
        keep_shares(&r, chunks, owner);
        for (int32_t l = 0; l < layers; l++) {
            const int64_t base = (int64_t)l * experts;
            r.present = present + base;
            r.light = r.weight + base;
            change_layer(&r, rows + base, slack, even + base, owner + base);
        }
    } else {
        status = HPL_NO_ROOM;
    }
    *work = before;
    return status;
}
