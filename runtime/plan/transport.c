// transport.c: least-cost flow from experts to devices by shortest paths, many at a time.
//
// Primal-dual: distances of all vertices from the experts with rows left (Bellman-Ford with a
// queue, since undoing a dear choice has a negative price), then as many augmenting paths as the
// shortest ones allow, found depth first along arcs that lie on shortest paths. A path costs
// (FAR, NEAR, arcs) compared in this order; counting arcs makes the shortest paths free of cycles.
#include "runtime/plan/transport.h"

#define ARC ((int64_t)1)
#define NEAR ((int64_t)1 << 20)
#define FAR ((int64_t)1 << 40)
#define UNREACHED INT64_MAX
#define UNBOUNDED INT64_MAX

// One residual arc: where it leads, what a row pays on it, how many rows fit at that price.
struct arc {
    int32_t to;
    int64_t price;
    int64_t fits;
};

bool hpl_transport_take(struct hpl_transport *t, struct hpl_work *work) {
    const int64_t vertices = (int64_t)t->experts + t->groups + t->devices;
    t->left = HPL_TAKE(work, t->experts, int64_t);
    t->room = HPL_TAKE(work, t->devices, int64_t);
    t->group_share = HPL_TAKE(work, t->groups, int64_t);
    t->distance = HPL_TAKE(work, vertices, int64_t);
    t->arc = HPL_TAKE(work, vertices, int32_t);
    t->queue = HPL_TAKE(work, vertices, int32_t);
    t->path = HPL_TAKE(work, vertices, int32_t);
    t->queued = HPL_TAKE(work, vertices, unsigned char);
    return t->left && t->room && t->group_share && t->distance && t->arc && t->queue && t->path &&
           t->queued;
}

void hpl_transport_keep_local(struct hpl_transport *t) {
    for (int32_t g = 0; g < t->groups; g++) {
        t->group_share[g] = 0;
        for (int32_t k = t->group_holder[g]; k < t->group_holder[g + 1]; k++) {
            int64_t *room = &t->room[t->holder_device[k]];
            const int64_t rows = hpl_min(t->holder_near[k], *room);
            t->share[k] = rows;
            t->group_share[g] += rows;
            t->left[t->group_expert[g]] -= rows;
            *room -= rows;
        }
    }
}

static int32_t group_vertex(const struct hpl_transport *t, int32_t group) {
    return t->experts + group;
}

static int32_t device_vertex(const struct hpl_transport *t, int32_t device) {
    return t->experts + t->groups + device;
}

// The convex price of one more row, where `near` rows are free and each further one costs `dear`.
static void forward(int64_t now, int64_t near, int64_t dear, struct arc *arc) {
    const bool free = now < near;
    arc->price = free ? 0 : dear;
    arc->fits = free ? near - now : UNBOUNDED;
}

static void backward(int64_t now, int64_t near, int64_t dear, struct arc *arc) {
    const bool paid = now > near;
    arc->price = paid ? -dear : 0;
    arc->fits = paid ? now - near : now;
}

// The i-th arc out of vertex v; false when there are no more. An arc may have no room.
static bool arc_at(const struct hpl_transport *t, int32_t v, int32_t i, struct arc *arc) {
    if (v < t->experts) {
        const int32_t g = t->expert_group[v] + i;
        if (g >= t->expert_group[v + 1]) return false;
        forward(t->group_share[g], t->group_near[g], FAR, arc);
        arc->to = group_vertex(t, g);
    } else if (v < t->experts + t->groups) {
        const int32_t g = v - t->experts;
        const int32_t k = t->group_holder[g] + i;
        if (k < t->group_holder[g + 1]) {
            forward(t->share[k], t->holder_near[k], NEAR, arc);
            arc->to = device_vertex(t, t->holder_device[k]);
        } else if (k == t->group_holder[g + 1]) {
            backward(t->group_share[g], t->group_near[g], FAR, arc);
            arc->to = t->group_expert[g];
        } else {
            return false;
        }
    } else {
        const int32_t d = v - t->experts - t->groups;
        if (t->device_first[d] + i >= t->device_first[d + 1]) return false;
        const int32_t k = t->device_holder[t->device_first[d] + i];
        backward(t->share[k], t->holder_near[k], NEAR, arc);
        arc->to = group_vertex(t, t->holder_group[k]);
    }
    arc->price = (t->plain ? 0 : arc->price) + ARC;
    return true;
}

// Moves `rows` over the i-th arc out of vertex v.
static void push(struct hpl_transport *t, int32_t v, int32_t i, int64_t rows) {
    if (v < t->experts) {
        t->group_share[t->expert_group[v] + i] += rows;
    } else if (v < t->experts + t->groups) {
        const int32_t g = v - t->experts;
        const int32_t k = t->group_holder[g] + i;
        if (k < t->group_holder[g + 1])
            t->share[k] += rows;
        else
            t->group_share[g] -= rows;
    } else {
        t->share[t->device_holder[t->device_first[v - t->experts - t->groups] + i]] -= rows;
    }
}

// Distances from the experts with rows left. Returns the least cost of reaching a device with room,
// UNREACHED when there is none.
static int64_t find_distances(struct hpl_transport *t) {
    const int32_t vertices = t->experts + t->groups + t->devices;
    int32_t head = 0, waiting = 0;
    for (int32_t v = 0; v < vertices; v++) {
        const bool source = v < t->experts && t->left[v] > 0;
        t->distance[v] = source ? 0 : UNREACHED;
        t->queued[v] = source;
        t->arc[v] = 0;
        if (source) t->queue[waiting++] = v;
    }
    while (waiting > 0) {
        const int32_t v = t->queue[head];
        head = head + 1 == vertices ? 0 : head + 1;
        waiting--;
        t->queued[v] = 0;
        struct arc arc;
        for (int32_t i = 0; arc_at(t, v, i, &arc); i++) {
            if (arc.fits == 0 || t->distance[v] + arc.price >= t->distance[arc.to]) continue;
            t->distance[arc.to] = t->distance[v] + arc.price;
            if (t->queued[arc.to]) continue;
            t->queued[arc.to] = 1;
            const int32_t tail = head + waiting;
            t->queue[tail >= vertices ? tail - vertices : tail] = arc.to;
            waiting++;
        }
    }
    int64_t best = UNREACHED;
    for (int32_t d = 0; d < t->devices; d++) {
        if (t->room[d] > 0) best = hpl_min(best, t->distance[device_vertex(t, d)]);
    }
    return best;
}

// Sends rows along the path that is on the stack, whose last vertex is a device with room.
static void augment(struct hpl_transport *t, int32_t length) {
    const int32_t source = t->path[0];
    int64_t *room = &t->room[t->path[length - 1] - t->experts - t->groups];
    int64_t rows = hpl_min(t->left[source], *room);
    for (int32_t i = 0; i + 1 < length; i++) {
        struct arc arc = {0};
        arc_at(t, t->path[i], t->arc[t->path[i]], &arc);
        rows = hpl_min(rows, arc.fits);
    }
    for (int32_t i = 0; i + 1 < length; i++) push(t, t->path[i], t->arc[t->path[i]], rows);
    t->left[source] -= rows;
    *room -= rows;
}

// Depth first from one expert along shortest paths, to devices as near as `best`.
static void drain(struct hpl_transport *t, int32_t expert, int64_t best) {
    const int32_t first_device = t->experts + t->groups;
    int32_t length = 1;
    t->path[0] = expert;
    while (t->left[expert] > 0) {
        const int32_t v = t->path[length - 1];
        if (v >= first_device && t->room[v - first_device] > 0 &&
            t->distance[v] / NEAR == best / NEAR) {
            augment(t, length);
            length = 1; // Arcs already tried stay tried, so this costs one path, not a new search.
            continue;
        }
        struct arc arc;
        bool found = false;
        for (; arc_at(t, v, t->arc[v], &arc); t->arc[v]++) {
            found = arc.fits > 0 && t->distance[arc.to] == t->distance[v] + arc.price;
            if (found) break;
        }
        if (found) {
            t->path[length++] = arc.to;
        } else {
            if (--length == 0) return;
            t->arc[t->path[length - 1]]++;
        }
    }
}

bool hpl_transport_run(struct hpl_transport *t) {
    for (;;) {
        bool done = true;
        for (int32_t e = 0; e < t->experts; e++) done = done && t->left[e] == 0;
        if (done) return true;
        const int64_t best = find_distances(t);
        if (best == UNREACHED) return false;
        for (int32_t e = 0; e < t->experts; e++) drain(t, e, best);
    }
}

bool hpl_transport_cut_expert(const struct hpl_transport *t, int32_t expert) {
    return t->distance[expert] != UNREACHED;
}

bool hpl_transport_cut_device(const struct hpl_transport *t, int32_t device) {
    return t->distance[device_vertex(t, device)] != UNREACHED;
}
