// quota_exchange.c: step 5 of policy fssdp, for budgets so tight that packing exceeds the level.
//
// The flow names the devices that are full and with them the experts that have holders nowhere
// else. Only one more holder elsewhere can lower the level: a replica on a device that is not full
// gives way to such an expert, and stays away if the level falls. Evaluations are counted, so the
// time is bounded.
#include "runtime/plan/order.h"
#include "runtime/plan/quota.h"

enum { EVALUATIONS = 64 };

struct exchange {
    struct hpl_quota *q;
    struct hpl_plan *plan;
    struct hpl_level level;
    unsigned char *full;  // [devices] at the best plan so far
    unsigned char *trial; // [devices]
    int32_t left;         // Evaluations.
};

static bool is_lower(struct hpl_level a, struct hpl_level b) {
    return (__int128)a.num * b.den < (__int128)b.num * a.den;
}

// Writes the draft's plan and finds its level.
static enum hpl_status evaluate(struct exchange *x, struct hpl_level *level,
                                struct hpl_work *work) {
    const struct hpl_problem *problem = x->q->problem;
    const enum hpl_status status = hpl_draft_finish(&x->q->draft, x->plan);
    if (status != HPL_OK) return status;
    x->left--;
    return hpl_share_level(problem->topology, x->plan, problem->loads, problem->budget.slack, level,
                           x->trial, work);
}

// Whether the expert has rows, and no holder on a device that is not full.
static bool is_stuck(const struct exchange *x, int32_t expert) {
    const struct hpl_draft *draft = &x->q->draft;
    if (x->q->rest[expert] == 0) return false;
    for (int32_t d = 0; d < draft->topology->devices; d++) {
        if (!x->full[d] && hpl_draft_holds(draft, expert, d)) return false;
    }
    return true;
}

// A replica that calibration may not take away was there before.
static bool may_go(const struct exchange *x, int32_t expert, int32_t device) {
    const struct hpl_problem *problem = x->q->problem;
    const struct hpl_plan *present = problem->present;
    if (problem->owner[expert] == device || !hpl_draft_holds(&x->q->draft, expert, device)) {
        return false;
    }
    for (int32_t k = present ? present->first[expert] : 0;
         present && k < present->first[expert + 1]; k++) {
        if (present->holder[k] == device) return false;
    }
    return true;
}

// One more holder for `in`, in place of `out` (-1: in a free slot). Keeps it if the level falls.
static enum hpl_status attempt(struct exchange *x, int32_t out, int32_t in, int32_t device,
                               bool *better, struct hpl_work *work) {
    struct hpl_draft *draft = &x->q->draft;
    *better = false;
    if (out >= 0) hpl_draft_remove(draft, out, device);
    if (hpl_draft_may_add(draft, in, device)) {
        struct hpl_level level;
        hpl_draft_add(draft, in, device);
        const enum hpl_status status = evaluate(x, &level, work);
        if (status != HPL_OK) return status;
        *better = is_lower(level, x->level);
        if (*better) {
            x->level = level;
            for (int32_t d = 0; d < draft->topology->devices; d++) x->full[d] = x->trial[d];
            return HPL_OK;
        }
        hpl_draft_remove(draft, in, device);
    }
    if (out >= 0) hpl_draft_add(draft, out, device);
    return HPL_OK;
}

// All ways to give `in` a holder on `device`.
static enum hpl_status attempt_all(struct exchange *x, int32_t in, int32_t device, bool *better,
                                   struct hpl_work *work) {
    enum hpl_status status = attempt(x, -1, in, device, better, work);
    for (int32_t out = 0; out < x->q->problem->experts; out++) {
        if (status != HPL_OK || *better || x->left <= 0) return status;
        if (may_go(x, out, device)) status = attempt(x, out, in, device, better, work);
    }
    return status;
}

// The first exchange that lowers the level, stuck experts with most rows first.
static enum hpl_status improve(struct exchange *x, bool *better, struct hpl_work *work) {
    const int32_t experts = x->q->problem->experts;
    const int32_t devices = x->q->draft.topology->devices;
    *better = false;
    for (int32_t i = 0; i < experts; i++) {
        const int32_t in = x->q->ids[i];
        if (!is_stuck(x, in)) continue;
        for (int32_t d = 0; d < devices; d++) {
            if (x->full[d]) continue;
            const enum hpl_status status = attempt_all(x, in, d, better, work);
            if (status != HPL_OK || *better || x->left <= 0) return status;
        }
    }
    return HPL_OK;
}

enum hpl_status hpl_quota_exchange(struct hpl_quota *q, struct hpl_plan *plan,
                                   struct hpl_work *work) {
    const int32_t experts = q->problem->experts, devices = q->problem->topology->devices;
    struct exchange x = {
        .q = q,
        .plan = plan,
        .full = HPL_TAKE(work, devices, unsigned char),
        .trial = HPL_TAKE(work, devices, unsigned char),
        .left = EVALUATIONS,
    };
    if (!x.full || !x.trial) return HPL_NO_ROOM;
    for (int32_t e = 0; e < experts; e++) {
        q->ids[e] = e;
        q->rest[e] = 0;
        for (int32_t n = 0; n < q->nodes.nodes; n++) {
            q->rest[e] += q->node_rows[(int64_t)n * experts + e];
        }
    }
    hpl_order_desc(q->ids, experts, q->rest);
    enum hpl_status status = evaluate(&x, &x.level, work);
    for (int32_t d = 0; d < devices; d++) x.full[d] = x.trial[d];
    for (bool better = true; status == HPL_OK && better && x.left > 0;) {
        status = improve(&x, &better, work);
    }
    return status == HPL_OK ? hpl_draft_finish(&q->draft, plan) : status;
}
