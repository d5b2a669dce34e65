// Copies before changes, under one lock. A reader holds it for a block, not while he writes.
#include "runtime/params/snapshot.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 18 }; // Bytes.

struct item {
    struct hrt_tensor tensor;
    const char *values; // Where it lies, at tensor.offset; or NULL:
    void *copy;         // it has been copied, and lies here.
    bool passed;        // Nobody needs it any more.
};

struct hrt_snapshot {
    const struct hrt_program *program;
    int64_t element; // Bytes.
    struct item *item;
    struct item **by_offset; // The same, in the order of tensors in the buffer.
    size_t items;
    struct hrt_copies *copies;
    pthread_mutex_t lock;
    pthread_cond_t passed;
};

struct hrt_snapshot *hrt_snapshot_create(const struct hrt_program *program, size_t tensors,
                                         struct hrt_copies *copies) {
    struct hrt_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) return NULL;
    pthread_mutex_init(&snapshot->lock, NULL);
    pthread_cond_init(&snapshot->passed, NULL);
    snapshot->program = program;
    snapshot->element = hrt_element_bytes(program->precision);
    snapshot->copies = copies;
    snapshot->item = calloc(tensors + 1, sizeof *snapshot->item);
    snapshot->by_offset = calloc(tensors + 1, sizeof(struct item *));
    if (snapshot->item && snapshot->by_offset) return snapshot;
    hrt_snapshot_destroy(snapshot);
    return NULL;
}

void hrt_snapshot_destroy(struct hrt_snapshot *snapshot) {
    if (!snapshot) return;
    for (size_t i = 0; snapshot->item && i < snapshot->items; i++) {
        if (snapshot->item[i].copy) hrt_copies_give(snapshot->copies, snapshot->item[i].copy);
    }
    free(snapshot->item);
    free(snapshot->by_offset);
    pthread_cond_destroy(&snapshot->passed);
    pthread_mutex_destroy(&snapshot->lock);
    free(snapshot);
}

void hrt_snapshot_add(struct hrt_snapshot *snapshot, const void *values,
                      const struct hrt_tensor *tensor) {
    struct item *item = &snapshot->item[snapshot->items];
    *item = (struct item){.tensor = *tensor, .values = values};
    snapshot->by_offset[snapshot->items++] = item;
}

static int by_offset(const void *a, const void *b) {
    const struct item *const *left = a, *const *right = b;
    const int64_t x = (*left)->tensor.offset, y = (*right)->tensor.offset;
    return (x > y) - (x < y);
}

void hrt_snapshot_seal(struct hrt_snapshot *snapshot) {
    qsort(snapshot->by_offset, snapshot->items, sizeof(struct item *), by_offset);
}

static size_t bytes_of(const struct hrt_snapshot *snapshot, const struct item *item) {
    return (size_t)(item->tensor.param->elements * snapshot->element);
}

static void copy_bytes(char *to, const char *from, size_t bytes) {
#pragma omp parallel for schedule(static) if (bytes > PIECE)
    for (size_t at = 0; at < bytes; at += PIECE)
        memcpy(to + at, from + at, bytes - at < PIECE ? bytes - at : PIECE);
}

// The lock is held.
static void copy(struct hrt_snapshot *snapshot, struct item *item) {
    const size_t bytes = bytes_of(snapshot, item);
    while (!item->passed && !item->copy) {
        item->copy = snapshot->copies ? hrt_copies_take(snapshot->copies, bytes) : NULL;
        if (!item->copy) { // Wait until the reader passes a tensor, at last this one.
            pthread_cond_wait(&snapshot->passed, &snapshot->lock);
            continue;
        }
        copy_bytes(item->copy, item->values + item->tensor.offset * snapshot->element, bytes);
        item->values = NULL;
    }
}

// The first one that ends behind `offset`. Tensors of one buffer do not overlap.
static size_t find(const struct hrt_snapshot *snapshot, int64_t offset) {
    size_t low = 0, high = snapshot->items;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct hrt_tensor *tensor = &snapshot->by_offset[middle]->tensor;
        if (tensor->offset + tensor->param->elements <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void hrt_snapshot_change(struct hrt_snapshot *snapshot, int64_t offset, int64_t count) {
    if (!snapshot) return;
    for (size_t i = find(snapshot, offset); i < snapshot->items; i++) {
        struct item *item = snapshot->by_offset[i];
        if (item->tensor.offset >= offset + count) return;
        pthread_mutex_lock(&snapshot->lock); // Anew for each, so that the reader goes on.
        if (!item->copy) copy(snapshot, item);
        pthread_mutex_unlock(&snapshot->lock);
    }
}

void hrt_snapshot_read(struct hrt_snapshot *snapshot, size_t number, int64_t first, int64_t count,
                       void *elements) {
    pthread_mutex_lock(&snapshot->lock);
    const struct item *item = &snapshot->item[number];
    struct hrt_tensor tensor = item->tensor;
    if (item->copy) tensor.offset = 0;
    hrt_tensor_read(snapshot->program, item->copy ? item->copy : item->values, &tensor, first,
                    count, elements);
    pthread_mutex_unlock(&snapshot->lock);
}

// The lock is held.
static void pass(struct hrt_snapshot *snapshot, struct item *item) {
    if (item->passed) return;
    if (item->copy) hrt_copies_give(snapshot->copies, item->copy);
    item->copy = NULL;
    item->passed = true;
}

void hrt_snapshot_pass(struct hrt_snapshot *snapshot, size_t number) {
    pthread_mutex_lock(&snapshot->lock);
    pass(snapshot, &snapshot->item[number]);
    pthread_cond_broadcast(&snapshot->passed);
    pthread_mutex_unlock(&snapshot->lock);
}
