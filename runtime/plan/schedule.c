// schedule.c: trees for every segment of every chunk, from what each holder is to send.
//
// The sends of a chunk's holders are laid end to end, the root's first; the j-th goes to segment
// j % segments. So every segment has as many sends as it needs, at least one by its root, and a tree
// exists: holders that have sends left are attached before those that only receive. A round is a depth in
// these trees.
#include "runtime/plan/schedule.h"

#include "runtime/plan/rounds.h"
#include "runtime/plan/senders.h"
#include "runtime/plan/work.h"

struct trees {
    const struct hpl_topology *topology;
    const struct hpl_plan *plan;
    struct hpl_schedule *schedule;
    struct hpl_senders senders; // Per holder of the plan.
    int64_t *inside_start;      // [holders] where a holder's sends begin in its node's line,
    int64_t *across_start;      // [holders] and in its chunk's.
    int64_t *received;          // [devices] segments over the network, to even them out
    // One segment of one chunk; indices are holders, minus the chunk's first.
    int32_t *inside; // Sends left inside the node.
    int32_t *across; // Sends left to other nodes.
    int32_t *placed; // Holders of a node that have the segment, in order.
    int32_t *ready;  // Nodes that have it: their entries, in order.
    int32_t *node;   // Nodes that lack it: their first holders, senders first.
    int32_t *round;  // In which a holder gets it; 0: the owner.
};

static bool take_trees(struct trees *t, struct hpl_work *work) {
    const int32_t holders = t->plan->first[t->plan->experts];
    int32_t most = 0;
    for (int32_t e = 0; e < t->plan->experts; e++) {
        const int32_t count = t->plan->first[e + 1] - t->plan->first[e];
        if (count > most) most = count;
    }
    t->senders.inside = HPL_TAKE(work, holders, int64_t);
    t->senders.across = HPL_TAKE(work, holders, int64_t);
    t->inside_start = HPL_TAKE(work, holders, int64_t);
    t->across_start = HPL_TAKE(work, holders, int64_t);
    t->received = HPL_TAKE(work, t->topology->devices, int64_t);
    t->inside = HPL_TAKE(work, most, int32_t);
    t->across = HPL_TAKE(work, most, int32_t);
    t->placed = HPL_TAKE(work, most, int32_t);
    t->ready = HPL_TAKE(work, most, int32_t);
    t->node = HPL_TAKE(work, most, int32_t);
    t->round = HPL_TAKE(work, most, int32_t);
    return t->senders.inside && t->senders.across && t->inside_start && t->across_start &&
           t->received && t->inside && t->across && t->placed && t->ready && t->node && t->round;
}

static int32_t node_of(const struct trees *t, int32_t holder) {
    return t->topology->node[t->plan->holder[holder]];
}

// One past the last holder of the chunk that stands in the same node as `holder`.
static int32_t node_end(const struct trees *t, int32_t expert, int32_t holder) {
    int32_t k = holder;
    while (k < t->plan->first[expert + 1] && node_of(t, k) == node_of(t, holder)) k++;
    return k;
}

// Lays the sends of holders `from` .. `to` - 1 end to end, `root` first if it is among them.
static int64_t lay(const int64_t *sends, int64_t *start, int32_t from, int32_t to, int32_t root,
                   int64_t at) {
    if (root >= from && root < to) {
        start[root] = at;
        at += sends[root];
    }
    for (int32_t k = from; k < to; k++) {
        if (k == root) continue;
        start[k] = at;
        at += sends[k];
    }
    return at;
}

// Both lines of a chunk: inside each node the owner first, across nodes the owner's node first.
static void lay_chunk(struct trees *t, int32_t expert, int32_t own) {
    const int32_t begin = t->plan->first[expert], end = t->plan->first[expert + 1];
    int64_t across = 0;
    for (int32_t k = begin, next; k < end; k = next) {
        next = node_end(t, expert, k);
        lay(t->senders.inside, t->inside_start, k, next, own, 0);
        if (node_of(t, k) != node_of(t, own)) continue;
        across = lay(t->senders.across, t->across_start, k, next, own, across);
    }
    for (int32_t k = begin; k < end; k++) {
        if (node_of(t, k) == node_of(t, own)) continue;
        t->across_start[k] = across;
        across += t->senders.across[k];
    }
}

// How many of `count` sends from place `start` on belong to the segment.
static int32_t of_segment(int64_t start, int64_t count, int32_t segments, int32_t segment) {
    const int64_t end = start + count;
    const int64_t before = (start - segment + segments - 1) / segments;
    const int64_t until = (end - segment + segments - 1) / segments;
    return (int32_t)(until - before);
}

static void emit(struct trees *t, int32_t expert, int32_t segment, int32_t from, int32_t to) {
    const int32_t base = t->plan->first[expert], round = t->round[from - base] + 1;
    t->round[to - base] = round;
    t->schedule->transfer[t->schedule->count++] =
        (struct hpl_transfer){expert, segment, t->plan->holder[from], t->plan->holder[to], round};
}

// From the holder `entry` to all of its node. Leaves the node's holders in `placed`, in the order
// in which they get the segment, and returns how many they are.
static int32_t spread_inside(struct trees *t, int32_t expert, int32_t segment, int32_t entry) {
    const int32_t base = t->plan->first[expert];
    int32_t from = entry;
    while (from > base && node_of(t, from - 1) == node_of(t, entry)) from--;
    const int32_t to = node_end(t, expert, entry);
    int32_t count = 0, sender = 0;
    t->placed[count++] = entry;
    for (int32_t pass = 0; pass < 2; pass++) { // Those with sends of their own, then the others.
        for (int32_t k = from; k < to; k++) {
            const bool sends =
                t->senders.inside[k] > 0 && of_segment(t->inside_start[k], t->senders.inside[k],
                                                       t->schedule->segments, segment) > 0;
            if (k == entry || sends != (pass == 0)) continue;
            while (t->inside[t->placed[sender] - base] == 0) sender++;
            t->inside[t->placed[sender] - base]--;
            emit(t, expert, segment, t->placed[sender], k);
            t->placed[count++] = k;
        }
    }
    return count;
}

// The holder through which the segment enters the node whose first holder is `first`: one that
// sends on inside the node if any must, least used by the network so far.
static int32_t entry_of(struct trees *t, int32_t expert, int32_t first) {
    const int32_t base = t->plan->first[expert];
    const int32_t end = node_end(t, expert, first);
    int32_t best = -1;
    for (int32_t k = first; k < end; k++) {
        if (end - first > 1 && t->inside[k - base] == 0) continue;
        if (best < 0 || t->received[t->plan->holder[k]] < t->received[t->plan->holder[best]]) {
            best = k;
        }
    }
    t->received[t->plan->holder[best]]++;
    return best;
}

// The nodes that lack the segment, those that send it on first.
static void list_nodes(struct trees *t, int32_t expert, int32_t own) {
    const int32_t base = t->plan->first[expert];
    int32_t count = 0;
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int32_t k = base, next; k < t->plan->first[expert + 1]; k = next) {
            next = node_end(t, expert, k);
            if (node_of(t, k) == node_of(t, own)) continue;
            int32_t sends = 0;
            for (int32_t i = k; i < next; i++) sends += t->across[i - base];
            if ((sends > 0) == (pass == 0)) t->node[count++] = k;
        }
    }
}

static void build_tree(struct trees *t, int32_t expert, int32_t segment, int32_t own) {
    const int32_t base = t->plan->first[expert], end = t->plan->first[expert + 1];
    const int32_t segments = t->schedule->segments;
    for (int32_t k = base; k < end; k++) {
        t->inside[k - base] =
            of_segment(t->inside_start[k], t->senders.inside[k], segments, segment);
        t->across[k - base] =
            of_segment(t->across_start[k], t->senders.across[k], segments, segment);
    }
    list_nodes(t, expert, own);
    int32_t ready = 0, next = 0;
    t->ready[ready++] = own;
    t->round[own - base] = 0;
    for (int32_t i = 0; i < ready; i++) {
        const int32_t placed = spread_inside(t, expert, segment, t->ready[i]);
        for (int32_t p = 0; p < placed; p++) {
            for (; t->across[t->placed[p] - base] > 0; t->across[t->placed[p] - base]--) {
                const int32_t entry = entry_of(t, expert, t->node[next++]);
                emit(t, expert, segment, t->placed[p], entry);
                t->ready[ready++] = entry;
            }
        }
    }
}

static enum hpl_status check(const struct hpl_topology *topology, const int32_t *owner,
                             const struct hpl_plan *plan, int32_t segments) {
    if (segments < 1 || segments > HPL_SEGMENTS_MAX) return HPL_BAD_ARGUMENT;
    for (int32_t e = 0; e < plan->experts; e++) {
        if (owner[e] < 0 || owner[e] >= topology->devices) return HPL_BAD_ARGUMENT;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            if (plan->holder[k] < 0 || plan->holder[k] >= topology->devices)
                return HPL_BAD_ARGUMENT;
            if (k > plan->first[e] && plan->holder[k] <= plan->holder[k - 1]) {
                return HPL_BAD_ARGUMENT;
            }
        }
    }
    return HPL_OK;
}

static int32_t own_holder(const struct hpl_plan *plan, int32_t expert, int32_t owner) {
    int32_t k = plan->first[expert];
    while (plan->holder[k] != owner) k++;
    return k;
}

static enum hpl_status gather(struct trees *t, const int32_t *owner, struct hpl_work *work) {
    const struct hpl_plan *plan = t->plan;
    const int64_t replicas = plan->first[plan->experts] - plan->experts;
    struct hpl_level level;
    if (!take_trees(t, work)) return HPL_NO_ROOM;
    const enum hpl_status status = hpl_senders_divide(
        t->topology, owner, plan, t->schedule->segments, &t->senders, &level, work);
    if (status != HPL_OK) return status;
    if (replicas * t->schedule->segments > t->schedule->capacity) return HPL_NO_ROOM;
    hpl_zero_i64(t->received, t->topology->devices);
    for (int32_t e = 0; e < plan->experts; e++) {
        lay_chunk(t, e, own_holder(plan, e, owner[e]));
    }
    for (int32_t s = 0; s < t->schedule->segments; s++) {
        for (int32_t e = 0; e < plan->experts; e++) {
            build_tree(t, e, s, own_holder(plan, e, owner[e]));
        }
    }
    return HPL_OK;
}

enum hpl_status hpl_schedule_gather(const struct hpl_topology *topology, const int32_t *owner,
                                    const struct hpl_plan *plan, int32_t segments,
                                    struct hpl_schedule *schedule, struct hpl_work *work) {
    const struct hpl_work before = *work;
    enum hpl_status status = check(topology, owner, plan, segments);
    if (status != HPL_OK) return status;
    schedule->segments = segments;
    schedule->count = 0;
    struct trees t = {.topology = topology, .plan = plan, .schedule = schedule};
    status = gather(&t, owner, work);
    *work = before;
    return status == HPL_OK ? hpl_rounds_sort(schedule, work) : status;
}

static enum hpl_status direct(const int32_t *owner, const struct hpl_plan *plan,
                              struct hpl_schedule *schedule) {
    for (int32_t s = 0; s < schedule->segments; s++) {
        for (int32_t e = 0; e < plan->experts; e++) {
            for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
                if (plan->holder[k] == owner[e]) continue;
                if (schedule->count == schedule->capacity) return HPL_NO_ROOM;
                schedule->transfer[schedule->count++] =
                    (struct hpl_transfer){e, s, owner[e], plan->holder[k], 1};
            }
        }
    }
    return HPL_OK;
}

enum hpl_status hpl_schedule_of(const struct hpl_policy *policy,
                                const struct hpl_topology *topology, const int32_t *owner,
                                const struct hpl_plan *plan, int32_t segments,
                                struct hpl_schedule *schedule, struct hpl_work *work) {
    if (policy->collective != HPL_COLLECTIVE_DIRECT)
        return hpl_schedule_gather(topology, owner, plan, segments, schedule, work);
    const enum hpl_status status = check(topology, owner, plan, segments);
    if (status != HPL_OK) return status;
    schedule->segments = segments;
    schedule->count = 0;
    return direct(owner, plan, schedule);
}
