// Offsets: slots and buffers of the arena, largest first, each at the lowest offset that is free
// during its life.
#include <stdlib.h>
#include <string.h>

#include "passes/homes/homes.h"

struct item {
    int slot, root; // One of them; the other is -1.
    int first;      // Breaks ties of size.
    int64_t bytes, offset;
};

static void cover(struct hec_slot *slot, int first, int last) {
    if (slot->last < 0 || first < slot->first) slot->first = first;
    if (last > slot->last) slot->last = last;
}

// A slot lives from its first stash to its last fetch; an access inside a loop keeps it alive for all of the loop.
void hec_homes_slot_lives(struct hec_homes *p) {
    const struct hec_live *live = &p->live;
    for (int i = 0; i < live->values.count; i++) {
        const struct hec_home home = p->placed[i].home;
        if (!p->placed[i].pinned || home.kind != HEC_HOME_SLOT) continue;
        int first = live->values.item[i].first, last = live->values.item[i].last;
        const int from = live->outermost.item[first], to = live->outermost.item[last];
        if (from >= 0) first = live->loops.item[from].start;
        if (to >= 0) last = live->loops.item[to].end;
        cover(hec_homes_slot(p, home.symbol), first, last);
    }
    for (int i = 0; i < p->slots.count; i++) { // The runtime reads it before @backward.
        if (p->slots.item[i].observed) cover(&p->slots.item[i], live->backward, live->backward);
        if (p->slots.item[i].kept)
            cover(&p->slots.item[i], 0, live->backward); // As does the next @forward.
    }
}

static bool is_overlap(int a_first, int a_last, int b_first, int b_last) {
    return a_first <= b_last && b_first <= a_last;
}

// Whether any member of the class `root` lives between `first` and `last`.
static bool class_lives(const struct hec_homes *p, int root, int first, int last) {
    int i = root;
    do {
        const struct hec_live_value *v = &p->live.values.item[i];
        if (is_overlap(v->first, v->last, first, last)) return true;
        i = p->placed[i].next;
    } while (i != root);
    return false;
}

static bool is_together(const struct hec_homes *p, const struct item *a, const struct item *b) {
    if (a->slot >= 0) {
        const struct hec_slot *slot = &p->slots.item[a->slot];
        if (b->root >= 0) return class_lives(p, b->root, slot->first, slot->last);
        const struct hec_slot *other = &p->slots.item[b->slot];
        return is_overlap(slot->first, slot->last, other->first, other->last);
    }
    if (b->slot >= 0) return is_together(p, b, a);
    int i = a->root;
    do {
        const struct hec_live_value *v = &p->live.values.item[i];
        if (class_lives(p, b->root, v->first, v->last)) return true;
        i = p->placed[i].next;
    } while (i != a->root);
    return false;
}

static int by_size(const void *left, const void *right) {
    const struct item *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->root - b->root;
}

static int collect(struct hec_homes *p, struct item *item) {
    int count = 0;
    for (int i = 0; i < p->slots.count; i++) {
        const struct hec_slot *slot = &p->slots.item[i];
        if (slot->last < 0) continue;
        item[count++] = (struct item){i, -1, slot->first, slot->rows * slot->stride, 0};
    }
    for (int i = 0; i < p->live.values.count; i++) {
        if (p->placed[i].pinned || hec_homes_root(p, i) != i) continue;
        const struct hec_live_value *v = &p->live.values.item[i];
        const int64_t bytes = hec_type_bytes(mlirValueGetType(v->value));
        item[count++] = (struct item){-1, i, v->first, hec_aligned(p->target, bytes), 0};
    }
    qsort(item, (size_t)count, sizeof *item, by_size);
    return count;
}

// The lowest offset for item[at] beside the items before it; `near` is scratch.
static int64_t fit(const struct hec_homes *p, const struct item *item, int at,
                   const struct item **near) {
    int count = 0; // Placed items alive at the same time, by offset.
    for (int i = 0; i < at; i++) {
        if (!is_together(p, &item[i], &item[at])) continue;
        int to = count++;
        for (; to > 0 && near[to - 1]->offset > item[i].offset; to--) near[to] = near[to - 1];
        near[to] = &item[i];
    }
    int64_t offset = 0;
    for (int i = 0; i < count && near[i]->offset < offset + item[at].bytes; i++) {
        const int64_t end = near[i]->offset + near[i]->bytes;
        if (end > offset) offset = end;
    }
    return offset;
}

void hec_homes_offsets(struct hec_homes *p) {
    hec_homes_slot_lives(p);
    const size_t most = (size_t)(p->slots.count + p->live.values.count);
    struct item *item = hec_arena_alloc(&p->arena, most, sizeof *item);
    const struct item **near = hec_arena_alloc(&p->arena, most, sizeof *near);
    const int count = collect(p, item);
    p->arena_bytes = 0;
    for (int i = 0; i < count; i++) {
        item[i].offset = fit(p, item, i, near);
        if (item[i].slot >= 0) {
            p->slots.item[item[i].slot].offset = item[i].offset;
        } else {
            p->placed[item[i].root].home.at = item[i].offset;
        }
        const int64_t end = item[i].offset + item[i].bytes;
        if (end > p->arena_bytes) p->arena_bytes = end;
    }
}
