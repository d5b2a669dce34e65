// quota_mend.c: step 5 of policy fssdp, for budgets so tight that packing exceeds the level.
//
// A live flow of the draft names the devices that are full for any shares and the experts that have holders nowhere
// else, on one side, and on the other those from which a device with room can be reached. Only one more holder on the
// other side helps. It takes an empty slot, or that of a replica that no longer serves: one without rows, or whose
// rows have room elsewhere. The flow is resumed after each change, not solved anew. All searches are counted in
// steps, so the time is bounded, and the best plan so far is kept.
#include "runtime/plan/live_flow.h"
#include "runtime/plan/order.h"
#include "runtime/plan/quota.h"
#include "runtime/plan/tally.h"

enum {
    STEPS = 100,         // For each place, expert and device, and
    STEPS_MORE = 500000, // for all.
    VAIN = 8,            // Changes in turn that save nothing, before devices are listed anew,
    VAIN_EVERY = 32,     // and before a level is given up.
    ROUNDS = 5,          // Levels that are tried.
};

struct mend {
    struct hpl_quota *q;
    struct hpl_live flow;
    int64_t limit;  // Steps at most.
    int64_t until;  // At the present level.
    bool *fixed;    // [places] owners, and replicas that were there before
    int32_t *place; // [devices] where one more expert would stand
    int32_t *order; // [devices] by the rows that those could take
    int32_t *tried; // [devices] the last expert that was put there in vain
    int64_t *near;  // [experts] room on all devices of an expert
    int32_t *best;  // [places] experts of the best plan
    struct hpl_level best_level;
};

static bool is_lower(struct hpl_level a, struct hpl_level b) {
    return (__int128)a.num * b.den < (__int128)b.num * a.den;
}

// One place for each holder and each slot that is left, device by device.
static void list_places(struct mend *m) {
    const struct hpl_problem *problem = m->q->problem;
    const struct hpl_draft *draft = &m->q->draft;
    const struct hpl_plan *present = problem->present;
    struct hpl_live *f = &m->flow;
    hpl_zero_i32(f->first, f->devices + 1);
    for (int32_t d = 0; d < f->devices; d++) f->first[d + 1] = draft->slots_left[d];
    for (int32_t e = 0; e < f->experts; e++) {
        for (int32_t w = 0; w < draft->words; w++) {
            uint64_t set = draft->held[(int64_t)e * draft->words + w];
            for (; set != 0; set &= set - 1) f->first[w * 64 + __builtin_ctzll(set) + 1]++;
        }
    }
    for (int32_t d = 0; d < f->devices; d++) f->first[d + 1] += f->first[d];
    int32_t *at = f->queue; // Serves until the first search.
    for (int32_t d = 0; d < f->devices; d++) at[d] = f->first[d];
    for (int32_t e = 0; e < f->experts; e++) {
        int32_t k = present ? present->first[e] : 0;
        const int32_t end = present ? present->first[e + 1] : 0;
        for (int32_t w = 0; w < draft->words; w++) {
            uint64_t set = draft->held[(int64_t)e * draft->words + w];
            for (; set != 0; set &= set - 1) {
                const int32_t d = w * 64 + __builtin_ctzll(set), p = at[d]++;
                while (k < end && present->holder[k] < d) k++; // Both ascend.
                f->expert[p] = e;
                m->fixed[p] = problem->owner[e] == d || (k < end && present->holder[k] == d);
            }
        }
    }
    for (int32_t d = 0; d < f->devices; d++) {
        for (; at[d] < f->first[d + 1]; at[d]++) {
            f->expert[at[d]] = -1;
            m->fixed[at[d]] = false;
        }
        for (int32_t p = f->first[d]; p < f->first[d + 1]; p++) f->device[p] = d;
    }
}

// Begins with the rows that each node is to compute, about as many on each of an expert's devices there: so a replica
// without rows is one that no node needs.
static void place_rows(struct mend *m) {
    const struct hpl_topology *topology = m->q->problem->topology;
    struct hpl_quota *q = m->q;
    struct hpl_live *f = &m->flow;
    for (int32_t e = 0; e < f->experts; e++) q->rest[e] = 0;
    for (int32_t n = 0; n < topology->nodes; n++) {
        for (int32_t i = q->node_first[n]; i < q->node_first[n + 1]; i++) {
            q->rest[q->item[i]] = q->item_rows[i];
            q->ids[q->item[i]] = *hpl_draft_copies(&q->draft, n, q->item[i]);
        }
        for (int32_t p = f->first[topology->first[n]]; p < f->first[topology->first[n + 1]]; p++) {
            const int32_t e = f->expert[p];
            if (e < 0 || q->rest[e] == 0) continue;
            const int64_t part = (q->rest[e] + q->ids[e] - 1) / q->ids[e];
            const int64_t rows = hpl_min(part, f->room[f->device[p]]);
            q->ids[e]--;
            q->rest[e] -= rows;
            hpl_live_put(f, p, rows);
        }
        for (int32_t i = q->node_first[n]; i < q->node_first[n + 1]; i++) q->rest[q->item[i]] = 0;
    }
}

// Changes the draft and the flow.
static void replace(struct mend *m, int32_t place, int32_t expert) {
    struct hpl_draft *draft = &m->q->draft;
    const int32_t out = m->flow.expert[place], d = m->flow.device[place];
    if (out >= 0) hpl_draft_remove(draft, out, d);
    if (expert >= 0) hpl_draft_add(draft, expert, d);
    hpl_live_replace(&m->flow, place, expert);
}

// Whether the expert may stand in the place of the one that is there: an entry may be needed, and may be given back.
static bool may_replace(const struct mend *m, int32_t place, int32_t expert) {
    const struct hpl_draft *draft = &m->q->draft;
    const int32_t d = m->flow.device[place], n = draft->topology->node[d];
    const int32_t out = m->flow.expert[place];
    if (hpl_draft_holds(draft, expert, d)) return false;
    if (*hpl_draft_copies(draft, n, expert) > 0 || draft->entries_left[n] > 0) return true;
    return out >= 0 && *hpl_draft_copies(draft, n, out) == 1 &&
           draft->topology->node[m->q->problem->owner[out]] != n;
}

// ---- where one more expert helps

// Sets `near` to the room on all devices of each expert.
static void sum_room(struct mend *m) {
    const struct hpl_live *f = &m->flow;
    hpl_zero_i64(m->near, f->experts);
    for (int32_t p = 0; p < f->places; p++) {
        if (f->expert[p] >= 0) m->near[f->expert[p]] += f->room[f->device[p]];
    }
    m->flow.steps += f->places;
}

// Rows that leave the node if the replica goes: those of its last copy there.
static int64_t leaves(const struct mend *m, int32_t place) {
    const struct hpl_quota *q = m->q;
    const int32_t e = m->flow.expert[place];
    const int32_t n = q->problem->topology->node[m->flow.device[place]];
    if (e < 0 || *hpl_draft_copies(&q->draft, n, e) > 1) return 0;
    return q->node_rows[(int64_t)n * q->problem->experts + e];
}

// The place of a device whose replica is missed least, and in q->room the rows that the device can then take: its
// room, and rows that have room elsewhere. 0: none.
static void look_at(struct mend *m, int32_t device) {
    const struct hpl_live *f = &m->flow;
    int64_t rows = f->room[device], least = INT64_MAX, least_leaves = 0;
    int32_t best = -1;
    for (int32_t p = f->first[device]; p < f->first[device + 1]; p++) {
        const int64_t here = f->share[p];
        const int64_t moves = here > 0 ? hpl_min(here, m->near[f->expert[p]] - f->room[device]) : 0;
        rows += moves;
        if (m->fixed[p] || here - moves > least) continue;
        const int64_t gone = leaves(m, p);
        if (here - moves == least && gone >= least_leaves) continue;
        least = here - moves, least_leaves = gone, best = p;
    }
    m->flow.steps += f->first[device + 1] - f->first[device];
    m->place[device] = best;
    m->q->room[device] = best < 0 ? 0 : hpl_max(rows, least == 0);
}

// Lists devices from which room can be reached, those that can take most first. Returns how many they are.
static int32_t list_devices(struct mend *m) {
    const struct hpl_live *f = &m->flow;
    int32_t count = 0;
    hpl_live_find_open(&m->flow);
    sum_room(m);
    for (int32_t d = 0; d < f->devices; d++) {
        if (!f->open[f->experts + d]) continue;
        look_at(m, d);
        m->tried[d] = -1;
        if (m->q->room[d] > 0) m->order[count++] = d;
    }
    hpl_order_desc(m->order, count, m->q->room);
    return count;
}

// Rows that stay in the node of a device if the expert comes there, as the node's import.
static int64_t stays(const struct mend *m, int32_t device, int32_t expert) {
    const struct hpl_quota *q = m->q;
    const int32_t n = q->problem->topology->node[device];
    const int32_t *import = q->import + (int64_t)n * q->import_limit;
    if (*hpl_draft_copies(&q->draft, n, expert) > 0) return 0;
    int32_t i = 0;
    while (i < q->imports[n] && import[i] != expert) i++;
    return i == q->imports[n] ? 0 : q->node_rows[(int64_t)n * q->problem->experts + expert];
}

// The device for so many rows of the expert; -1: none. If some take them all, the one in whose node most rows stay,
// then the one that they fill best; else the one that takes most.
static int32_t best_fit(struct mend *m, int32_t devices, int32_t expert, int64_t rows) {
    int32_t fit = -1;
    int64_t most = -1;
    for (int32_t i = 0; i < devices; i++) {
        const int32_t d = m->order[i];
        if (fit >= 0 && m->q->room[d] < rows) break;
        m->flow.steps++;
        const bool open = m->q->room[d] > 0 && m->tried[d] != expert;
        if (!open || !may_replace(m, m->place[d], expert)) continue;
        const int64_t here = stays(m, d, expert);
        if (here >= most) fit = d, most = here;
    }
    return fit;
}

// ---- changes

// Places rows of an expert on its devices that have room.
static void place_left(struct mend *m, int32_t expert) {
    struct hpl_live *f = &m->flow;
    for (int32_t p = f->head[expert]; p >= 0 && f->left[expert] > 0; p = f->next[p]) {
        f->steps++;
        hpl_live_put(f, p, hpl_min(f->left[expert], f->room[f->device[p]]));
    }
}

// One more holder of `in`. False: no row is saved, and all is as before. Searches only where rooms at hand do not save
// half of what is hoped for.
static bool add_holder(struct mend *m, int32_t in, int32_t device) {
    struct hpl_live *f = &m->flow;
    const int32_t place = m->place[device], out = f->expert[place];
    const int64_t before = f->all_left, hope = hpl_min(f->left[in], m->q->room[device]);
    replace(m, place, in);
    if (out >= 0) place_left(m, out);
    hpl_live_put(f, place, hpl_min(f->left[in], f->room[device]));
    if (hope > 0 && before - f->all_left >= hope / 2 && f->all_left < before) return true;
    if (hope > 0) {
        hpl_live_run_expert(f, in);
        if (out >= 0) hpl_live_run_expert(f, out);
    } else {
        hpl_live_run(f);
    }
    if (f->all_left < before) return true;
    replace(m, place, out);
    hpl_live_run(f);
    return false;
}

// The experts that get holders, and on which devices.
enum which {
    LEFT,  // With rows left over, on devices not yet tried in vain.
    FULL,  // With rows on full devices, too.
    EVERY, // The same, all pairs.
};

// Sets q->rest to the rows for which experts could use another holder: those left over, or any on full devices.
static void count_rows(struct mend *m, enum which which) {
    const struct hpl_live *f = &m->flow;
    for (int32_t e = 0; e < f->experts; e++) {
        const bool full = which != LEFT && f->depth[e] >= 0;
        m->q->rest[e] = full ? hpl_min(f->rows[e], f->all_left) : f->left[e];
    }
}

// The expert with most such rows; -1: none.
static int32_t neediest(struct mend *m, enum which which) {
    const struct hpl_live *f = &m->flow;
    int64_t *rows = m->q->rest;
    int32_t best = -1;
    for (int32_t e = 0; e < f->experts; e++) {
        if (which == LEFT) rows[e] = hpl_min(rows[e], f->left[e]);
        if (rows[e] > (best < 0 ? 0 : rows[best])) best = e;
    }
    m->flow.steps += f->experts;
    return best;
}

// More holders, for the experts that need them most first. False: none helps.
static bool add_holders(struct mend *m, enum which which) {
    struct hpl_live *f = &m->flow;
    if (hpl_live_run(f)) return true;
    const int32_t devices = list_devices(m), most = which == EVERY ? VAIN_EVERY : VAIN;
    bool any = false;
    count_rows(m, which);
    for (int32_t vain = 0; vain < most && f->all_left > 0 && f->steps < m->until;) {
        const int32_t in = neediest(m, which);
        if (in < 0) break;
        const int32_t d = best_fit(m, devices, in, m->q->rest[in]);
        if (d < 0) { // No device for this one.
            m->q->rest[in] = 0;
            continue;
        }
        const bool better = add_holder(m, in, d);
        any = any || better;
        vain = better ? 0 : vain + 1;
        m->tried[d] = in;
        if (better || which != EVERY) m->q->room[d] = 0; // It has had its turn.
    }
    return any;
}

// Changes holders until all rows have a place at the flow's level. False: they have not.
static bool mend_at_level(struct mend *m) {
    struct hpl_live *f = &m->flow;
    while (!hpl_live_run(f)) {
        if (f->steps >= m->until) return false;
        if (!add_holders(m, LEFT) && !add_holders(m, FULL) && !add_holders(m, EVERY)) return false;
    }
    return true;
}

static void keep_best(struct mend *m) {
    m->best_level = m->flow.level;
    for (int32_t p = 0; p < m->flow.places; p++) m->best[p] = m->flow.expert[p];
}

// Back to the best plan: first out, then in, so that entries suffice.
static void restore_best(struct mend *m) {
    struct hpl_live *f = &m->flow;
    for (int32_t p = 0; p < f->places; p++) {
        if (f->expert[p] != m->best[p] && f->expert[p] >= 0) replace(m, p, -1);
    }
    for (int32_t p = 0; p < f->places; p++) {
        if (f->expert[p] != m->best[p]) replace(m, p, m->best[p]);
    }
}

// Halfway, in parts of 2^20.
static struct hpl_level halfway(struct hpl_level a, struct hpl_level b) {
    const int64_t low = (int64_t)(((__int128)a.num << 20) / a.den);
    const int64_t high = (int64_t)(((__int128)b.num << 20) / b.den);
    return (struct hpl_level){(low + high) / 2, 1 << 20};
}

// Tries the level that nodes allow, then the wanted one, then ones between it and the best. Each may take half of
// the steps that are left.
static void mend(struct mend *m, struct hpl_level wanted) {
    struct hpl_live *f = &m->flow;
    struct hpl_level low = {0, 1};
    for (int32_t round = 0; round < ROUNDS; round++) {
        m->until = f->steps + (m->limit - f->steps) / 2;
        if (!mend_at_level(m)) low = f->level;
        hpl_live_raise(f);
        if (round == 0 || is_lower(f->level, m->best_level)) keep_best(m);
        if (!is_lower(wanted, m->best_level)) break;
        const struct hpl_level aim = is_lower(low, wanted) ? wanted : halfway(low, m->best_level);
        if (!is_lower(low, aim)) break;
        hpl_live_set_level(f, aim);
    }
    restore_best(m);
}

static bool take_arrays(struct mend *m, int64_t places, struct hpl_work *work) {
    const int32_t devices = m->flow.devices;
    m->fixed = HPL_TAKE(work, places, bool);
    m->place = HPL_TAKE(work, devices, int32_t);
    m->order = HPL_TAKE(work, devices, int32_t);
    m->tried = HPL_TAKE(work, devices, int32_t);
    m->near = HPL_TAKE(work, m->flow.experts, int64_t);
    m->best = HPL_TAKE(work, places, int32_t);
    return m->fixed && m->place && m->order && m->tried && m->near && m->best &&
           hpl_live_take(&m->flow, (int32_t)places, work);
}

enum hpl_status hpl_quota_mend(struct hpl_quota *q, struct hpl_work *work) {
    const struct hpl_work before = *work;
    const struct hpl_topology *topology = q->problem->topology;
    const int32_t experts = q->problem->experts, devices = topology->devices;
    const int64_t slots = hpl_min(q->problem->budget.slots, experts);
    const int64_t places = experts + devices * slots;
    int64_t *rows = HPL_TAKE(work, experts, int64_t), sum = 0;
    struct mend m = {
        .q = q,
        .flow = {.experts = experts, .devices = devices, .speed = topology->speed, .rows = rows}};
    if (!rows || !take_arrays(&m, places, work)) return HPL_NO_ROOM;
    hpl_tally_experts(q->node_rows, q->nodes.nodes, experts, rows);
    for (int32_t e = 0; e < experts; e++) sum += rows[e];
    list_places(&m);
    m.limit = STEPS_MORE + STEPS * (places + experts + devices);
    const struct hpl_level wanted = {sum * (1000 + q->problem->budget.slack),
                                     1000 * hpl_tally_speed(topology)};
    hpl_live_begin(&m.flow, is_lower(wanted, q->level) ? q->level : wanted);
    place_rows(&m);
    mend(&m, wanted);
    hpl_work_count(work, m.flow.steps);
    *work = before;
    return HPL_OK;
}
