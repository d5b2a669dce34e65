// ultraep: the least cap at which every device's excess fits into the slack and slots of others of its
// node (arXiv:2606.04101, re-implemented from a description): replicas travel inside nodes alone. Exact
// counts, in every microbatch.
#include "runtime/plan/order.h"
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

// The source gives no piece below 1,024 rows; on recorded microbatches of 4,096 rows a device that
// forbids most pieces (docs/planner.md has both figures), so any piece may go.
enum { PIECE_MIN = 1, CAP_ROUNDS = 12 };

struct ultraep {
    const struct hpl_problem *problem;
    struct hpl_view view;
    int64_t *own;    // [devices] rows of the owner's experts
    int64_t *load;   // [devices]
    int32_t *slots;  // [devices] left
    int32_t *order;  // [devices] most own rows first
    int64_t *pieces; // [experts][devices]
};

static int64_t cap_of(const struct ultraep *u, struct hpl_level level, int32_t device) {
    return (int64_t)((__int128)level.num * u->problem->topology->speed[device] / level.den);
}

// The device of the owner's node with most slack that can take a replica of the expert.
static int32_t slackest(const struct ultraep *u, struct hpl_level level, int32_t expert) {
    const struct hpl_topology *topology = u->problem->topology;
    const int32_t devices = topology->devices, node = topology->node[u->problem->owner[expert]];
    int32_t best = -1;
    int64_t most = 0;
    for (int32_t d = topology->first[node]; d < topology->first[node + 1]; d++) {
        if (u->slots[d] == 0 || u->pieces[(int64_t)expert * devices + d] > 0) continue;
        const int64_t slack = cap_of(u, level, d) - u->load[d];
        if (slack > most) best = d, most = slack;
    }
    return best;
}

// Sheds a device's excess, its heaviest experts first. False when some excess remains.
static bool shed(struct ultraep *u, struct hpl_level level, int32_t device) {
    const int32_t devices = u->problem->topology->devices;
    int64_t excess = u->load[device] - cap_of(u, level, device);
    for (int32_t i = 0; i < u->problem->experts && excess > 0; i++) {
        const int32_t e = u->view.heavy[i];
        if (u->problem->owner[e] != device) continue;
        int64_t *pieces = u->pieces + (int64_t)e * devices;
        while (excess > 0) {
            const int32_t to = slackest(u, level, e);
            if (to < 0) break;
            const int64_t slack = cap_of(u, level, to) - u->load[to];
            const int64_t piece = hpl_min(hpl_min(excess, slack), pieces[device]);
            if (piece < PIECE_MIN) break;
            pieces[to] = piece;
            pieces[device] -= piece;
            u->load[to] += piece;
            u->load[device] -= piece;
            u->slots[to]--;
            excess -= piece;
        }
    }
    return excess <= 0;
}

static bool fits(struct ultraep *u, struct hpl_level level) {
    const int32_t devices = u->problem->topology->devices;
    hpl_zero_i64(u->pieces, (int64_t)u->problem->experts * devices);
    for (int32_t e = 0; e < u->problem->experts; e++) {
        u->pieces[(int64_t)e * devices + u->problem->owner[e]] = u->view.rows[e];
    }
    for (int32_t d = 0; d < devices; d++) {
        u->load[d] = u->own[d];
        u->slots[d] = u->problem->budget.slots;
    }
    bool all = true;
    for (int32_t i = 0; i < devices; i++) all = shed(u, level, u->order[i]) && all;
    return all;
}

enum hpl_status hpl_place_ultraep(const struct hpl_problem *problem, struct hpl_plan *plan,
                                  int64_t *share, struct hpl_work *work) {
    const int32_t experts = problem->experts, devices = problem->topology->devices;
    struct ultraep u = {
        .problem = problem,
        .own = HPL_TAKE(work, devices, int64_t),
        .load = HPL_TAKE(work, devices, int64_t),
        .slots = HPL_TAKE(work, devices, int32_t),
        .order = HPL_TAKE(work, devices, int32_t),
        .pieces = HPL_TAKE(work, (int64_t)experts * devices, int64_t),
    };
    if (!u.own || !u.load || !u.slots || !u.order || !u.pieces) return HPL_NO_ROOM;
    if (!hpl_view_take(&u.view, problem, work)) return HPL_NO_ROOM;
    int64_t speed = 0, worst = 0;
    hpl_zero_i64(u.own, devices);
    for (int32_t e = 0; e < experts; e++) u.own[problem->owner[e]] += u.view.rows[e];
    for (int32_t d = 0; d < devices; d++) {
        u.order[d] = d;
        speed += problem->topology->speed[d];
        worst = hpl_max(worst, u.own[d] / problem->topology->speed[d] + 1);
    }
    hpl_order_desc(u.order, devices, u.own);
    struct hpl_level low = {u.view.sum, speed}, high = {hpl_max(worst, 1) * speed, speed};
    for (int32_t i = 0; i < CAP_ROUNDS; i++) {
        const struct hpl_level middle = {(low.num + high.num) / 2, speed};
        if (fits(&u, middle))
            high = middle;
        else
            low = middle;
    }
    fits(&u, high);
    return hpl_rival_pieces(problem, u.pieces, plan, share);
}
