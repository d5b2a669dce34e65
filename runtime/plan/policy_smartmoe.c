// smartmoe: permutes experts, heaviest first onto the least loaded device with a free place
// (Zhai et al., USENIX ATC 2023). Periodic; parameters and optimizer states move.
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

struct permutation {
    int64_t *load;   // [devices]
    int32_t *places; // [devices]
    int32_t *owner;  // [experts] new
};

static int64_t largest(const struct permutation *p, const struct hpl_topology *topology,
                       const int64_t *rows, const int32_t *owner, int32_t experts) {
    int64_t worst = 0;
    hpl_zero_i64(p->load, topology->devices);
    for (int32_t e = 0; e < experts; e++) p->load[owner[e]] += rows[e];
    for (int32_t d = 0; d < topology->devices; d++) {
        worst = hpl_max(worst, HPL_PARTS * p->load[d] / topology->speed[d]);
    }
    return worst;
}

// Every device keeps as many experts as it has.
static void permute(struct permutation *p, const struct hpl_problem *problem,
                    const struct hpl_view *view, const int32_t *owner) {
    const int32_t devices = problem->topology->devices;
    hpl_zero_i64(p->load, devices);
    hpl_zero_i32(p->places, devices);
    for (int32_t e = 0; e < problem->experts; e++) p->places[owner[e]]++;
    for (int32_t i = 0; i < problem->experts; i++) {
        const int32_t e = view->heavy[i];
        int32_t best = p->places[owner[e]] > 0 ? owner[e] : -1; // Kept on ties.
        for (int32_t d = 0; d < devices; d++) {
            if (p->places[d] > 0 && (best < 0 || p->load[d] < p->load[best])) best = d;
        }
        p->owner[e] = best;
        p->places[best]--;
        p->load[best] += view->rows[e];
    }
}

enum hpl_status hpl_place_smartmoe(const struct hpl_problem *problem, struct hpl_plan *plan,
                                   int64_t *share, struct hpl_work *work) {
    (void)share;
    const int32_t experts = problem->experts, devices = problem->topology->devices;
    const int32_t *owner = problem->present ? problem->present->holder : problem->owner;
    struct hpl_view view;
    struct permutation p = {
        .load = HPL_TAKE(work, devices, int64_t),
        .places = HPL_TAKE(work, devices, int32_t),
        .owner = HPL_TAKE(work, experts, int32_t),
    };
    if (!p.load || !p.places || !p.owner || !hpl_view_take(&view, problem, work)) {
        return HPL_NO_ROOM;
    }
    if (plan->capacity < experts) return HPL_NO_ROOM;
    permute(&p, problem, &view, owner);
    const bool adopt = largest(&p, problem->topology, view.rows, p.owner, experts) <
                       largest(&p, problem->topology, view.rows, owner, experts);
    plan->experts = experts;
    for (int32_t e = 0; e <= experts; e++) plan->first[e] = e;
    for (int32_t e = 0; e < experts; e++) plan->holder[e] = adopt ? p.owner[e] : owner[e];
    return HPL_OK;
}
