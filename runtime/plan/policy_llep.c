// llep: rows beyond a cap spill, with their expert's parameters, to the least loaded devices
// (arXiv:2601.17111). On exact counts, after the gate; no topology.
#include "runtime/plan/policies.h"
#include "runtime/plan/rivals.h"

enum { ALPHA = 1100, LAMBDA = 1300, PIECE_MIN = 1024 }; // Thousandths; rows.

struct llep {
    struct hpl_view view;
    int64_t *taken;   // [devices] rows assigned
    int64_t *waiting; // [devices] rows of own experts not yet assigned
    int64_t *cap;     // [devices]
    int64_t *piece;   // [devices] of the present expert
};

static int64_t load(const struct llep *l, int32_t device) {
    return l->taken[device] + l->waiting[device];
}

// The least loaded device with room; when there is none, the least loaded of all.
static int32_t lightest(const struct llep *l, int32_t devices, bool with_room) {
    int32_t best = -1;
    for (int32_t d = 0; d < devices; d++) {
        if (with_room && load(l, d) >= l->cap[d]) continue;
        // Compared by load over cap, which is load over speed.
        if (best < 0 || load(l, d) * l->cap[best] < load(l, best) * l->cap[d]) best = d;
    }
    return best;
}

// Divides one expert's rows: home first, under its cap; the rest in pieces.
static void divide(struct llep *l, int32_t home, int64_t rows, int32_t devices) {
    hpl_zero_i64(l->piece, devices);
    l->waiting[home] -= rows;
    const int64_t own = hpl_min(rows, hpl_max(0, l->cap[home] - load(l, home)));
    l->piece[home] = own;
    l->taken[home] += own;
    for (int64_t rest = rows - own; rest > 0;) {
        int32_t to = lightest(l, devices, true);
        int64_t piece = to < 0 ? rest : hpl_min(rest, l->cap[to] - load(l, to));
        if (to < 0)
            to = lightest(l, devices, false);
        else if (piece < PIECE_MIN)
            piece = hpl_min(rest, PIECE_MIN);
        l->piece[to] += piece;
        l->taken[to] += piece;
        rest -= piece;
    }
}

static bool is_balanced(const struct llep *l, const struct hpl_topology *topology, int64_t speed) {
    for (int32_t d = 0; d < topology->devices; d++) {
        if (1000 * l->waiting[d] * speed >= LAMBDA * l->view.sum * topology->speed[d]) return false;
    }
    return true;
}

enum hpl_status hpl_place_llep(const struct hpl_problem *problem, struct hpl_plan *plan,
                               int64_t *share, struct hpl_work *work) {
    const struct hpl_topology *topology = problem->topology;
    const int32_t experts = problem->experts, devices = topology->devices;
    struct llep l = {
        .taken = HPL_TAKE(work, devices, int64_t),
        .waiting = HPL_TAKE(work, devices, int64_t),
        .cap = HPL_TAKE(work, devices, int64_t),
        .piece = HPL_TAKE(work, devices, int64_t),
    };
    int64_t *pieces = HPL_TAKE(work, (int64_t)experts * devices, int64_t);
    if (!l.taken || !l.waiting || !l.cap || !l.piece || !pieces) return HPL_NO_ROOM;
    if (!hpl_view_take(&l.view, problem, work)) return HPL_NO_ROOM;
    int64_t speed = 0;
    for (int32_t d = 0; d < devices; d++) speed += topology->speed[d];
    hpl_zero_i64(l.taken, devices);
    hpl_zero_i64(l.waiting, devices);
    for (int32_t d = 0; d < devices; d++) {
        l.cap[d] = hpl_max(1, ALPHA * l.view.sum * topology->speed[d] / (1000 * speed));
    }
    for (int32_t e = 0; e < experts; e++) l.waiting[problem->owner[e]] += l.view.rows[e];
    const bool balanced = is_balanced(&l, topology, speed);
    for (int32_t i = 0; i < experts; i++) {
        const int32_t e = l.view.heavy[i];
        if (balanced) {
            hpl_zero_i64(l.piece, devices);
            l.piece[problem->owner[e]] = l.view.rows[e];
        } else {
            divide(&l, problem->owner[e], l.view.rows[e], devices);
        }
        for (int32_t d = 0; d < devices; d++) pieces[(int64_t)e * devices + d] = l.piece[d];
    }
    return hpl_rival_pieces(problem, pieces, plan, share);
}
