// A binary heap of small numbers, which stand for what the caller keeps elsewhere.
#ifndef HECATE_PASSES_TIMELINE_HEAP_H
#define HECATE_PASSES_TIMELINE_HEAP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct hec_heap {
    int32_t *item; // item[0] comes first.
    int32_t count, room;
};

// Whether `a` comes before `b`: a strict order, so that what comes first does not depend on how the heap was filled.
typedef bool hec_before_fn(const void *context, int32_t a, int32_t b);

static inline void hec_heap_reserve(struct hec_heap *heap, int32_t count) {
    if (count <= heap->room) return;
    heap->room = count > 2 * heap->room ? count : 2 * heap->room;
    heap->item = realloc(heap->item, (size_t)heap->room * sizeof *heap->item);
    if (!heap->item) abort(); // As the arenas of the compiler do.
}

static inline void hec_heap_push(struct hec_heap *heap, int32_t item, hec_before_fn *before,
                                 const void *context) {
    hec_heap_reserve(heap, heap->count + 1);
    int32_t at = heap->count++;
    while (at > 0 && before(context, item, heap->item[(at - 1) / 2])) {
        heap->item[at] = heap->item[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->item[at] = item;
}

// Puts item[at] where it belongs, below it all is in order.
static inline void hec_heap_sink(struct hec_heap *heap, int32_t at, hec_before_fn *before,
                                 const void *context) {
    const int32_t own = heap->item[at];
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= heap->count) break;
        if (child + 1 < heap->count && before(context, heap->item[child + 1], heap->item[child]))
            child++;
        if (!before(context, heap->item[child], own)) break;
        heap->item[at] = heap->item[child];
        at = child;
    }
    heap->item[at] = own;
}

// The first item, which leaves the heap; it is not empty.
static inline int32_t hec_heap_pop(struct hec_heap *heap, hec_before_fn *before,
                                   const void *context) {
    const int32_t first = heap->item[0];
    heap->item[0] = heap->item[--heap->count];
    if (heap->count) hec_heap_sink(heap, 0, before, context);
    return first;
}

#endif
