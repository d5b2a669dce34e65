// hecate: algorithm 1 of the paper, sparse materialization (arXiv:2502.02581, section 4.2).
//
// The overlap degree t is the budget's entries, m its slots. The t most loaded experts get
// replicas, in number by their share of the load; nodes that lack the expert come first. After the
// gate the same runs again on the exact counts, with the slots that are left (calibration).
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

struct hecate {
    struct hpl_draft draft;
    struct hpl_view view;
    int32_t *count; // [t] replicas of the i-th heaviest expert
};

static void materialize_everywhere(struct hecate *h, int32_t t) {
    for (int32_t i = 0; i < t; i++) {
        for (int32_t d = 0; d < h->draft.topology->devices; d++) {
            if (hpl_draft_may_add(&h->draft, h->view.heavy[i], d)) {
                hpl_draft_add(&h->draft, h->view.heavy[i], d);
            }
        }
    }
}

// Shares of the slots by largest remainder: at least 1, at most devices - 1, in all no more than
// there are.
static void divide_slots(struct hecate *h, int32_t t, int64_t slots, int32_t devices) {
    int64_t sum = 0, left = slots;
    for (int32_t i = 0; i < t; i++) sum += h->view.rows[h->view.heavy[i]];
    for (int32_t i = 0; i < t; i++) {
        const int64_t rows = h->view.rows[h->view.heavy[i]];
        const int64_t part = sum > 0 ? slots * rows / sum : 0;
        const int64_t wanted = hpl_max(1, hpl_min(part, devices - 1));
        h->count[i] = (int32_t)hpl_min(wanted, hpl_max(0, left));
        left -= h->count[i];
    }
    while (left > 0 && sum > 0) {
        int32_t best = -1;
        int64_t most = 0;
        for (int32_t i = 0; i < t; i++) {
            // The difference of the share and its whole number, times sum.
            const int64_t missing =
                slots * h->view.rows[h->view.heavy[i]] - (int64_t)h->count[i] * sum;
            if (h->count[i] < devices - 1 && missing > most) best = i, most = missing;
        }
        if (best < 0) return;
        h->count[best]++;
        left--;
    }
}

// Free slots of the node on devices that lack the expert.
static int32_t free_slots(const struct hecate *h, int32_t node, int32_t expert) {
    const struct hpl_topology *topology = h->draft.topology;
    int32_t sum = 0;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (!hpl_draft_holds(&h->draft, expert, d)) sum += h->draft.slots_left[d];
    }
    return sum;
}

// One replica: a node that lacks the expert before one that has it, then most free slots; there
// the device with most free slots. False when no device can take it.
static bool place_one(struct hecate *h, int32_t expert) {
    const struct hpl_topology *topology = h->draft.topology;
    int32_t node = -1, most = 0;
    bool node_lacks = false;
    for (int32_t n = 0; n < topology->nodes; n++) {
        const int32_t slots = free_slots(h, n, expert);
        const bool lacks = *hpl_draft_copies(&h->draft, n, expert) == 0;
        if (slots == 0 || (node_lacks && !lacks)) continue;
        if (slots > most || (lacks && !node_lacks)) node = n, most = slots, node_lacks = lacks;
    }
    if (node < 0) return false;
    int32_t best = -1;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (!hpl_draft_may_add(&h->draft, expert, d)) continue;
        if (best < 0 || h->draft.slots_left[d] > h->draft.slots_left[best]) best = d;
    }
    hpl_draft_add(&h->draft, expert, best);
    return true;
}

enum hpl_status hpl_place_hecate(const struct hpl_problem *problem, struct hpl_plan *plan,
                                 int64_t *share, struct hpl_work *work) {
    (void)share;
    struct hecate h;
    const int32_t devices = problem->topology->devices;
    const int32_t t = (int32_t)hpl_min(problem->budget.entries, problem->experts);
    const int32_t m = (int32_t)hpl_min(problem->budget.slots, t);
    struct hpl_problem unlimited = *problem; // The paper limits t, not what enters a node.
    unlimited.budget.slots = m;
    unlimited.budget.entries = problem->experts;
    unlimited.budget.window_bytes = 0;
    const enum hpl_status status = hpl_draft_begin(&h.draft, &unlimited, work);
    if (status != HPL_OK) return status;
    h.count = HPL_TAKE(work, t, int32_t);
    if (!h.count || !hpl_view_take(&h.view, problem, work)) return HPL_NO_ROOM;
    if (t <= m) {
        materialize_everywhere(&h, t);
    } else {
        int64_t slots = 0; // After the gate, those that are left.
        for (int32_t d = 0; d < devices; d++) slots += h.draft.slots_left[d];
        divide_slots(&h, t, slots, devices);
        for (int32_t i = 0; i < t; i++) {
            for (int32_t c = 0; c < h.count[i] && place_one(&h, h.view.heavy[i]); c++) {
            }
        }
    }
    return hpl_draft_finish(&h.draft, plan);
}
