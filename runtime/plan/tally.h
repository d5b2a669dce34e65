// tally.h: sums over loads that several files need (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_TALLY_H
#define HECATE_RUNTIME_PLAN_TALLY_H

#include "runtime/plan/types.h"

// rows[n * experts + e] = rows of expert e that start in node n.
static inline void hpl_tally_nodes(const struct hpl_topology *topology,
                                   const struct hpl_loads *loads, uint32_t *rows) {
    const int32_t experts = loads->experts;
    for (int32_t n = 0; n < topology->nodes; n++) {
        uint32_t *sum = rows + (int64_t)n * experts;
        for (int32_t e = 0; e < experts; e++) sum[e] = 0;
        for (int32_t d = topology->first[n]; d < topology->first[n + 1]; d++) {
            const uint32_t *from = loads->rows + (int64_t)d * experts;
            for (int32_t e = 0; e < experts; e++) sum[e] += from[e];
        }
    }
}

// rows[e] = rows of expert e, from node sums.
static inline void hpl_tally_experts(const uint32_t *node_rows, int32_t nodes, int32_t experts,
                                     int64_t *rows) {
    for (int32_t e = 0; e < experts; e++) rows[e] = 0;
    for (int32_t n = 0; n < nodes; n++) {
        for (int32_t e = 0; e < experts; e++) rows[e] += node_rows[(int64_t)n * experts + e];
    }
}

static inline int64_t hpl_tally_speed(const struct hpl_topology *topology) {
    int64_t sum = 0;
    for (int32_t d = 0; d < topology->devices; d++) sum += topology->speed[d];
    return sum;
}

// Rows that a device of `speed` may compute at `level`, rounded up.
static inline int64_t hpl_level_rows(struct hpl_level level, int64_t speed) {
    return (int64_t)(((__int128)level.num * speed + level.den - 1) / level.den);
}

#endif
