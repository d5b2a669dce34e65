// draft.c: sets of holders, and the remaining budget.
#include "runtime/plan/draft.h"

static void toggle(struct hpl_draft *draft, int32_t expert, int32_t device) {
    draft->held[(int64_t)expert * draft->words + device / 64] ^= (uint64_t)1 << (device % 64);
}

// The entries that the window leaves, by bytes where they are known.
static int32_t entries_of(const struct hpl_budget *budget, int32_t experts) {
    int64_t entries = budget->entries;
    if (budget->window_bytes > 0 && budget->chunk_bytes > 0) {
        entries = hpl_min(entries, budget->window_bytes / budget->chunk_bytes);
    }
    return (int32_t)hpl_min(entries, experts);
}

static enum hpl_status add_present(struct hpl_draft *draft, const struct hpl_plan *present,
                                   const int32_t *owner) {
    for (int32_t e = 0; e < draft->experts; e++) {
        bool owned = false;
        for (int32_t k = present->first[e]; k < present->first[e + 1]; k++) {
            const int32_t d = present->holder[k];
            if (d == owner[e])
                owned = true;
            else if (hpl_draft_may_add(draft, e, d))
                hpl_draft_add(draft, e, d);
            else
                return HPL_BAD_ARGUMENT;
        }
        if (!owned) return HPL_BAD_ARGUMENT;
    }
    return HPL_OK;
}

enum hpl_status hpl_draft_begin(struct hpl_draft *draft, const struct hpl_problem *problem,
                                struct hpl_work *work) {
    const struct hpl_topology *topology = problem->topology;
    const int32_t experts = problem->experts;
    const int32_t words = (topology->devices + 63) / 64;
    *draft = (struct hpl_draft){
        .topology = topology,
        .experts = experts,
        .words = words,
        .held = HPL_TAKE(work, (int64_t)experts * words, uint64_t),
        .slots_left = HPL_TAKE(work, topology->devices, int32_t),
        .entries_left = HPL_TAKE(work, topology->nodes, int32_t),
        .copies = HPL_TAKE(work, (int64_t)topology->nodes * experts, int32_t),
    };
    if (!draft->held || !draft->slots_left || !draft->entries_left || !draft->copies) {
        return HPL_NO_ROOM;
    }
    for (int64_t i = 0; i < (int64_t)experts * words; i++) draft->held[i] = 0;
    hpl_zero_i32(draft->copies, (int64_t)topology->nodes * experts);
    const int32_t slots = (int32_t)hpl_min(problem->budget.slots, experts);
    for (int32_t d = 0; d < topology->devices; d++) draft->slots_left[d] = slots;
    const int32_t entries = entries_of(&problem->budget, experts);
    for (int32_t n = 0; n < topology->nodes; n++) draft->entries_left[n] = entries;
    for (int32_t e = 0; e < experts; e++) {
        toggle(draft, e, problem->owner[e]);
        ++*hpl_draft_copies(draft, topology->node[problem->owner[e]], e);
    }
    return problem->present ? add_present(draft, problem->present, problem->owner) : HPL_OK;
}

bool hpl_draft_may_add(const struct hpl_draft *draft, int32_t expert, int32_t device) {
    const int32_t node = draft->topology->node[device];
    return draft->slots_left[device] > 0 && !hpl_draft_holds(draft, expert, device) &&
           (*hpl_draft_copies(draft, node, expert) > 0 || draft->entries_left[node] > 0);
}

void hpl_draft_add(struct hpl_draft *draft, int32_t expert, int32_t device) {
    const int32_t node = draft->topology->node[device];
    toggle(draft, expert, device);
    draft->slots_left[device]--;
    if ((*hpl_draft_copies(draft, node, expert))++ == 0) draft->entries_left[node]--;
}

void hpl_draft_remove(struct hpl_draft *draft, int32_t expert, int32_t device) {
    const int32_t node = draft->topology->node[device];
    toggle(draft, expert, device);
    draft->slots_left[device]++;
    if (--*hpl_draft_copies(draft, node, expert) == 0) draft->entries_left[node]++;
}

enum hpl_status hpl_draft_finish(const struct hpl_draft *draft, struct hpl_plan *plan) {
    int32_t holders = 0;
    plan->experts = draft->experts;
    for (int32_t e = 0; e < draft->experts; e++) {
        plan->first[e] = holders;
        for (int32_t w = 0; w < draft->words; w++) {
            uint64_t set = draft->held[(int64_t)e * draft->words + w];
            for (; set != 0; set &= set - 1) {
                if (holders == plan->capacity) return HPL_NO_ROOM;
                plan->holder[holders++] = w * 64 + __builtin_ctzll(set);
            }
        }
    }
    plan->first[draft->experts] = holders;
    return HPL_OK;
}
