// rivals.c: sums and estimates for the re-implemented policies.
#include "runtime/plan/rivals.h"

#include "runtime/plan/order.h"
#include "runtime/plan/tally.h"

bool hpl_view_take(struct hpl_view *view, const struct hpl_problem *problem,
                   struct hpl_work *work) {
    const int32_t experts = problem->experts, nodes = problem->topology->nodes;
    view->node_rows = HPL_TAKE(work, (int64_t)nodes * experts, uint32_t);
    view->rows = HPL_TAKE(work, experts, int64_t);
    view->heavy = HPL_TAKE(work, experts, int32_t);
    if (!view->node_rows || !view->rows || !view->heavy) return false;
    hpl_tally_nodes(problem->topology, problem->loads, view->node_rows);
    hpl_tally_experts(view->node_rows, nodes, experts, view->rows);
    view->sum = 0;
    for (int32_t e = 0; e < experts; e++) {
        view->sum += view->rows[e];
        view->heavy[e] = e;
    }
    hpl_order_desc(view->heavy, experts, view->rows);
    return true;
}

enum hpl_status hpl_rival_begin(struct hpl_draft *draft, const struct hpl_problem *problem,
                                int32_t slots, struct hpl_work *work) {
    struct hpl_problem bare = *problem;
    bare.present = NULL;
    bare.budget.slots = slots;
    bare.budget.entries = problem->experts;
    bare.budget.window_bytes = 0;
    return hpl_draft_begin(draft, &bare, work);
}

int64_t hpl_rival_loads(const struct hpl_draft *draft, const uint32_t *node_rows, int64_t *loads) {
    const struct hpl_topology *topology = draft->topology;
    hpl_zero_i64(loads, topology->devices);
    for (int32_t e = 0; e < draft->experts; e++) {
        int64_t homeless = 0, all = 0;
        for (int32_t n = 0; n < topology->nodes; n++) {
            const int64_t rows = node_rows[(int64_t)n * draft->experts + e];
            const int32_t copies = *hpl_draft_copies(draft, n, e);
            all += copies;
            if (copies == 0) homeless += rows;
        }
        for (int32_t d = 0; d < topology->devices; d++) {
            if (!hpl_draft_holds(draft, e, d)) continue;
            const int32_t n = topology->node[d];
            const int64_t rows = node_rows[(int64_t)n * draft->experts + e];
            loads[d] += HPL_PARTS * rows / *hpl_draft_copies(draft, n, e);
            loads[d] += HPL_PARTS * homeless / all;
        }
    }
    int64_t worst = 0;
    for (int32_t d = 0; d < topology->devices; d++) {
        worst = hpl_max(worst, loads[d] / topology->speed[d]);
    }
    return worst;
}

int64_t hpl_rival_cross(const struct hpl_draft *draft, const uint32_t *node_rows) {
    int64_t sum = 0;
    for (int32_t n = 0; n < draft->topology->nodes; n++) {
        for (int32_t e = 0; e < draft->experts; e++) {
            if (*hpl_draft_copies(draft, n, e) == 0) {
                sum += node_rows[(int64_t)n * draft->experts + e];
            }
        }
    }
    return sum;
}

enum hpl_status hpl_rival_pieces(const struct hpl_problem *problem, const int64_t *pieces,
                                 struct hpl_plan *plan, int64_t *share) {
    const int32_t devices = problem->topology->devices;
    int32_t holders = 0;
    plan->experts = problem->experts;
    for (int32_t e = 0; e < problem->experts; e++) {
        plan->first[e] = holders;
        for (int32_t d = 0; d < devices; d++) {
            const int64_t rows = pieces[(int64_t)e * devices + d];
            if (rows == 0 && problem->owner[e] != d) continue;
            if (holders == plan->capacity) return HPL_NO_ROOM;
            share[holders] = rows;
            plan->holder[holders++] = d;
        }
    }
    plan->first[problem->experts] = holders;
    return HPL_OK;
}
