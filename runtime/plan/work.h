// work.h: taking arrays from the workspace (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_WORK_H
#define HECATE_RUNTIME_PLAN_WORK_H

#include "runtime/plan/types.h"

// `count` objects of `size` bytes, 16-byte aligned, not initialised; NULL when there is no room.
// Give everything taken since a point back by restoring the struct copied at that point.
void *hpl_take(struct hpl_work *work, int64_t count, size_t size);

#define HPL_TAKE(work, count, type) ((type *)hpl_take((work), (count), sizeof(type)))

// Adds to the steps of searches.
static inline void hpl_work_count(const struct hpl_work *work, int64_t steps) {
    if (work->steps) *work->steps += steps;
}

// Loops of our own: the planner's inner functions also compile for a GPU, where there is no libc.
static inline void hpl_zero_i64(int64_t *at, int64_t count) {
    for (int64_t i = 0; i < count; i++) at[i] = 0;
}

static inline void hpl_zero_i32(int32_t *at, int64_t count) {
    for (int64_t i = 0; i < count; i++) at[i] = 0;
}

static inline int64_t hpl_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t hpl_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// count * price for price >= 0, held within a range in which some of them can be added.
static inline int64_t hpl_cost(int64_t count, int64_t price) {
    const int64_t most = INT64_MAX / 16;
    if (price > 0 && count > most / price) return most;
    if (price > 0 && count < -(most / price)) return -most;
    return count * price;
}

#endif
