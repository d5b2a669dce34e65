// transport.c: least-cost flow from experts to devices by shortest paths, many at a time.
//
// Primal-dual: distances of all vertices from the experts with rows left (Bellman-Ford with a
// queue, since undoing a dear choice has a negative price), then augmenting paths along arcs that
// lie on shortest paths, depth first, until none is left at this distance. Distances count (FAR,
// NEAR) in this order, so few of them differ, and few searches are needed.
#include "runtime/plan/transport.h"

#include "runtime/plan/tally.h"

#define NEAR ((int32_t)1)
#define FAR ((int32_t)1 << 16)
#define UNREACHED INT32_MAX
#define UNBOUNDED INT64_MAX

// States of a vertex within one round of depth-first search.
enum { UNSEEN, SEEN };

// One residual arc: where it leads, what a row pays on it, how many rows fit at that price.
struct arc {
    int32_t to;
    int32_t price;
    int64_t fits;
};

bool hpl_transport_take(struct hpl_transport *t, struct hpl_work *work) {
    const int64_t vertices = (int64_t)t->experts + t->groups + t->devices;
    t->left = HPL_TAKE(work, t->experts, int64_t);
    t->room = HPL_TAKE(work, t->devices, int64_t);
    t->group_share = HPL_TAKE(work, t->groups, int64_t);
    t->distance = HPL_TAKE(work, vertices, int32_t);
    t->arc = HPL_TAKE(work, vertices, int32_t);
    t->queue = HPL_TAKE(work, vertices, int32_t);
    t->path = HPL_TAKE(work, vertices, int32_t);
    t->seen = HPL_TAKE(work, vertices, unsigned char);
    return t->left && t->room && t->group_share && t->distance && t->arc && t->queue && t->path &&
           t->seen;
}

// Gives every device the rows that start there and need not move, as far as its room goes.
static void keep_local(struct hpl_transport *t) {
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
static inline void forward(int64_t now, int64_t near, int32_t dear, struct arc *arc) {
    const bool free = now < near;
    arc->price = free ? 0 : dear;
    arc->fits = free ? near - now : UNBOUNDED;
}

static inline void backward(int64_t now, int64_t near, int32_t dear, struct arc *arc) {
    const bool paid = now > near;
    arc->price = paid ? -dear : 0;
    arc->fits = paid ? now - near : now;
}

// The i-th arc out of vertex v; false when there are no more. An arc may have no room.
static inline bool arc_at(const struct hpl_transport *t, int32_t v, int32_t i, struct arc *arc) {
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
    if (t->plain) arc->price = 0;
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

// The vertices whose arcs are to be looked at again: a circle, each vertex in it once at most.
struct queue {
    int32_t *at;
    int32_t size, head, waiting;
};

static inline void enqueue(struct hpl_transport *t, struct queue *queue, int32_t v) {
    if (t->seen[v]) return;
    t->seen[v] = 1;
    const int32_t tail = queue->head + queue->waiting++;
    queue->at[tail >= queue->size ? tail - queue->size : tail] = v;
}

static inline int32_t dequeue(struct hpl_transport *t, struct queue *queue) {
    const int32_t v = queue->at[queue->head];
    queue->head = queue->head + 1 == queue->size ? 0 : queue->head + 1;
    queue->waiting--;
    t->seen[v] = 0;
    return v;
}

static inline void relax(struct hpl_transport *t, struct queue *queue, int32_t to,
                         int32_t distance) {
    if (distance >= t->distance[to]) return;
    t->distance[to] = distance;
    enqueue(t, queue, to);
}

// Looks at all arcs out of a vertex; arc_at in three loops, because most time is spent here.
static void relax_expert(struct hpl_transport *t, struct queue *queue, int32_t e, int32_t far) {
    for (int32_t g = t->expert_group[e]; g < t->expert_group[e + 1]; g++) {
        const int32_t price = t->group_share[g] < t->group_near[g] ? 0 : far;
        relax(t, queue, group_vertex(t, g), t->distance[e] + price);
    }
}

static void relax_group(struct hpl_transport *t, struct queue *queue, int32_t g, int32_t near,
                        int32_t far) {
    const int32_t distance = t->distance[group_vertex(t, g)];
    for (int32_t k = t->group_holder[g]; k < t->group_holder[g + 1]; k++) {
        const int32_t price = t->share[k] < t->holder_near[k] ? 0 : near;
        relax(t, queue, device_vertex(t, t->holder_device[k]), distance + price);
    }
    if (t->group_share[g] == 0) return;
    const int32_t price = t->group_share[g] > t->group_near[g] ? -far : 0;
    relax(t, queue, t->group_expert[g], distance + price);
}

static void relax_device(struct hpl_transport *t, struct queue *queue, int32_t d, int32_t near) {
    const int32_t distance = t->distance[device_vertex(t, d)];
    for (int32_t i = t->device_first[d]; i < t->device_first[d + 1]; i++) {
        const int32_t k = t->device_holder[i];
        if (t->share[k] == 0) continue;
        const int32_t price = t->share[k] > t->holder_near[k] ? -near : 0;
        relax(t, queue, group_vertex(t, t->holder_group[k]), distance + price);
    }
}

// Distances from the experts with rows left. Returns that of the nearest device with room,
// UNREACHED when there is none.
static int32_t find_distances(struct hpl_transport *t) {
    const int32_t vertices = t->experts + t->groups + t->devices;
    const int32_t near = t->plain ? 0 : NEAR, far = t->plain ? 0 : FAR;
    struct queue queue = {.at = t->queue, .size = vertices};
    for (int32_t v = 0; v < vertices; v++) {
        t->distance[v] = UNREACHED;
        t->seen[v] = 0;
    }
    for (int32_t e = 0; e < t->experts; e++) {
        if (t->left[e] > 0) relax(t, &queue, e, 0);
    }
    while (queue.waiting > 0) {
        const int32_t v = dequeue(t, &queue);
        if (v < t->experts)
            relax_expert(t, &queue, v, far);
        else if (v < t->experts + t->groups)
            relax_group(t, &queue, v - t->experts, near, far);
        else
            relax_device(t, &queue, v - t->experts - t->groups, near);
    }
    int32_t best = UNREACHED;
    for (int32_t d = 0; d < t->devices; d++) {
        const int32_t distance = t->distance[device_vertex(t, d)];
        if (t->room[d] > 0 && distance < best) best = distance;
    }
    return best;
}

// Sends rows along the path that is on the stack, whose last vertex is a device with room. Returns
// how much of the path is still open: the part before the first arc that is full now.
static int32_t augment(struct hpl_transport *t, int32_t length) {
    const int32_t source = t->path[0];
    int64_t *room = &t->room[t->path[length - 1] - t->experts - t->groups];
    int64_t rows = hpl_min(t->left[source], *room);
    for (int32_t i = 0; i + 1 < length; i++) {
        struct arc arc = {0};
        arc_at(t, t->path[i], t->arc[t->path[i]], &arc);
        rows = hpl_min(rows, arc.fits);
    }
    int32_t open = length;
    for (int32_t i = length - 2; i >= 0; i--) {
        struct arc arc = {0};
        arc_at(t, t->path[i], t->arc[t->path[i]], &arc);
        if (arc.fits == rows) open = i + 1;
        push(t, t->path[i], t->arc[t->path[i]], rows);
    }
    t->left[source] -= rows;
    *room -= rows;
    if (open == length) open--; // The device is full, or the expert is done.
    for (int32_t i = open; i < length; i++) t->seen[t->path[i]] = UNSEEN;
    return open;
}

// Depth first from one expert along shortest paths, to devices at distance `best`.
static bool drain(struct hpl_transport *t, int32_t expert, int32_t best) {
    const int32_t first_device = t->experts + t->groups;
    bool moved = false;
    int32_t length = 1;
    t->path[0] = expert;
    t->seen[expert] = SEEN;
    while (t->left[expert] > 0 && length > 0) {
        const int32_t v = t->path[length - 1];
        if (v >= first_device && t->room[v - first_device] > 0 && t->distance[v] == best) {
            length = augment(t, length);
            moved = true;
            continue;
        }
        struct arc arc;
        bool found = false;
        for (; arc_at(t, v, t->arc[v], &arc); t->arc[v]++) {
            found = t->distance[arc.to] == t->distance[v] + arc.price && arc.fits > 0 &&
                    t->seen[arc.to] == UNSEEN;
            if (found) break;
        }
        if (found) {
            t->path[length++] = arc.to;
            t->seen[arc.to] = SEEN;
        } else {
            length--;
        }
    }
    while (length > 0) t->seen[t->path[--length]] = UNSEEN;
    return moved;
}

// Augments until no path of length `best` is left. A vertex is seen once in a round, so a round
// may miss paths; one that finds none at all has looked everywhere.
static void drain_all(struct hpl_transport *t, int32_t best) {
    const int32_t vertices = t->experts + t->groups + t->devices;
    for (bool moved = true; moved;) {
        moved = false;
        for (int32_t v = 0; v < vertices; v++) {
            t->arc[v] = 0;
            t->seen[v] = UNSEEN;
        }
        for (int32_t e = 0; e < t->experts; e++) {
            if (t->left[e] > 0 && t->distance[e] == 0) moved = drain(t, e, best) || moved;
        }
    }
}

// Sends what is left at least cost. Returns true when nothing is left; otherwise `distance` is
// finite exactly for the experts and devices of a set whose supply exceeds its room: a proof.
static bool run(struct hpl_transport *t) {
    for (;;) {
        bool done = true;
        for (int32_t e = 0; e < t->experts; e++) done = done && t->left[e] == 0;
        if (done) return true;
        const int32_t best = find_distances(t);
        if (best == UNREACHED) return false;
        drain_all(t, best);
    }
}

// Back to the beginning of a run: nothing shared, rooms as the level says.
static void restart(struct hpl_transport *t, const int32_t *speed, const int64_t *rows,
                    struct hpl_level level) {
    for (int32_t e = 0; e < t->experts; e++) t->left[e] = rows[e];
    for (int32_t d = 0; d < t->devices; d++) t->room[d] = hpl_level_rows(level, speed[d]);
    keep_local(t);
}

// The last run left rows over. The experts and devices it reached prove that the level is too low:
// raises it to where those experts just fit those devices.
static void raise_level(struct hpl_transport *t, const int32_t *speed, const int64_t *rows,
                        struct hpl_level *level) {
    struct hpl_level higher = {0};
    for (int32_t e = 0; e < t->experts; e++) {
        if (t->distance[e] != UNREACHED) higher.num += rows[e];
    }
    for (int32_t d = 0; d < t->devices; d++) {
        if (t->distance[device_vertex(t, d)] != UNREACHED) higher.den += speed[d];
    }
    for (int32_t d = 0; d < t->devices; d++) {
        t->room[d] += hpl_level_rows(higher, speed[d]) - hpl_level_rows(*level, speed[d]);
    }
    *level = higher;
}

void hpl_transport_solve(struct hpl_transport *t, const int32_t *speed, const int64_t *rows,
                         struct hpl_level *level) {
    const bool plain = t->plain;
    restart(t, speed, rows, *level);
    if (run(t)) return;
    t->plain = true;
    do raise_level(t, speed, rows, level);
    while (!run(t));
    t->plain = plain;
    if (plain) return;
    restart(t, speed, rows, *level);
    run(t);
}
