// fastermoe: shadows the most loaded experts on all devices while a model of time says it pays
// (He et al., PPoPP 2022). After the gate, on the critical path.
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

// How many of the heaviest experts are shadowed. A row costs three computations (forward, and two
// products in backward) and four transfers; a shadow is sent, and its gradient comes back.
static int32_t count_shadows(const struct hpl_view *view, int32_t experts,
                             const struct hpl_costs *costs) {
    const int64_t row = 3 * costs->row_compute + 4 * costs->row_send;
    int64_t base = hpl_cost(view->rows[view->heavy[0]], row), shadow = 0;
    int32_t count = 0;
    for (; count + 1 < experts; count++) {
        shadow += 2 * costs->chunk_send;
        const int64_t next = hpl_cost(view->rows[view->heavy[count + 1]], row) + shadow;
        if (next >= base) break;
        base = next;
    }
    return count;
}

enum hpl_status hpl_place_fastermoe(const struct hpl_problem *problem, struct hpl_plan *plan,
                                    int64_t *share, struct hpl_work *work) {
    (void)share;
    struct hpl_draft draft;
    struct hpl_view view;
    const enum hpl_status status = hpl_rival_begin(&draft, problem, problem->experts, work);
    if (status != HPL_OK) return status;
    if (!hpl_view_take(&view, problem, work)) return HPL_NO_ROOM;
    const int32_t shadows = count_shadows(&view, problem->experts, &problem->costs);
    for (int32_t i = 0; i < shadows; i++) {
        for (int32_t d = 0; d < problem->topology->devices; d++) {
            if (!hpl_draft_holds(&draft, view.heavy[i], d)) hpl_draft_add(&draft, view.heavy[i], d);
        }
    }
    return hpl_draft_finish(&draft, plan);
}
