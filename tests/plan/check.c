// check.c: schedules, proven by running them on paper.
#include "tests/plan/check.h"

#include "runtime/plan/senders.h"
#include "runtime/plan/slots.h"
#include "runtime/plan/work.h"

const char *hpl_fault_text(enum hpl_fault fault) {
    switch (fault) {
    case HPL_SOUND:
        return "sound";
    case HPL_FAULT_RANGE:
        return "a transfer names something that does not exist";
    case HPL_FAULT_STRANGER:
        return "a transfer uses a device that does not hold the chunk";
    case HPL_FAULT_UNREADY:
        return "a transfer reads before the write";
    case HPL_FAULT_REWRITTEN:
        return "a transfer writes what is there, or adds to what is gone";
    case HPL_FAULT_ROUND:
        return "a transfer is in a round too early, or too full";
    case HPL_FAULT_MISSING:
        return "something never arrives";
    case HPL_FAULT_NO_ROOM:
        return "the workspace is too small";
    }
    return "unknown fault";
}

// The parts of each segment that each holder has: parts[segment * holders + holder].
struct paper {
    const struct hpl_topology *topology;
    const struct hpl_plan *plan;
    const struct hpl_schedule *schedule;
    int32_t holders;
    int32_t *parts;
    int32_t *round;           // Likewise: in which it was last written; 0: it was there.
    int32_t *received, *sent; // [devices] of the present round; `sent` lies behind `received`.
};

static bool take_paper(struct paper *p, struct hpl_work *work) {
    p->holders = p->plan->first[p->plan->experts];
    const int64_t cells = (int64_t)p->holders * p->schedule->segments;
    p->parts = HPL_TAKE(work, cells, int32_t);
    p->round = HPL_TAKE(work, cells, int32_t);
    p->received = HPL_TAKE(work, 2 * (int64_t)p->topology->devices, int32_t);
    p->sent = p->received + p->topology->devices;
    if (!p->parts || !p->round || !p->received) return false;
    hpl_zero_i32(p->round, cells);
    hpl_zero_i32(p->received, 2 * (int64_t)p->topology->devices);
    return true;
}

// The holder of `expert` on `device`, by bisection; -1 if there is none.
static int32_t find(const struct hpl_plan *plan, int32_t expert, int32_t device) {
    int32_t low = plan->first[expert], high = plan->first[expert + 1];
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (plan->holder[middle] < device)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->first[expert + 1] && plan->holder[low] == device ? low : -1;
}

// Where the sender's and the receiver's parts of a transfer are noted.
static enum hpl_fault locate(const struct paper *p, const struct hpl_transfer *t, int32_t **from,
                             int32_t **to) {
    const bool exists = t->expert >= 0 && t->expert < p->plan->experts && t->segment >= 0 &&
                        t->segment < p->schedule->segments && t->from >= 0 &&
                        t->from < p->topology->devices && t->to >= 0 &&
                        t->to < p->topology->devices;
    if (!exists) return HPL_FAULT_RANGE;
    const int32_t sender = find(p->plan, t->expert, t->from);
    const int32_t receiver = find(p->plan, t->expert, t->to);
    if (sender < 0 || receiver < 0) return HPL_FAULT_STRANGER;
    *from = &p->parts[(int64_t)t->segment * p->holders + sender];
    *to = &p->parts[(int64_t)t->segment * p->holders + receiver];
    return HPL_SOUND;
}

// Whether transfer `i` may run at once with all others of its round, behind those before. `most`: that a device
// receives, and sends.
static bool fits_round(struct paper *p, int32_t i, const int32_t *from, const int32_t *to,
                       int32_t most) {
    const struct hpl_transfer *t = &p->schedule->transfer[i];
    const int32_t before = i > 0 ? p->schedule->transfer[i - 1].round : 1;
    if (t->round > before) hpl_zero_i32(p->received, 2 * (int64_t)p->topology->devices);
    if (t->round < before || p->round[from - p->parts] >= t->round) return false;
    p->round[to - p->parts] = t->round;
    return ++p->received[t->to] <= most && ++p->sent[t->from] <= most;
}

static void count(const struct paper *p, const struct hpl_transfer *t,
                  struct hpl_traffic *traffic) {
    if (traffic->sent) traffic->sent[t->from]++;
    if (traffic->received) traffic->received[t->to]++;
    traffic->cross += p->topology->node[t->from] != p->topology->node[t->to];
}

static void begin_traffic(const struct paper *p, struct hpl_traffic *traffic) {
    if (traffic->sent) hpl_zero_i64(traffic->sent, p->topology->devices);
    if (traffic->received) hpl_zero_i64(traffic->received, p->topology->devices);
    traffic->cross = 0;
    traffic->transfer = -1;
}

static enum hpl_fault walk_gather(struct paper *p, const int32_t *owner,
                                  struct hpl_traffic *traffic) {
    for (int32_t s = 0; s < p->schedule->segments; s++) {
        for (int32_t e = 0; e < p->plan->experts; e++) {
            for (int32_t k = p->plan->first[e]; k < p->plan->first[e + 1]; k++) {
                p->parts[(int64_t)s * p->holders + k] = p->plan->holder[k] == owner[e];
            }
        }
    }
    for (int32_t i = 0; i < p->schedule->count; i++) {
        const struct hpl_transfer *t = &p->schedule->transfer[i];
        int32_t *from = NULL, *to = NULL;
        traffic->transfer = i;
        const enum hpl_fault fault = locate(p, t, &from, &to);
        if (fault != HPL_SOUND) return fault;
        if (*from == 0) return HPL_FAULT_UNREADY;
        if (*to != 0) return HPL_FAULT_REWRITTEN;
        if (!fits_round(p, i, from, to, INT32_MAX)) return HPL_FAULT_ROUND;
        *to = 1;
        count(p, t, traffic);
    }
    traffic->transfer = -1;
    for (int64_t i = 0; i < (int64_t)p->holders * p->schedule->segments; i++) {
        if (p->parts[i] == 0) return HPL_FAULT_MISSING;
    }
    return HPL_SOUND;
}

// Parts count the partial gradients summed in a holder's buffer; 0 once it was sent.
static enum hpl_fault walk_reduce(struct paper *p, const int32_t *owner,
                                  struct hpl_traffic *traffic) {
    for (int64_t i = 0; i < (int64_t)p->holders * p->schedule->segments; i++) p->parts[i] = 1;
    for (int32_t i = 0; i < p->schedule->count; i++) {
        const struct hpl_transfer *t = &p->schedule->transfer[i];
        int32_t *from = NULL, *to = NULL;
        traffic->transfer = i;
        const enum hpl_fault fault = locate(p, t, &from, &to);
        if (fault != HPL_SOUND) return fault;
        if (*from == 0 || t->from == owner[t->expert]) return HPL_FAULT_UNREADY;
        if (*to == 0 || from == to) return HPL_FAULT_REWRITTEN;
        if (!fits_round(p, i, from, to, HPL_STAGED)) return HPL_FAULT_ROUND;
        *to += *from;
        *from = 0;
        count(p, t, traffic);
    }
    traffic->transfer = -1;
    for (int32_t s = 0; s < p->schedule->segments; s++) {
        for (int32_t e = 0; e < p->plan->experts; e++) {
            const int32_t k = find(p->plan, e, owner[e]);
            const int32_t wanted = p->plan->first[e + 1] - p->plan->first[e];
            if (k < 0 || p->parts[(int64_t)s * p->holders + k] != wanted) return HPL_FAULT_MISSING;
        }
    }
    return HPL_SOUND;
}

typedef enum hpl_fault walk(struct paper *p, const int32_t *owner, struct hpl_traffic *traffic);

static enum hpl_fault check(walk *walk, const struct hpl_topology *topology, const int32_t *owner,
                            const struct hpl_plan *plan, const struct hpl_schedule *schedule,
                            struct hpl_traffic *traffic, struct hpl_work *work) {
    const struct hpl_work before = *work;
    struct paper p = {.topology = topology, .plan = plan, .schedule = schedule};
    enum hpl_fault fault = HPL_FAULT_NO_ROOM;
    begin_traffic(&p, traffic);
    if (take_paper(&p, work)) fault = walk(&p, owner, traffic);
    *work = before;
    return fault;
}

enum hpl_fault hpl_check_gather(const struct hpl_topology *topology, const int32_t *owner,
                                const struct hpl_plan *plan, const struct hpl_schedule *schedule,
                                struct hpl_traffic *traffic, struct hpl_work *work) {
    return check(walk_gather, topology, owner, plan, schedule, traffic, work);
}

enum hpl_fault hpl_check_reduce(const struct hpl_topology *topology, const int32_t *owner,
                                const struct hpl_plan *plan, const struct hpl_schedule *schedule,
                                struct hpl_traffic *traffic, struct hpl_work *work) {
    return check(walk_reduce, topology, owner, plan, schedule, traffic, work);
}

static enum hpl_status find_bound(const struct hpl_topology *topology, const int32_t *owner,
                                  const struct hpl_plan *plan, struct hpl_schedule_bound *bound,
                                  struct hpl_work *work) {
    const int32_t holders = plan->first[plan->experts];
    struct hpl_senders senders = {HPL_TAKE(work, holders, int64_t),
                                  HPL_TAKE(work, holders, int64_t)};
    int64_t *receives = HPL_TAKE(work, topology->devices, int64_t);
    struct hpl_level level;
    if (!senders.inside || !senders.across || !receives) return HPL_NO_ROOM;
    const enum hpl_status status =
        hpl_senders_divide(topology, owner, plan, HPL_BOUND_PARTS, &senders, &level, work);
    if (status != HPL_OK) return status;
    *bound = (struct hpl_schedule_bound){.busiest = level.num / level.den};
    hpl_zero_i64(receives, topology->devices);
    for (int32_t e = 0; e < plan->experts; e++) {
        int32_t last = -1;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t d = plan->holder[k], node = topology->node[d];
            if (node != last && node != topology->node[owner[e]]) bound->cross_chunks++;
            last = node;
            if (d != owner[e]) receives[d] += HPL_BOUND_PARTS;
        }
    }
    for (int32_t d = 0; d < topology->devices; d++) {
        bound->busiest = hpl_max(bound->busiest, receives[d]);
    }
    return HPL_OK;
}

enum hpl_status hpl_schedule_bound(const struct hpl_topology *topology, const int32_t *owner,
                                   const struct hpl_plan *plan, struct hpl_schedule_bound *bound,
                                   struct hpl_work *work) {
    const struct hpl_work before = *work;
    const enum hpl_status status = find_bound(topology, owner, plan, bound, work);
    *work = before;
    return status;
}
