// A binary heap of items with their times. Items with equal times leave it by number, so the order does not depend
// on how the heap was filled.
#ifndef HECATE_PASSES_TIMELINE_AGENDA_H
#define HECATE_PASSES_TIMELINE_AGENDA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct hec_item {
    double at;
    int64_t number; // Each once.
    int32_t what;
};

struct hec_agenda {
    struct hec_item *item; // item[0] comes first.
    int32_t count, room;
};

static inline bool hec_item_before(const struct hec_item *a, const struct hec_item *b) {
    return a->at < b->at || (a->at == b->at && a->number < b->number);
}

// At the end, in no order: see hec_agenda_order.
static inline void hec_agenda_append(struct hec_agenda *agenda, struct hec_item item) {
    if (agenda->count == agenda->room) {
        agenda->room = agenda->room ? 2 * agenda->room : 16;
        agenda->item = realloc(agenda->item, (size_t)agenda->room * sizeof *agenda->item);
        if (!agenda->item) abort(); // As the arenas of the compiler do.
    }
    agenda->item[agenda->count++] = item;
}

static inline void hec_agenda_add(struct hec_agenda *agenda, struct hec_item item) {
    hec_agenda_append(agenda, item);
    int32_t at = agenda->count - 1;
    while (at > 0 && hec_item_before(&item, &agenda->item[(at - 1) / 2])) {
        agenda->item[at] = agenda->item[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    agenda->item[at] = item;
}

// Puts item[at] where it belongs, below it all is in order.
static inline void hec_agenda_sink(struct hec_agenda *agenda, int32_t at) {
    struct hec_item *item = agenda->item;
    const struct hec_item own = item[at];
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= agenda->count) break;
        if (child + 1 < agenda->count && hec_item_before(&item[child + 1], &item[child])) child++;
        if (!hec_item_before(&item[child], &own)) break;
        item[at] = item[child];
        at = child;
    }
    item[at] = own;
}

// The first item, which leaves the agenda; it is not empty.
static inline struct hec_item hec_agenda_take(struct hec_agenda *agenda) {
    const struct hec_item first = agenda->item[0];
    agenda->item[0] = agenda->item[--agenda->count];
    if (agenda->count) hec_agenda_sink(agenda, 0);
    return first;
}

// Makes `item`, in any order, a heap.
static inline void hec_agenda_order(struct hec_agenda *agenda) {
    for (int32_t i = agenda->count / 2 - 1; i >= 0; i--) hec_agenda_sink(agenda, i);
}

#endif
