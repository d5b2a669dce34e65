// draft.h: a placement while it is being made (inside the planner only).
#ifndef HECATE_RUNTIME_PLAN_DRAFT_H
#define HECATE_RUNTIME_PLAN_DRAFT_H

#include "runtime/plan/policy.h"
#include "runtime/plan/work.h"

struct hpl_draft {
    const struct hpl_topology *topology;
    int32_t experts;
    int32_t words;         // 64-bit words of one expert's set of devices.
    uint64_t *held;        // [experts][words]
    int32_t *slots_left;   // [devices]
    int32_t *entries_left; // [nodes]
    int32_t *copies;       // [nodes][experts] holders of an expert in a node
};

// Begins with the owners, then the replicas of `present` if there is one; both count against the
// budget. HPL_NO_ROOM, or HPL_BAD_ARGUMENT when `present` lacks an owner or exceeds the budget.
enum hpl_status hpl_draft_begin(struct hpl_draft *draft, const struct hpl_problem *problem,
                                struct hpl_work *work);

static inline bool hpl_draft_holds(const struct hpl_draft *draft, int32_t expert, int32_t device) {
    return draft->held[(int64_t)expert * draft->words + device / 64] >> (device % 64) & 1;
}

static inline int32_t *hpl_draft_copies(const struct hpl_draft *draft, int32_t node,
                                        int32_t expert) {
    return &draft->copies[(int64_t)node * draft->experts + expert];
}

// Whether a replica may be added: not held, a slot is left, and an entry if the node needs one.
bool hpl_draft_may_add(const struct hpl_draft *draft, int32_t expert, int32_t device);

// Adds a replica and spends its slot, and its entry if it is the node's first copy.
void hpl_draft_add(struct hpl_draft *draft, int32_t expert, int32_t device);

// Undoes hpl_draft_add.
void hpl_draft_remove(struct hpl_draft *draft, int32_t expert, int32_t device);

// Writes the placement in its canonical form. HPL_NO_ROOM when `plan` is too small.
enum hpl_status hpl_draft_finish(const struct hpl_draft *draft, struct hpl_plan *plan);

#endif
