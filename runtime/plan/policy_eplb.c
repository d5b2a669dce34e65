// eplb: redundant experts by load for each copy, then balanced packing (DeepSeek's load balancer,
// its global form). --slots places for each device beyond those of the owned experts.
#include "runtime/plan/order.h"
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

struct eplb {
    struct hpl_draft draft;
    struct hpl_view view;
    int32_t *count;  // [experts] copies
    int64_t *weight; // [experts] rows of one copy
    int32_t *order;  // [experts]
    int64_t *load;   // [devices]
};

static void count_copies(struct eplb *p, int64_t redundant, int32_t devices) {
    for (int32_t e = 0; e < p->draft.experts; e++) p->count[e] = 1;
    for (; redundant > 0; redundant--) {
        int32_t best = -1;
        for (int32_t e = 0; e < p->draft.experts; e++) {
            if (p->count[e] == devices) continue;
            const bool more =
                best < 0 || p->view.rows[e] * p->count[best] > p->view.rows[best] * p->count[e];
            if (more) best = e;
        }
        if (best < 0) return;
        p->count[best]++;
    }
}

static int32_t device_for(const struct eplb *p, int32_t expert) {
    const struct hpl_topology *topology = p->draft.topology;
    int32_t best = -1;
    for (int32_t d = 0; d < topology->devices; d++) {
        if (!hpl_draft_may_add(&p->draft, expert, d)) continue;
        if (best < 0 || p->load[d] * topology->speed[best] < p->load[best] * topology->speed[d]) {
            best = d;
        }
    }
    return best;
}

enum hpl_status hpl_place_eplb(const struct hpl_problem *problem, struct hpl_plan *plan,
                               int64_t *share, struct hpl_work *work) {
    (void)share;
    struct eplb p;
    const int32_t experts = problem->experts, devices = problem->topology->devices;
    const int32_t owned = (experts + devices - 1) / devices;
    const enum hpl_status status = hpl_rival_begin(&p.draft, problem, 0, work);
    if (status != HPL_OK) return status;
    for (int32_t e = 0; e < experts; e++) hpl_draft_remove(&p.draft, e, problem->owner[e]);
    for (int32_t d = 0; d < devices; d++) p.draft.slots_left[d] = owned + problem->budget.slots;
    p.count = HPL_TAKE(work, experts, int32_t);
    p.weight = HPL_TAKE(work, experts, int64_t);
    p.order = HPL_TAKE(work, experts, int32_t);
    p.load = HPL_TAKE(work, devices, int64_t);
    if (!p.count || !p.weight || !p.order || !p.load || !hpl_view_take(&p.view, problem, work)) {
        return HPL_NO_ROOM;
    }
    count_copies(&p, (int64_t)devices * problem->budget.slots, devices);
    hpl_zero_i64(p.load, devices);
    for (int32_t e = 0; e < experts; e++) {
        p.weight[e] = HPL_PARTS * p.view.rows[e] / p.count[e];
        p.order[e] = e;
    }
    hpl_order_desc(p.order, experts, p.weight);
    for (int32_t i = 0; i < experts; i++) {
        const int32_t e = p.order[i];
        for (int32_t c = 0; c < p.count[e]; c++) {
            const int32_t d = device_for(&p, e);
            if (d < 0) break;
            hpl_draft_add(&p.draft, e, d);
            p.load[d] += p.weight[e];
        }
    }
    return hpl_draft_finish(&p.draft, plan);
}
