// live_flow.c: Dinic's algorithm on pairs of an expert and a device, resumed after each change.
#include "runtime/plan/live_flow.h"

#include "runtime/plan/tally.h"

bool hpl_live_take(struct hpl_live *f, int32_t places, struct hpl_work *work) {
    const int64_t vertices = (int64_t)f->experts + f->devices;
    f->places = places;
    f->first = HPL_TAKE(work, f->devices + 1, int32_t);
    f->device = HPL_TAKE(work, places, int32_t);
    f->expert = HPL_TAKE(work, places, int32_t);
    f->share = HPL_TAKE(work, places, int64_t);
    f->head = HPL_TAKE(work, f->experts, int32_t);
    f->next = HPL_TAKE(work, places, int32_t);
    f->last = HPL_TAKE(work, places, int32_t);
    f->left = HPL_TAKE(work, f->experts, int64_t);
    f->room = HPL_TAKE(work, f->devices, int64_t);
    f->depth = HPL_TAKE(work, vertices, int32_t);
    f->arc = HPL_TAKE(work, vertices, int32_t);
    f->queue = HPL_TAKE(work, vertices, int32_t);
    f->open = HPL_TAKE(work, vertices, bool);
    return f->first && f->device && f->expert && f->share && f->head && f->next && f->last &&
           f->left && f->room && f->depth && f->arc && f->queue && f->open;
}

static void link_place(struct hpl_live *f, int32_t place) {
    const int32_t e = f->expert[place];
    f->next[place] = f->head[e];
    f->last[place] = -1;
    if (f->head[e] >= 0) f->last[f->head[e]] = place;
    f->head[e] = place;
}

static void unlink_place(struct hpl_live *f, int32_t place) {
    if (f->last[place] >= 0)
        f->next[f->last[place]] = f->next[place];
    else
        f->head[f->expert[place]] = f->next[place];
    if (f->next[place] >= 0) f->last[f->next[place]] = f->last[place];
}

void hpl_live_put(struct hpl_live *f, int32_t place, int64_t rows) {
    f->share[place] += rows;
    f->left[f->expert[place]] -= rows;
    f->room[f->device[place]] -= rows;
    f->all_left -= rows;
}

void hpl_live_begin(struct hpl_live *f, struct hpl_level level) {
    f->level = level;
    f->all_left = 0;
    for (int32_t d = 0; d < f->devices; d++) f->room[d] = hpl_level_rows(level, f->speed[d]);
    for (int32_t e = 0; e < f->experts; e++) {
        f->head[e] = -1;
        f->left[e] = f->rows[e];
        f->all_left += f->rows[e];
    }
    for (int32_t p = f->places - 1; p >= 0; p--) {
        f->share[p] = 0;
        if (f->expert[p] >= 0) link_place(f, p);
    }
}

void hpl_live_set_level(struct hpl_live *f, struct hpl_level level) {
    for (int32_t d = 0; d < f->devices; d++) {
        f->room[d] += hpl_level_rows(level, f->speed[d]) - hpl_level_rows(f->level, f->speed[d]);
        for (int32_t p = f->first[d]; f->room[d] < 0; p++) {
            if (f->share[p] > 0) hpl_live_put(f, p, -hpl_min(f->share[p], -f->room[d]));
        }
    }
    f->level = level;
}

// ---- a run

// Sets depths by breadth from experts `from` .. `to` - 1, up to those of the nearest devices with room. True: there
// is one.
static bool search(struct hpl_live *f, int32_t from, int32_t to) {
    const int32_t vertices = f->experts + f->devices;
    int32_t count = 0, deepest = INT32_MAX;
    for (int32_t v = 0; v < vertices; v++) f->depth[v] = -1;
    for (int32_t e = from; e < to; e++) {
        if (f->left[e] == 0) continue;
        f->depth[e] = 0;
        f->queue[count++] = e;
    }
    for (int32_t i = 0; i < count && f->depth[f->queue[i]] < deepest; i++) {
        const int32_t v = f->queue[i], d = v - f->experts, depth = f->depth[v] + 1;
        if (d < 0) {
            for (int32_t p = f->head[v]; p >= 0; p = f->next[p]) {
                const int32_t next = f->experts + f->device[p];
                f->steps++;
                if (f->depth[next] >= 0) continue;
                f->depth[next] = depth;
                f->queue[count++] = next;
                if (f->room[f->device[p]] > 0) deepest = depth;
            }
            continue;
        }
        f->steps += f->first[d + 1] - f->first[d];
        for (int32_t p = f->first[d]; p < f->first[d + 1]; p++) {
            if (f->share[p] == 0 || f->depth[f->expert[p]] >= 0) continue;
            f->depth[f->expert[p]] = depth;
            f->queue[count++] = f->expert[p];
        }
    }
    return deepest != INT32_MAX;
}

// The next vertex one deeper than v, from its arc on; -1: none.
static int32_t advance(struct hpl_live *f, int32_t v) {
    const int32_t depth = f->depth[v] + 1, d = v - f->experts;
    int32_t p = f->arc[v];
    if (d < 0) {
        for (; p >= 0 && f->depth[f->experts + f->device[p]] != depth; p = f->next[p]) f->steps++;
        f->arc[v] = p;
        return p < 0 ? -1 : f->experts + f->device[p];
    }
    for (; p < f->first[d + 1]; p++) {
        f->steps++;
        if (f->share[p] > 0 && f->depth[f->expert[p]] == depth) break;
    }
    f->arc[v] = p;
    return p == f->first[d + 1] ? -1 : f->expert[p];
}

// Sends rows along the path, whose last vertex is a device with room. Returns the length of the part that is still
// open.
static int32_t augment(struct hpl_live *f, int32_t length) {
    const int32_t source = f->queue[0], to = f->queue[length - 1] - f->experts;
    int64_t rows = hpl_min(f->left[source], f->room[to]);
    for (int32_t i = 1; i + 1 < length; i += 2) rows = hpl_min(rows, f->share[f->arc[f->queue[i]]]);
    int32_t open = length - 1;
    for (int32_t i = length - 2; i >= 0; i--) {
        int64_t *share = &f->share[f->arc[f->queue[i]]];
        *share += i % 2 == 0 ? rows : -rows;
        if (i % 2 == 1 && *share == 0) open = i + 1;
    }
    f->left[source] -= rows;
    f->all_left -= rows;
    f->room[to] -= rows;
    return open == length - 1 && f->room[to] > 0 ? length : open;
}

// Depth first from an expert, along vertices that are one deeper each.
static void drain(struct hpl_live *f, int32_t expert) {
    int32_t length = 1;
    f->queue[0] = expert;
    while (length > 0 && f->left[expert] > 0) {
        const int32_t v = f->queue[length - 1];
        if (v >= f->experts && f->room[v - f->experts] > 0) {
            length = augment(f, length);
            continue;
        }
        const int32_t to = advance(f, v);
        if (to >= 0) {
            f->queue[length++] = to;
        } else {
            f->depth[v] = -1; // A dead end.
            length--;
        }
    }
}

static void run(struct hpl_live *f, int32_t from, int32_t to) {
    while (search(f, from, to)) {
        for (int32_t e = 0; e < f->experts; e++) f->arc[e] = f->head[e];
        for (int32_t d = 0; d < f->devices; d++) f->arc[f->experts + d] = f->first[d];
        for (int32_t e = from; e < to; e++) {
            if (f->left[e] > 0) drain(f, e);
        }
    }
}

bool hpl_live_run(struct hpl_live *f) {
    if (f->all_left > 0) run(f, 0, f->experts);
    return f->all_left == 0;
}

void hpl_live_run_expert(struct hpl_live *f, int32_t expert) {
    if (f->left[expert] > 0) run(f, expert, expert + 1);
}

void hpl_live_raise(struct hpl_live *f) {
    while (!hpl_live_run(f)) {
        struct hpl_level level = {0};
        for (int32_t e = 0; e < f->experts; e++) level.num += f->depth[e] >= 0 ? f->rows[e] : 0;
        for (int32_t d = 0; d < f->devices; d++)
            level.den += f->depth[f->experts + d] >= 0 ? f->speed[d] : 0;
        hpl_live_set_level(f, level);
    }
}

// ---- changes

void hpl_live_find_open(struct hpl_live *f) {
    int32_t count = 0;
    for (int32_t e = 0; e < f->experts; e++) f->open[e] = false;
    for (int32_t d = 0; d < f->devices; d++) {
        f->open[f->experts + d] = f->room[d] > 0;
        if (f->room[d] > 0) f->queue[count++] = d;
    }
    for (int32_t i = 0; i < count; i++) { // Devices: experts they hold, and where those have rows.
        const int32_t d = f->queue[i];
        for (int32_t p = f->first[d]; p < f->first[d + 1]; p++) {
            const int32_t e = f->expert[p];
            f->steps++;
            if (e < 0 || f->open[e]) continue;
            f->open[e] = true;
            for (int32_t k = f->head[e]; k >= 0; k = f->next[k]) {
                f->steps++;
                if (f->share[k] == 0 || f->open[f->experts + f->device[k]]) continue;
                f->open[f->experts + f->device[k]] = true;
                f->queue[count++] = f->device[k];
            }
        }
    }
}

void hpl_live_replace(struct hpl_live *f, int32_t place, int32_t expert) {
    if (f->expert[place] >= 0) {
        hpl_live_put(f, place, -f->share[place]);
        unlink_place(f, place);
    }
    f->expert[place] = expert;
    if (expert >= 0) link_place(f, place);
}
