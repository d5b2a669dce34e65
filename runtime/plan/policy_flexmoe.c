// flexmoe: expands hot experts, shrinks cold ones, migrates where devices clash, a few rounds at a
// time (Nie et al., SIGMOD 2023). Periodic; a copy brings its optimizer states along.
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

enum { ROUNDS = 10 };

struct flexmoe {
    struct hpl_draft draft;
    struct hpl_view view;
    int64_t *loads; // [devices]
    int32_t *log;   // [6 * nodes] expert, device, +1 or -1 of this round's changes
    int32_t log_count;
};

static void change(struct flexmoe *f, int32_t expert, int32_t device, bool add) {
    if (add)
        hpl_draft_add(&f->draft, expert, device);
    else
        hpl_draft_remove(&f->draft, expert, device);
}

static void note(struct flexmoe *f, int32_t expert, int32_t device, bool add) {
    change(f, expert, device, add);
    f->log[f->log_count++] = expert;
    f->log[f->log_count++] = device;
    f->log[f->log_count++] = add;
}

static int64_t per_copy(const struct flexmoe *f, int32_t expert) {
    int64_t copies = 0;
    for (int32_t n = 0; n < f->draft.topology->nodes; n++) {
        copies += *hpl_draft_copies(&f->draft, n, expert);
    }
    return HPL_PARTS * f->view.rows[expert] / copies;
}

// The least loaded device of the node that lacks the expert and has a free slot; -1 for none.
static int32_t free_device(const struct flexmoe *f, int32_t node, int32_t expert) {
    const struct hpl_topology *topology = f->draft.topology;
    int32_t best = -1;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (!hpl_draft_may_add(&f->draft, expert, d)) continue;
        if (best < 0 || f->loads[d] < f->loads[best]) best = d;
    }
    return best;
}

// A copy that may go: of the expert with least load per copy that has another copy on the node.
static int32_t coldest(const struct flexmoe *f, int32_t node, int32_t not_this) {
    int32_t best = -1;
    for (int32_t e = 0; e < f->draft.experts; e++) {
        if (e == not_this || *hpl_draft_copies(&f->draft, node, e) < 2) continue;
        if (best < 0 || per_copy(f, e) < per_copy(f, best)) best = e;
    }
    return best;
}

static int32_t busiest_holder(const struct flexmoe *f, int32_t node, int32_t expert) {
    const struct hpl_topology *topology = f->draft.topology;
    int32_t best = -1;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (!hpl_draft_holds(&f->draft, expert, d)) continue;
        if (best < 0 || f->loads[d] > f->loads[best]) best = d;
    }
    return best;
}

// The place freed on `device` cannot take `hot`, which is there already: a third expert moves in
// from the least loaded device of the node that lacks `hot`, and `hot` takes its place there.
static bool swap_third(struct flexmoe *f, int32_t node, int32_t device, int32_t hot) {
    const struct hpl_topology *topology = f->draft.topology;
    int32_t from = -1;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (hpl_draft_holds(&f->draft, hot, d)) continue;
        if (from < 0 || f->loads[d] < f->loads[from]) from = d;
    }
    for (int32_t e = 0; from >= 0 && e < f->draft.experts; e++) {
        if (!hpl_draft_holds(&f->draft, e, from) || hpl_draft_holds(&f->draft, e, device)) continue;
        note(f, e, from, false);
        note(f, e, device, true);
        note(f, hot, from, true);
        return true;
    }
    return false;
}

// One node: a copy more of the expert with most load per copy, in a free slot if there is one.
static void expand(struct flexmoe *f, int32_t node) {
    int32_t hot = 0;
    for (int32_t e = 1; e < f->draft.experts; e++) {
        if (per_copy(f, e) > per_copy(f, hot)) hot = e;
    }
    const int32_t open = free_device(f, node, hot);
    if (open >= 0) {
        note(f, hot, open, true);
        return;
    }
    const int32_t cold = coldest(f, node, hot);
    if (cold < 0) return;
    const int32_t device = busiest_holder(f, node, cold);
    note(f, cold, device, false);
    if (!hpl_draft_holds(&f->draft, hot, device))
        note(f, hot, device, true);
    else
        swap_third(f, node, device, hot);
}

static void undo_round(struct flexmoe *f) {
    for (; f->log_count > 0; f->log_count -= 3) {
        const int32_t *last = f->log + f->log_count - 3;
        change(f, last[0], last[1], !last[2]);
    }
}

// The placement to change: the present one, whose copies may have left their first owners.
static enum hpl_status begin(struct flexmoe *f, const struct hpl_problem *problem,
                             struct hpl_work *work) {
    const enum hpl_status status = hpl_rival_begin(&f->draft, problem, problem->budget.slots, work);
    if (status != HPL_OK || !problem->present) return status;
    for (int32_t e = 0; e < problem->experts; e++) {
        hpl_draft_remove(&f->draft, e, problem->owner[e]);
    }
    for (int32_t e = 0; e < problem->experts; e++) {
        for (int32_t k = problem->present->first[e]; k < problem->present->first[e + 1]; k++) {
            if (!hpl_draft_may_add(&f->draft, e, problem->present->holder[k])) {
                return HPL_BAD_ARGUMENT;
            }
            hpl_draft_add(&f->draft, e, problem->present->holder[k]);
        }
    }
    return HPL_OK;
}

enum hpl_status hpl_place_flexmoe(const struct hpl_problem *problem, struct hpl_plan *plan,
                                  int64_t *share, struct hpl_work *work) {
    (void)share;
    struct flexmoe f = {0};
    const enum hpl_status status = begin(&f, problem, work);
    if (status != HPL_OK) return status;
    const int32_t nodes = problem->topology->nodes;
    f.loads = HPL_TAKE(work, problem->topology->devices, int64_t);
    f.log = HPL_TAKE(work, 12 * (int64_t)nodes, int32_t); // At most four changes a node.
    if (!f.loads || !f.log || !hpl_view_take(&f.view, problem, work)) return HPL_NO_ROOM;
    int64_t worst = hpl_rival_loads(&f.draft, f.view.node_rows, f.loads);
    int64_t cross = hpl_rival_cross(&f.draft, f.view.node_rows);
    for (int32_t round = 0; round < ROUNDS; round++) {
        f.log_count = 0;
        for (int32_t n = 0; n < nodes; n++) expand(&f, n);
        const int64_t now = hpl_rival_loads(&f.draft, f.view.node_rows, f.loads);
        const int64_t now_cross = hpl_rival_cross(&f.draft, f.view.node_rows);
        if (now >= worst && now_cross >= cross) {
            undo_round(&f);
            break;
        }
        worst = now;
        cross = now_cross;
    }
    return hpl_draft_finish(&f.draft, plan);
}
