// order.h: sorting without libc, with ties broken by number (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_ORDER_H
#define HECATE_RUNTIME_PLAN_ORDER_H

#include <stdint.h>

// Sorts `ids` by key descending, equal keys by id ascending. keys is indexed by id. Heap sort: no
// memory, no worst case, and one result for any order of the ids.
void hpl_order_desc(int32_t *ids, int32_t count, const int64_t *keys);

// Puts `id` into the descending list of the `limit` greatest; returns the list's new length.
int32_t hpl_order_insert(int32_t *ids, int32_t count, int32_t limit, int32_t id,
                         const int64_t *keys);

#endif
