// edp: expert parallelism inside nodes, data parallelism across them. Every node gets every expert, as far as slots
// reach those that most of its rows ask for, so rows stay in their node. Its heaviest experts come first, each onto the
// device that has fewest rows.
#include "runtime/plan/order.h"
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

struct edp {
    struct hpl_draft draft;
    struct hpl_view view;
    int64_t *rows;  // [experts] of one node
    int32_t *order; // [experts] most of them first
    int64_t *load;  // [devices] rows of its node's
};

// The device of the node that has fewest rows for its speed among those with a slot; -1: there is none.
static int32_t device_for(const struct edp *p, int32_t node, int32_t expert) {
    const struct hpl_topology *topology = p->draft.topology;
    int32_t best = -1;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (!hpl_draft_may_add(&p->draft, expert, d)) continue;
        if (best < 0 || p->load[d] * topology->speed[best] < p->load[best] * topology->speed[d])
            best = d;
    }
    return best;
}

static void fill_node(struct edp *p, int32_t node, const int32_t *owner) {
    const struct hpl_topology *topology = p->draft.topology;
    const int32_t experts = p->draft.experts;
    for (int32_t e = 0; e < experts; e++) {
        p->rows[e] = p->view.node_rows[(int64_t)node * experts + e];
        p->order[e] = e;
        if (topology->node[owner[e]] == node) p->load[owner[e]] += p->rows[e];
    }
    hpl_order_desc(p->order, experts, p->rows);
    for (int32_t i = 0; i < experts; i++) {
        const int32_t e = p->order[i];
        if (topology->node[owner[e]] == node) continue;
        const int32_t d = device_for(p, node, e);
        if (d < 0) return;
        hpl_draft_add(&p->draft, e, d);
        p->load[d] += p->rows[e];
    }
}

enum hpl_status hpl_place_edp(const struct hpl_problem *problem, struct hpl_plan *plan,
                              int64_t *share, struct hpl_work *work) {
    (void)share;
    struct edp p;
    const enum hpl_status status = hpl_rival_begin(&p.draft, problem, problem->budget.slots, work);
    if (status != HPL_OK) return status;
    p.rows = HPL_TAKE(work, problem->experts, int64_t);
    p.order = HPL_TAKE(work, problem->experts, int32_t);
    p.load = HPL_TAKE(work, problem->topology->devices, int64_t);
    if (!p.rows || !p.order || !p.load || !hpl_view_take(&p.view, problem, work))
        return HPL_NO_ROOM;
    hpl_zero_i64(p.load, problem->topology->devices);
    for (int32_t n = 0; n < problem->topology->nodes; n++) fill_node(&p, n, problem->owner);
    return hpl_draft_finish(&p.draft, plan);
}
