// share.h: the rows that each holder computes, by the placement and the exact counts.
#ifndef HECATE_RUNTIME_PLAN_SHARE_H
#define HECATE_RUNTIME_PLAN_SHARE_H

#include "runtime/plan/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The share of every holder: least largest load first (a device's rows over its speed, rounded up
// to a row), then fewest rows across nodes, then fewest rows between devices.
//
//   slack   thousandths of the mean: a largest load up to mean * (1 + slack / 1000) counts as good
//           as the least one, which leaves more rows where they are. 0 for none.
//   share   [holders of the plan] rows; for each expert they sum to its rows
//   level   the largest load allowed: no device computes more than ceil(speed * num / den) rows
//
// Exact: the largest load and the rows that move are the least possible (tests/plan/share_test.c
// compares with a flow written for reading). Deterministic; integers only; no libc, so that a GPU
// can run it too.
//
// HPL_BAD_ARGUMENT when an expert with rows has no holder; HPL_NO_ROOM.
enum hpl_status hpl_share(const struct hpl_topology *topology, const struct hpl_plan *plan,
                          const struct hpl_loads *loads, int32_t slack, int64_t *share,
                          struct hpl_level *level, struct hpl_work *work);

// The level of hpl_share alone, and why it is not lower.
//
//   full    [devices] 1 for devices that are full at `level` for any shares, because some
//           experts have all their holders among them; all 0 where the mean and slack set the level
enum hpl_status hpl_share_level(const struct hpl_topology *topology, const struct hpl_plan *plan,
                                const struct hpl_loads *loads, int32_t slack,
                                struct hpl_level *level, unsigned char *full,
                                struct hpl_work *work);

// The rows of source device `rank` that go to each holder, when holders compute `share`: own rows
// stay as far as the own share goes, then the node's, in device order beginning with device
// expert % size, then those of other nodes. Over all ranks the rows of a holder sum to its share.
//
//   rows    [holders of the plan] overwritten
enum hpl_status hpl_route(const struct hpl_topology *topology, const struct hpl_plan *plan,
                          const struct hpl_loads *loads, const int64_t *share, int32_t rank,
                          uint32_t *rows, struct hpl_work *work);

// The part of all quotas that a rank has to know: a row, its columns, and sums. All of the plan's holders, rows
// that none has are 0.
struct hpl_part {
    uint32_t *to; // [holders] its own rows for each
    uint32_t
        *before;   // [holders] rows of the ranks before it for each; where `to` is 0 it need not be
    uint32_t *sum; // [holders] rows of all ranks for each
    uint32_t *here; // [devices][stride] rows of each rank for the n-th holder that is on this one
    int32_t stride; // Holders on this rank, at least.
};

// As hpl_route of all devices, of which `rank` keeps its part: in time that grows with devices and
// holders, not with their product.
enum hpl_status hpl_route_part(const struct hpl_topology *topology, const struct hpl_plan *plan,
                               const struct hpl_loads *loads, const int64_t *share, int32_t rank,
                               const struct hpl_part *part, struct hpl_work *work);

// The same from quotas of one source after the other: begins with none, adds those of `source`.
void hpl_part_begin(const struct hpl_part *part, const struct hpl_plan *plan);
void hpl_part_add(const struct hpl_part *part, const struct hpl_plan *plan, int32_t rank,
                  int32_t source, const uint32_t *rows);

// Which holders count as near when rows are split evenly.
enum hpl_even {
    HPL_EVEN_NEAREST, // Own device, else the node's holders, else all (the paper's section 4.4).
    HPL_EVEN_NODE,    // The node's holders, else all.
    HPL_EVEN_ALL,     // All holders.
};

// As hpl_route, with rows split evenly over the nearest holders; the remainder goes to the
// holders from (rank + expert) % count on, one row each.
void hpl_route_even(const struct hpl_topology *topology, const struct hpl_plan *plan,
                    const struct hpl_loads *loads, enum hpl_even even, int32_t rank,
                    uint32_t *rows);

// The same for one expert: sets `rows` of the holders among which its rows are split, from .. to - 1 of the plan's, and
// of no others.
void hpl_route_even_expert(const struct hpl_topology *topology, const struct hpl_plan *plan,
                           const struct hpl_loads *loads, enum hpl_even even, int32_t rank,
                           int32_t expert, uint32_t *rows, int32_t *from, int32_t *to);

#ifdef __cplusplus
}
#endif
#endif
