// senders.c: dividing the sending of chunks among their holders, by flow.
#include "runtime/plan/senders.h"

#include "runtime/plan/live_flow.h"

// Demands are supplies of a flow (live_flow.h): so many segments, to be sent by any of these holders.
struct demands {
    int32_t count, links;
    int64_t *rows;         // [count] segments
    int32_t *first;        // [count + 1] links of a demand
    int32_t *link_holder;  // [links] index into the plan's holders
    int32_t *link_device;  // [links]
    unsigned char *across; // [count]
};

// A chunk makes at most two demands and two more for each node; every holder appears in at most
// four of them, the owner in six.
static bool take_demands(struct demands *d, const struct hpl_plan *plan, struct hpl_work *work) {
    const int64_t holders = plan->first[plan->experts];
    const int64_t demands = 4 * (int64_t)plan->experts + holders;
    const int64_t links = 4 * holders + 2 * (int64_t)plan->experts;
    d->rows = HPL_TAKE(work, demands, int64_t);
    d->first = HPL_TAKE(work, demands + 1, int32_t);
    d->across = HPL_TAKE(work, demands, unsigned char);
    d->link_holder = HPL_TAKE(work, links, int32_t);
    d->link_device = HPL_TAKE(work, links, int32_t);
    return d->rows && d->first && d->across && d->link_holder && d->link_device;
}

// A demand that holders `from` .. `to` - 1 of the plan may meet.
static void demand(struct demands *d, const struct hpl_plan *plan, int64_t rows, bool across,
                   int32_t from, int32_t to) {
    if (rows <= 0) return;
    d->rows[d->count] = rows;
    d->across[d->count] = across;
    for (int32_t k = from; k < to; k++) {
        d->link_holder[d->links] = k;
        d->link_device[d->links++] = plan->holder[k];
    }
    d->first[++d->count] = d->links;
}

// The demands of one chunk. Returns false when its owner does not hold it.
static bool demand_chunk(struct demands *d, const struct hpl_topology *topology,
                         const struct hpl_plan *plan, int32_t expert, int32_t owner,
                         int64_t segments) {
    const int32_t begin = plan->first[expert], end = plan->first[expert + 1];
    const int32_t home = topology->node[owner];
    int32_t nodes = 0, own = -1, home_from = begin, home_to = begin;
    for (int32_t k = begin, next; k < end; k = next) {
        const int32_t node = topology->node[plan->holder[k]];
        for (next = k; next < end && topology->node[plan->holder[next]] == node; next++) {
            if (plan->holder[next] == owner) own = next;
        }
        nodes++;
        if (node == home)
            home_from = k, home_to = next;
        else
            demand(d, plan, (next - k - 1) * segments, false, k, next);
    }
    if (own < 0) return false;
    if (home_to - home_from > 1) {
        demand(d, plan, segments, false, own, own + 1);
        demand(d, plan, (home_to - home_from - 2) * segments, false, home_from, home_to);
    }
    if (nodes > 1) {
        demand(d, plan, segments, true, home_from, home_to);
        demand(d, plan, (nodes - 2) * segments, true, begin, end);
    }
    return true;
}

// A flow from demands to devices: the links of a device follow each other. Sets `place` to the place of each link.
static bool form_flow(struct hpl_live *f, const struct demands *d, int32_t *place,
                      struct hpl_work *work) {
    int32_t *at = HPL_TAKE(work, f->devices, int32_t);
    if (!at || !hpl_live_take(f, d->links, work)) return false;
    hpl_zero_i32(f->first, f->devices + 1);
    for (int32_t k = 0; k < d->links; k++) f->first[d->link_device[k] + 1]++;
    for (int32_t i = 0; i < f->devices; i++) {
        f->first[i + 1] += f->first[i];
        at[i] = f->first[i];
    }
    for (int32_t i = 0; i < d->count; i++) {
        for (int32_t k = d->first[i]; k < d->first[i + 1]; k++) {
            place[k] = at[d->link_device[k]]++;
            f->expert[place[k]] = i;
            f->device[place[k]] = d->link_device[k];
        }
    }
    return true;
}

// Begins with demands met by their first holders that have room.
static void meet(struct hpl_live *f, const struct demands *d, const int32_t *place) {
    for (int32_t i = 0; i < d->count; i++) {
        for (int32_t k = d->first[i]; k < d->first[i + 1] && f->left[i] > 0; k++)
            hpl_live_put(f, place[k], hpl_min(f->left[i], f->room[d->link_device[k]]));
    }
}

static enum hpl_status divide(const struct hpl_topology *topology, const int32_t *owner,
                              const struct hpl_plan *plan, int32_t segments,
                              struct hpl_senders *senders, struct hpl_level *level,
                              struct hpl_work *work) {
    struct demands d = {0};
    int32_t *alike = HPL_TAKE(work, topology->devices, int32_t);
    if (!alike || !take_demands(&d, plan, work)) return HPL_NO_ROOM;
    d.first[0] = 0;
    for (int32_t e = 0; e < plan->experts; e++) {
        if (!demand_chunk(&d, topology, plan, e, owner[e], segments)) return HPL_BAD_ARGUMENT;
    }
    struct hpl_live f = {
        .experts = d.count, .devices = topology->devices, .speed = alike, .rows = d.rows};
    int32_t *place = HPL_TAKE(work, d.links, int32_t);
    if (!place || !form_flow(&f, &d, place, work)) return HPL_NO_ROOM;
    int64_t sum = 0;
    for (int32_t i = 0; i < d.count; i++) sum += d.rows[i];
    for (int32_t i = 0; i < topology->devices; i++) alike[i] = 1;
    hpl_live_begin(&f, (struct hpl_level){sum, topology->devices});
    meet(&f, &d, place);
    hpl_live_raise(&f);
    hpl_work_count(work, f.steps);
    *level = f.level;

    const int32_t holders = plan->first[plan->experts];
    hpl_zero_i64(senders->inside, holders);
    hpl_zero_i64(senders->across, holders);
    for (int32_t i = 0; i < d.count; i++) {
        int64_t *sends = d.across[i] ? senders->across : senders->inside;
        for (int32_t k = d.first[i]; k < d.first[i + 1]; k++)
            sends[d.link_holder[k]] += f.share[place[k]];
    }
    return HPL_OK;
}

enum hpl_status hpl_senders_divide(const struct hpl_topology *topology, const int32_t *owner,
                                   const struct hpl_plan *plan, int32_t segments,
                                   struct hpl_senders *senders, struct hpl_level *level,
                                   struct hpl_work *work) {
    const struct hpl_work before = *work;
    const enum hpl_status status = divide(topology, owner, plan, segments, senders, level, work);
    *work = before;
    return status;
}
