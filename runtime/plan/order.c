// order.c: heap sort by (key descending, id ascending).
#include "runtime/plan/order.h"

#include <stdbool.h>

enum { INSERTION_MAX = 40 };

static bool goes_before(int32_t a, int32_t b, const int64_t *keys) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
}

// Restores the heap, whose root is what goes last, below `at`.
static void sift(int32_t *ids, int32_t at, int32_t count, const int64_t *keys) {
    for (;;) {
        int32_t last = at;
        for (int32_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            if (goes_before(ids[last], ids[child], keys)) last = child;
        }
        if (last == at) return;
        const int32_t moved = ids[at];
        ids[at] = ids[last];
        ids[last] = moved;
        at = last;
    }
}

// By insertion: for few ids, faster than a heap.
static void insert_all(int32_t *ids, int32_t count, const int64_t *keys) {
    for (int32_t i = 1; i < count; i++) {
        const int32_t id = ids[i];
        int32_t at = i;
        for (; at > 0 && goes_before(id, ids[at - 1], keys); at--) ids[at] = ids[at - 1];
        ids[at] = id;
    }
}

void hpl_order_desc(int32_t *ids, int32_t count, const int64_t *keys) {
    if (count <= INSERTION_MAX) {
        insert_all(ids, count, keys);
        return;
    }
    for (int32_t i = count / 2 - 1; i >= 0; i--) sift(ids, i, count, keys);
    for (int32_t end = count - 1; end > 0; end--) {
        const int32_t last = ids[0];
        ids[0] = ids[end];
        ids[end] = last;
        sift(ids, 0, end, keys);
    }
}

int32_t hpl_order_insert(int32_t *ids, int32_t count, int32_t limit, int32_t id,
                         const int64_t *keys) {
    if (limit <= 0 || (count == limit && !goes_before(id, ids[count - 1], keys))) return count;
    int32_t at = count < limit ? count : limit - 1;
    for (; at > 0 && goes_before(id, ids[at - 1], keys); at--) ids[at] = ids[at - 1];
    ids[at] = id;
    return count < limit ? count + 1 : limit;
}
