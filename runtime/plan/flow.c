// transport.c: least-cost flow from experts to devices by shortest paths, many at a time.
//
// Primal-dual: distances from the experts with rows left to the nearest device with room, then
// augmenting paths along arcs that lie on shortest paths, depth first, until none is left at this
// distance. Distances count (FAR, NEAR) in this order, so few of them differ, and few searches are
// needed.
#include "runtime/plan/flow.h"

#include "runtime/plan/tally.h"

#define NEAR ((int32_t)1)
#define FAR ((int32_t)1 << 16)
#define UNREACHED INT32_MAX
#define UNBOUNDED INT64_MAX

bool hpl_transport_take(struct hpl_transport *t, struct hpl_work *work) {
    const int64_t vertices = (int64_t)t->experts + t->groups + t->devices;
    t->left = HPL_TAKE(work, t->experts, int64_t);
    t->room = HPL_TAKE(work, t->devices, int64_t);
    t->group_share = HPL_TAKE(work, t->groups, int64_t);
    t->distance = HPL_TAKE(work, vertices, int32_t);
    t->reach = HPL_TAKE(work, vertices, int32_t);
    t->pool = HPL_TAKE(work, vertices, int32_t);
    t->arc = HPL_TAKE(work, vertices, int32_t);
    t->queue = HPL_TAKE(work, vertices, int32_t);
    t->path = HPL_TAKE(work, vertices, int32_t);
    t->seen = HPL_TAKE(work, vertices, bool);
    return t->left && t->room && t->group_share && t->distance && t->reach && t->pool && t->arc &&
           t->queue && t->path && t->seen;
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

// Rows that may pass at one price: forward, the first `near` are free and any further ones dear;
// backward, the dear ones are taken back first.
static int64_t fits_forward(int64_t now, int64_t near) {
    return now < near ? near - now : UNBOUNDED;
}

static int64_t fits_backward(int64_t now, int64_t near) {
    return now > near ? now - near : now;
}

// Rows that fit on the i-th arc out of vertex v at its present price.
static int64_t fits(const struct hpl_transport *t, int32_t v, int32_t i) {
    if (v < t->experts) {
        const int32_t g = t->expert_group[v] + i;
        return fits_forward(t->group_share[g], t->group_near[g]);
    }
    if (v < t->experts + t->groups) {
        const int32_t g = v - t->experts;
        const int32_t k = t->group_holder[g] + i;
        if (k < t->group_holder[g + 1]) return fits_forward(t->share[k], t->holder_near[k]);
        return fits_backward(t->group_share[g], t->group_near[g]);
    }
    const int32_t k = t->device_holder[t->device_first[v - t->experts - t->groups] + i];
    return fits_backward(t->share[k], t->holder_near[k]);
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

// A search in progress. Vertices at distance `now` are on the stack, farther ones in the pool.
struct search {
    int32_t now;
    int32_t stacked, pooled;
};

// Prices are counted relative to the distances found so far, which makes none of them negative.
static inline void relax(struct hpl_transport *t, struct search *search, int32_t from, int32_t to,
                         int32_t price) {
    t->steps++;
    const int32_t reach = t->reach[from] + price + t->distance[from] - t->distance[to];
    if (reach >= t->reach[to]) return;
    if (reach == search->now)
        t->queue[search->stacked++] = to;
    else if (t->reach[to] == UNREACHED)
        t->pool[search->pooled++] = to;
    t->reach[to] = reach;
}

// Looks at all arcs out of a vertex.
static void relax_all(struct hpl_transport *t, struct search *search, int32_t v, int32_t near,
                      int32_t far) {
    if (v < t->experts) {
        for (int32_t g = t->expert_group[v]; g < t->expert_group[v + 1]; g++) {
            const int32_t price = t->group_share[g] < t->group_near[g] ? 0 : far;
            relax(t, search, v, group_vertex(t, g), price);
        }
    } else if (v < t->experts + t->groups) {
        const int32_t g = v - t->experts;
        for (int32_t k = t->group_holder[g]; k < t->group_holder[g + 1]; k++) {
            const int32_t price = t->share[k] < t->holder_near[k] ? 0 : near;
            relax(t, search, v, device_vertex(t, t->holder_device[k]), price);
        }
        if (t->group_share[g] == 0) return;
        const int32_t price = t->group_share[g] > t->group_near[g] ? -far : 0;
        relax(t, search, v, t->group_expert[g], price);
    } else {
        const int32_t d = v - t->experts - t->groups;
        for (int32_t i = t->device_first[d]; i < t->device_first[d + 1]; i++) {
            const int32_t k = t->device_holder[i];
            if (t->share[k] == 0) continue;
            const int32_t price = t->share[k] > t->holder_near[k] ? -near : 0;
            relax(t, search, v, group_vertex(t, t->holder_group[k]), price);
        }
    }
}

// Moves the nearest vertices of the pool to the stack. False when the pool is empty.
static bool take_nearest(struct hpl_transport *t, struct search *search) {
    int32_t nearest = UNREACHED, kept = 0;
    for (int32_t i = 0; i < search->pooled; i++) {
        const int32_t v = t->pool[i];
        if (t->reach[v] <= search->now) continue; // Reached on a nearer way since.
        t->pool[kept++] = v;
        if (t->reach[v] < nearest) nearest = t->reach[v];
    }
    search->pooled = 0;
    for (int32_t i = 0; i < kept; i++) {
        const int32_t v = t->pool[i];
        if (t->reach[v] == nearest)
            t->queue[search->stacked++] = v;
        else
            t->pool[search->pooled++] = v;
    }
    search->now = nearest;
    return kept > 0;
}

// Brings `distance` up to date as far as the nearest device with room: the distances from the
// experts with rows left to what lies as near as that, and lower bounds of the others (Johnson's
// potentials). Returns that device's distance, UNREACHED when there is none; `reach` is then
// finite for all that can be reached.
static int32_t find_distances(struct hpl_transport *t) {
    const int32_t vertices = t->experts + t->groups + t->devices;
    const int32_t near = t->plain ? 0 : NEAR, far = t->plain ? 0 : FAR;
    struct search search = {.now = -1};
    int32_t best = UNREACHED;
    for (int32_t v = 0; v < vertices; v++) t->reach[v] = UNREACHED;
    for (int32_t e = 0; e < t->experts; e++) {
        if (t->left[e] == 0) continue;
        t->reach[e] = -t->distance[e];
        t->pool[search.pooled++] = e;
    }
    while (best == UNREACHED && take_nearest(t, &search)) {
        while (search.stacked > 0) {
            const int32_t v = t->queue[--search.stacked];
            const int32_t d = v - t->experts - t->groups;
            if (d >= 0 && t->room[d] > 0) {
                best = t->distance[v] + search.now;
                if (search.now == 0) return best; // As near as before: no distance changes.
            }
            relax_all(t, &search, v, near, far);
        }
    }
    if (best == UNREACHED) return best;
    for (int32_t v = 0; v < vertices; v++) {
        t->distance[v] += t->reach[v] < search.now ? t->reach[v] : search.now;
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
        rows = hpl_min(rows, fits(t, t->path[i], t->arc[t->path[i]]));
    }
    int32_t open = length;
    for (int32_t i = length - 2; i >= 0; i--) {
        const int32_t v = t->path[i];
        if (fits(t, v, t->arc[v]) == rows) open = i + 1;
        push(t, v, t->arc[v], rows);
    }
    t->left[source] -= rows;
    *room -= rows;
    if (open == length) open--; // The device is full, or the expert is done.
    for (int32_t i = open; i < length; i++) t->seen[t->path[i]] = false;
    return open;
}

static inline bool open_to(const struct hpl_transport *t, int32_t to, int32_t distance) {
    return t->distance[to] == distance && !t->seen[to];
}

// The searches below look at distances first: most arcs lie on no shortest path, at any price.
static int32_t advance_expert(struct hpl_transport *t, int32_t v, int32_t far) {
    const int32_t *distance = t->distance + t->experts;
    const int32_t near_to = t->distance[v], far_to = near_to + far;
    const int32_t first = t->expert_group[v], end = t->expert_group[v + 1];
    for (int32_t g = first + t->arc[v]; g < end; g++) {
        t->steps++;
        if (distance[g] != near_to && distance[g] != far_to) continue;
        if (distance[g] != (t->group_share[g] < t->group_near[g] ? near_to : far_to)) continue;
        if (t->seen[t->experts + g]) continue;
        t->arc[v] = g - first;
        return group_vertex(t, g);
    }
    return -1;
}

static int32_t advance_group(struct hpl_transport *t, int32_t v, int32_t near, int32_t far) {
    const int32_t g = v - t->experts, first = t->group_holder[g], end = t->group_holder[g + 1];
    const int32_t *distance = t->distance + t->experts + t->groups;
    const int32_t here = t->distance[v], near_to = here + near;
    for (int32_t k = first + t->arc[v]; k < end; k++) {
        t->steps++;
        const int32_t d = t->holder_device[k];
        if (distance[d] != here && distance[d] != near_to) continue;
        if (distance[d] != (t->share[k] < t->holder_near[k] ? here : near_to)) continue;
        if (t->seen[device_vertex(t, d)]) continue;
        t->arc[v] = k - first;
        return device_vertex(t, d);
    }
    t->arc[v] = end - first;
    if (t->group_share[g] == 0) return -1;
    const int32_t price = t->group_share[g] > t->group_near[g] ? -far : 0;
    return open_to(t, t->group_expert[g], here + price) ? t->group_expert[g] : -1;
}

static int32_t advance_device(struct hpl_transport *t, int32_t v, int32_t near) {
    const int32_t d = v - t->experts - t->groups;
    const int32_t first = t->device_first[d], end = t->device_first[d + 1];
    const int32_t *distance = t->distance + t->experts;
    const int32_t here = t->distance[v], near_to = here - near;
    for (int32_t i = first + t->arc[v]; i < end; i++) {
        t->steps++;
        const int32_t k = t->device_holder[i], g = t->holder_group[k];
        if (distance[g] != here && distance[g] != near_to) continue;
        if (t->share[k] == 0) continue;
        if (distance[g] != (t->share[k] > t->holder_near[k] ? near_to : here)) continue;
        if (t->seen[group_vertex(t, g)]) continue;
        t->arc[v] = i - first;
        return group_vertex(t, g);
    }
    return -1;
}

// The next arc out of v, from t->arc[v] on, that lies on a shortest path to a vertex not yet seen.
// Sets t->arc[v] and returns where it leads; -1 when there is none.
static int32_t advance(struct hpl_transport *t, int32_t v, int32_t near, int32_t far) {
    if (v < t->experts) return advance_expert(t, v, far);
    if (v < t->experts + t->groups) return advance_group(t, v, near, far);
    return advance_device(t, v, near);
}

// Depth first from one expert along shortest paths, to devices at distance `best`.
static void drain(struct hpl_transport *t, int32_t expert, int32_t best) {
    const int32_t first_device = t->experts + t->groups;
    const int32_t near = t->plain ? 0 : NEAR, far = t->plain ? 0 : FAR;
    int32_t length = 1;
    t->path[0] = expert;
    t->seen[expert] = true;
    while (t->left[expert] > 0 && length > 0) {
        const int32_t v = t->path[length - 1];
        if (v >= first_device && t->room[v - first_device] > 0 && t->distance[v] == best) {
            length = augment(t, length);
            continue;
        }
        const int32_t to = advance(t, v, near, far);
        if (to >= 0) {
            t->path[length++] = to;
            t->seen[to] = true;
        } else {
            length--;
        }
    }
    while (length > 0) t->seen[t->path[--length]] = false;
}

// Augments along paths of length `best`, as many as one round finds. A vertex is seen once in a round, so that
// some paths may be left.
static void drain_all(struct hpl_transport *t, int32_t best) {
    const int32_t vertices = t->experts + t->groups + t->devices;
    for (int32_t v = 0; v < vertices; v++) {
        t->arc[v] = 0;
        t->seen[v] = false;
    }
    for (int32_t e = 0; e < t->experts; e++) {
        if (t->left[e] > 0 && t->distance[e] == 0) drain(t, e, best);
    }
}

// Sends what is left at least cost. Returns true when nothing is left; otherwise `reach` is
// finite exactly for the experts and devices of a set whose supply exceeds its room: a proof.
static bool run(struct hpl_transport *t) {
    hpl_zero_i32(t->distance, (int64_t)t->experts + t->groups + t->devices);
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
        if (t->reach[e] != UNREACHED) higher.num += rows[e];
    }
    for (int32_t d = 0; d < t->devices; d++) {
        const bool cut = t->reach[device_vertex(t, d)] != UNREACHED;
        if (cut) higher.den += speed[d];
        if (t->full) t->full[d] = cut;
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
