// bound.h: a bound that no plan within the budget can beat.
#ifndef HECATE_RUNTIME_PLAN_BOUND_H
#define HECATE_RUNTIME_PLAN_BOUND_H

#include "runtime/plan/policy.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hpl_bound {
    int64_t load;  // Largest device load, thousandths of a row at speed one, rounded down.
    int64_t cross; // Rows that change node, when no device may exceed `level`.
};

// Lower bounds over all plans that hold the owners' chunks and those of problem->present, and add
// replicas within the remaining budget; problem->loads are the exact counts.
//
//   level   the largest load granted when `cross` is computed, thousandths of a row at speed one
//
// load: for any set X of experts, a device computes of X at most what it can (its level) and at
// most the rows of the experts of X that it holds, or could with its free slots; a node likewise
// with its free entries. X's rows must fit into the sum. The bound is the least level at which
// this holds for X = all experts, the heaviest j, those held by the j most loaded devices or nodes
// (docs/planner.md has the proof). With no slot left it is the exact optimum, by flow.
//
// cross: rows of experts that a node neither has nor could import leave it; with two nodes also
// the load that a node cannot compute at the level.
//
// HPL_BAD_ARGUMENT, HPL_NO_ROOM.
enum hpl_status hpl_bound(const struct hpl_problem *problem, int64_t level, struct hpl_bound *bound,
                          struct hpl_work *work);

#ifdef __cplusplus
}
#endif
#endif
