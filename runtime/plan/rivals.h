// rivals.h: shared by several of the re-implemented policies (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_RIVALS_H
#define HECATE_RUNTIME_PLAN_RIVALS_H

#include "runtime/plan/draft.h"

// Loads summed in the ways that policies look at them, and orders of experts.
struct hpl_view {
    uint32_t *node_rows; // [nodes][experts]
    int64_t *rows;       // [experts]
    int64_t sum;
    int32_t *heavy; // [experts] most rows first
};

// False when the workspace has no room.
bool hpl_view_take(struct hpl_view *view, const struct hpl_problem *problem, struct hpl_work *work);

// Begins a draft from the owners alone, with no limit on entries: rivals know none.
enum hpl_status hpl_rival_begin(struct hpl_draft *draft, const struct hpl_problem *problem,
                                int32_t slots, struct hpl_work *work);

// Device loads, in 1 / HPL_PARTS of a row, when each node's rows of an expert are split evenly over
// the node's copies, or where it has none over all. Returns the largest, speeds counted.
enum { HPL_PARTS = 1024 };
int64_t hpl_rival_loads(const struct hpl_draft *draft, const uint32_t *node_rows, int64_t *loads);

// The rows that leave their node under the same split.
int64_t hpl_rival_cross(const struct hpl_draft *draft, const uint32_t *node_rows);

// The plan and the shares of a policy that has divided every expert's rows itself: holders are the
// owner and every device with rows. pieces is [experts][devices].
enum hpl_status hpl_rival_pieces(const struct hpl_problem *problem, const int64_t *pieces,
                                 struct hpl_plan *plan, int64_t *share);

#endif
