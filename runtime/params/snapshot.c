// Copies before changes, under one lock. A reader holds it for a block, not while he writes.
#include "runtime/params/snapshot.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18 }; // Bytes.

struct item {
    struct hrt_buffer buffer;
    struct hrt_slice slice; // In the buffer, or the copy.
    int64_t offset, count;  // Elements of the buffer, as stored.
    size_t turn;            // The number of slices of this buffer before it.
    void *copy;
    bool gathered; // The copy, which is not of `copies`, came with the slice.
    bool here;     // It can be read.
    bool passed;   // Nobody reads it any more.
};

struct hrt_snapshot {
    const struct hrt_program *program;
    struct item *item;
    struct item **sorted; // In the order in which they lie, or come from a device.
    size_t items, room;
    size_t brought; // Items that have come from a device.
    struct hrt_copies *copies;
    bool stopped;
    pthread_mutex_t lock;
    pthread_cond_t moved; // An item was passed, or is here.
};

struct hrt_snapshot *hrt_params_snapshot_create(const struct hrt_program *program,
                                                struct hrt_copies *copies) {
    struct hrt_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) return NULL;
    pthread_mutex_init(&snapshot->lock, NULL);
    pthread_cond_init(&snapshot->moved, NULL);
    snapshot->program = program;
    snapshot->copies = copies;
    return snapshot;
}

static void give_copy(struct hrt_snapshot *snapshot, struct item *item) {
    if (item->gathered)
        free(item->copy);
    else if (item->copy)
        hrt_params_copies_give(snapshot->copies, item->copy);
    item->copy = NULL;
}

void hrt_params_snapshot_destroy(struct hrt_snapshot *snapshot) {
    if (!snapshot) return;
    for (size_t i = 0; i < snapshot->items; i++) {
        give_copy(snapshot, &snapshot->item[i]);
    }
    free(snapshot->item);
    free(snapshot->sorted);
    pthread_cond_destroy(&snapshot->moved);
    pthread_mutex_destroy(&snapshot->lock);
    free(snapshot);
}

static bool grow(struct hrt_snapshot *snapshot) {
    if (snapshot->items < snapshot->room) return true;
    const size_t room = 2 * snapshot->room + 64;
    struct item *item = realloc(snapshot->item, room * sizeof *item);
    if (!item) return false;
    snapshot->item = item;
    snapshot->room = room;
    return true;
}

static struct item *append(struct hrt_snapshot *snapshot, const struct hrt_buffer *buffer,
                           const struct hrt_slice *slice) {
    if (!grow(snapshot)) return NULL;
    struct item *item = &snapshot->item[snapshot->items++];
    const bool same = snapshot->items > 1 && item[-1].buffer.values == buffer->values;
    *item = (struct item){.buffer = *buffer, .slice = *slice, .turn = same ? item[-1].turn + 1 : 0};
    return item;
}

bool hrt_params_snapshot_add_gathered(struct hrt_snapshot *snapshot,
                                      const struct hrt_buffer *buffer,
                                      const struct hrt_slice *slice) {
    struct item *item = append(snapshot, buffer, slice);
    size_t bytes;
    const void *from = hrt_params_slice_bytes(snapshot->program, slice, &bytes);
    if (!item || !(item->copy = malloc(bytes))) return false;
    memcpy(item->copy, from, bytes);
    item->gathered = item->here = true;
    item->offset = -1; // In front of all that changes.
    item->slice.at = item->copy;
    return true;
}

// A tensor of the host is one slice, which is here.
bool hrt_params_snapshot_add(struct hrt_snapshot *snapshot, const struct hrt_buffer *buffer,
                             const struct hrt_tensor *tensor) {
    struct hrt_slice slice = {.tensor = *tensor};
    while (hrt_params_slice_next(buffer, &slice)) {
        const bool here = !buffer->staging && hrt_params_slice_room(buffer, &slice);
        struct item *item = append(snapshot, buffer, &slice);
        if (!item) return false;
        item->offset = slice.here.offset + (here ? 0 : slice.first);
        item->count = here ? slice.here.count : slice.run;
        item->here = here;
    }
    return true;
}

size_t hrt_params_snapshot_slices(const struct hrt_snapshot *snapshot) {
    return snapshot->items;
}

static int by_offset(const void *a, const void *b) {
    const struct item *const *left = a, *const *right = b;
    return ((*left)->offset > (*right)->offset) - ((*left)->offset < (*right)->offset);
}

// Each buffer has a reader of its own: slices come in turn, one of each buffer.
static int by_turn(const void *a, const void *b) {
    const struct item *const *left = a, *const *right = b;
    if ((*left)->turn != (*right)->turn) return (*left)->turn < (*right)->turn ? -1 : 1;
    return (*left > *right) - (*left < *right);
}

static bool is_apart(const struct hrt_snapshot *snapshot) {
    return snapshot->items > 0 && snapshot->item[0].buffer.staging;
}

bool hrt_params_snapshot_seal(struct hrt_snapshot *snapshot) {
    snapshot->sorted = calloc(snapshot->items + 1, sizeof(struct item *));
    if (!snapshot->sorted) return false;
    for (size_t i = 0; i < snapshot->items; i++) snapshot->sorted[i] = &snapshot->item[i];
    qsort(snapshot->sorted, snapshot->items, sizeof(struct item *),
          is_apart(snapshot) ? by_turn : by_offset);
    return true;
}

static void copy_bytes(char *to, const char *from, size_t bytes) {
#pragma omp parallel for schedule(static) if (bytes > PIECE)
    for (size_t at = 0; at < bytes; at += PIECE)
        memcpy(to + at, from + at, bytes - at < PIECE ? bytes - at : PIECE);
}

// The lock is held.
static void copy(struct hrt_snapshot *snapshot, struct item *item) {
    size_t bytes;
    const void *from = hrt_params_slice_bytes(snapshot->program, &item->slice, &bytes);
    while (!item->passed && !item->copy && !snapshot->stopped) {
        item->copy = snapshot->copies ? hrt_params_copies_take(snapshot->copies, bytes) : NULL;
        if (!item->copy) { // Wait until the reader passes a slice, at last this one.
            pthread_cond_wait(&snapshot->moved, &snapshot->lock);
            continue;
        }
        copy_bytes(item->copy, from, bytes);
        item->slice.at = item->copy;
        item->slice.here.offset = 0;
    }
}

// ---- values of the host

// The first one that ends behind `offset`. Tensors of one buffer do not overlap.
static size_t find(const struct hrt_snapshot *snapshot, int64_t offset) {
    size_t low = 0, high = snapshot->items;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct item *item = snapshot->sorted[middle];
        if (item->offset + item->count <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void keep(struct hrt_snapshot *snapshot, int64_t offset, int64_t count) {
    for (size_t i = find(snapshot, offset); i < snapshot->items; i++) {
        struct item *item = snapshot->sorted[i];
        if (item->offset >= offset + count) return;
        pthread_mutex_lock(&snapshot->lock); // Anew for each, so that the reader goes on.
        if (!item->copy) copy(snapshot, item);
        pthread_mutex_unlock(&snapshot->lock);
    }
}

// ---- values of a device

// Brings a slice and copies it. False: there is no room for a copy. With `waits` the slice stays in
// the staging buffer until it is passed, or there is room.
static bool bring(struct hrt_snapshot *snapshot, struct item *item, bool waits) {
    const int64_t element = hrt_params_element_bytes(snapshot->program->precision);
    void *room = NULL;
    pthread_mutex_lock(&snapshot->lock);
    const bool needed = !item->passed && !item->gathered && !snapshot->stopped;
    if (needed && !waits && snapshot->copies)
        room = hrt_params_copies_take(snapshot->copies, (size_t)(item->count * element));
    if (room) hrt_params_copies_give(snapshot->copies, room); // Nobody else takes it.
    pthread_mutex_unlock(&snapshot->lock);
    if (!needed) return true;
    if (!waits && !room) return false;
    hrt_params_slice_bring(&item->buffer, &item->slice);
    pthread_mutex_lock(&snapshot->lock);
    item->here = true;
    pthread_cond_broadcast(&snapshot->moved);
    copy(snapshot, item);
    pthread_mutex_unlock(&snapshot->lock);
    return true;
}

void hrt_params_snapshot_bring(struct hrt_snapshot *snapshot, bool all) {
    if (!is_apart(snapshot)) return;
    while (snapshot->brought < snapshot->items &&
           bring(snapshot, snapshot->sorted[snapshot->brought], all))
        snapshot->brought++;
}

// ---- changes, and the reader

void hrt_params_snapshot_change(struct hrt_snapshot *snapshot, int64_t offset, int64_t count) {
    if (!snapshot) return;
    if (is_apart(snapshot))
        hrt_params_snapshot_bring(snapshot, true);
    else
        keep(snapshot, offset, count);
}

void hrt_params_snapshot_slice(const struct hrt_snapshot *snapshot, size_t number, int64_t *first,
                               int64_t *count) {
    *first = snapshot->item[number].slice.first;
    *count = snapshot->item[number].slice.run;
}

bool hrt_params_snapshot_read(struct hrt_snapshot *snapshot, size_t number, int64_t first,
                              int64_t count, void *elements) {
    const struct item *item = &snapshot->item[number];
    pthread_mutex_lock(&snapshot->lock);
    while (!item->here && !snapshot->stopped) pthread_cond_wait(&snapshot->moved, &snapshot->lock);
    const bool goes_on = !snapshot->stopped;
    if (goes_on) hrt_params_slice_read(snapshot->program, &item->slice, first, count, elements);
    pthread_mutex_unlock(&snapshot->lock);
    return goes_on;
}

void hrt_params_snapshot_pass(struct hrt_snapshot *snapshot, size_t number) {
    struct item *item = &snapshot->item[number];
    pthread_mutex_lock(&snapshot->lock);
    give_copy(snapshot, item);
    item->passed = true;
    pthread_cond_broadcast(&snapshot->moved);
    pthread_mutex_unlock(&snapshot->lock);
}

void hrt_params_snapshot_stop(struct hrt_snapshot *snapshot) {
    pthread_mutex_lock(&snapshot->lock);
    snapshot->stopped = true;
    pthread_cond_broadcast(&snapshot->moved);
    pthread_mutex_unlock(&snapshot->lock);
}
