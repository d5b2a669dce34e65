// laer: experts are cut over all devices, and each device restores --slots of them in every
// iteration (LAER-MoE's FSEP). Two candidates, even and proportional copies; the cheaper is kept.
#include "runtime/plan/order.h"
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

struct laer {
    struct hpl_draft draft;
    struct hpl_view view;
    int64_t *loads;  // [devices]
    int64_t *weight; // [experts] load of one copy
    int32_t *order;  // [experts]
    int32_t *count;  // [experts] copies
};

static bool count_even(struct laer *l, int64_t places) {
    if (places % l->draft.experts != 0) return false;
    for (int32_t e = 0; e < l->draft.experts; e++) {
        l->count[e] = (int32_t)(places / l->draft.experts);
    }
    return true;
}

// One copy each, or one for each node where all fit; then always one more of the expert with most
// load for each copy.
static void count_proportional(struct laer *l, int64_t places) {
    const int32_t experts = l->draft.experts, nodes = l->draft.topology->nodes;
    const int32_t start = (int64_t)nodes * experts <= places ? nodes : 1;
    for (int32_t e = 0; e < experts; e++) l->count[e] = start;
    for (int64_t left = places - (int64_t)start * experts; left > 0; left--) {
        int32_t best = -1;
        for (int32_t e = 0; e < experts; e++) {
            if (l->count[e] == l->draft.topology->devices) continue;
            const bool more =
                best < 0 || l->view.rows[e] * l->count[best] > l->view.rows[best] * l->count[e];
            if (more) best = e;
        }
        if (best < 0) return;
        l->count[best]++;
    }
}

// The device for one more copy: of the nodes with fewest copies, the least loaded device that has
// a place.
static int32_t device_for(const struct laer *l, int32_t expert) {
    const struct hpl_topology *topology = l->draft.topology;
    int32_t best = -1;
    for (int32_t d = 0; d < topology->devices; d++) {
        if (!hpl_draft_may_add(&l->draft, expert, d)) continue;
        if (best < 0) {
            best = d;
            continue;
        }
        const int32_t copies = *hpl_draft_copies(&l->draft, topology->node[d], expert);
        const int32_t fewest = *hpl_draft_copies(&l->draft, topology->node[best], expert);
        if (copies < fewest || (copies == fewest && l->loads[d] < l->loads[best])) best = d;
    }
    return best;
}

static void clear(struct laer *l) {
    for (int32_t e = 0; e < l->draft.experts; e++) {
        for (int32_t d = 0; d < l->draft.topology->devices; d++) {
            if (hpl_draft_holds(&l->draft, e, d)) hpl_draft_remove(&l->draft, e, d);
        }
    }
}

// Places copies by their load, descending, from an empty draft. Every expert gets a first copy
// before any gets a second, so that places never run out for one.
static void place_copies(struct laer *l) {
    clear(l);
    hpl_zero_i64(l->loads, l->draft.topology->devices);
    for (int32_t e = 0; e < l->draft.experts; e++) {
        l->weight[e] = HPL_PARTS * l->view.rows[e] / l->count[e];
        l->order[e] = e;
    }
    hpl_order_desc(l->order, l->draft.experts, l->weight);
    for (int32_t i = 0; i < l->draft.experts; i++) {
        const int32_t e = l->order[i];
        for (int32_t c = 0; c < l->count[e]; c++) {
            const int32_t d = device_for(l, e);
            if (d < 0) break;
            hpl_draft_add(&l->draft, e, d);
            l->loads[d] += l->weight[e];
        }
    }
}

// Rows move out and back, forward and backward: four transfers, and a row's three computations
// with one more where activations are recomputed.
static int64_t cost(struct laer *l, const struct hpl_costs *costs) {
    const int64_t compute = hpl_rival_loads(&l->draft, l->view.node_rows, l->loads) / HPL_PARTS;
    const int64_t cross = hpl_rival_cross(&l->draft, l->view.node_rows);
    const int64_t comm = cross / l->draft.topology->devices;
    return hpl_cost(4 * comm, costs->row_send) + hpl_cost(4 * compute, costs->row_compute);
}

enum hpl_status hpl_place_laer(const struct hpl_problem *problem, struct hpl_plan *plan,
                               int64_t *share, struct hpl_work *work) {
    (void)share;
    struct laer l;
    const int32_t experts = problem->experts, devices = problem->topology->devices;
    const int64_t places = (int64_t)devices * hpl_min(problem->budget.slots, experts);
    if (places < experts) return HPL_BAD_ARGUMENT; // Some expert would be nowhere.
    // The draft's owners go first, so that all places are free.
    enum hpl_status status = hpl_rival_begin(&l.draft, problem, 0, work);
    if (status != HPL_OK) return status;
    clear(&l);
    for (int32_t d = 0; d < devices; d++) l.draft.slots_left[d] = (int32_t)(places / devices);
    l.loads = HPL_TAKE(work, devices, int64_t);
    l.weight = HPL_TAKE(work, experts, int64_t);
    l.order = HPL_TAKE(work, experts, int32_t);
    l.count = HPL_TAKE(work, experts, int32_t);
    if (!l.loads || !l.weight || !l.order || !l.count || !hpl_view_take(&l.view, problem, work)) {
        return HPL_NO_ROOM;
    }
    count_proportional(&l, places);
    place_copies(&l);
    const int64_t proportional = cost(&l, &problem->costs);
    if (!count_even(&l, places)) return hpl_draft_finish(&l.draft, plan);
    place_copies(&l);
    if (cost(&l, &problem->costs) > proportional) {
        count_proportional(&l, places);
        place_copies(&l);
    }
    return hpl_draft_finish(&l.draft, plan);
}
