// route.c: one rank's quotas, from the shares that every rank has computed alike.
//
// Sources and shares of an expert are laid end to end in one fixed order, within the node and then
// across nodes; where two intervals meet, rows go from that source to that holder. Every rank finds
// its own interval by sums over the ranks before it, so ranks agree without a message.
#include "runtime/plan/share.h"
#include "runtime/plan/tally.h"
#include "runtime/plan/work.h"

// What a rank needs to know of one expert to place its own rows.
struct source {
    int32_t expert;
    int32_t node, rank;
    int64_t kept;  // Rows that stay on the rank.
    int64_t begin; // Rows of ranks of its node, not kept there, that come before its own.
    int64_t rows;  // Its own rows that are not kept.
};

static int64_t rows_of(const struct hpl_loads *loads, int32_t device, int32_t expert) {
    return loads->rows[(int64_t)device * loads->experts + expert];
}

// The holder of `expert` on `device`, -1 if there is none, among holders `from` .. `to` - 1.
static int32_t holder_on(const struct hpl_plan *plan, int32_t device, int32_t from, int32_t to) {
    for (int32_t k = from; k < to; k++) {
        if (plan->holder[k] == device) return k;
    }
    return -1;
}

// Lays the rows that the node's devices do not keep end to end, beginning with device
// expert % size so that no device always comes last. Sets begin and rows; returns their sum.
static int64_t line_up(struct source *s, const struct hpl_topology *topology,
                       const struct hpl_plan *plan, const struct hpl_loads *loads,
                       const int64_t *share, int32_t from, int32_t to) {
    const int32_t first = topology->first[s->node];
    const int32_t size = topology->first[s->node + 1] - first;
    int64_t sum = 0;
    for (int32_t i = 0; i < size; i++) {
        const int32_t d = first + (s->expert + i) % size;
        const int32_t k = holder_on(plan, d, from, to);
        const int64_t have = rows_of(loads, d, s->expert);
        const int64_t kept = k < 0 ? 0 : hpl_min(have, share[k]);
        if (d == s->rank) {
            s->kept = kept;
            s->begin = sum;
            s->rows = have - kept;
        }
        sum += have - kept;
    }
    return sum;
}

// Adds the part of [begin, end) that meets what holders `from` .. `to` - 1 take beyond their own
// device's rows, when those are laid end to end from `at` on. Returns where they end.
static int64_t meet(const struct hpl_plan *plan, const struct hpl_loads *loads,
                    const int64_t *share, int32_t expert, int32_t from, int32_t to, int64_t at,
                    int64_t begin, int64_t end, uint32_t *rows) {
    for (int32_t k = from; k < to; k++) {
        const int64_t own = rows_of(loads, plan->holder[k], expert);
        const int64_t next = at + hpl_max(share[k] - own, 0);
        const int64_t common = hpl_min(next, end) - hpl_max(at, begin);
        if (common > 0) rows[k] += (uint32_t)common;
        at = next;
    }
    return at;
}

// The rows that found no share in their node meet the shares that found no rows in theirs: both are
// laid end to end by node.
static void cross(const struct source *s, const struct hpl_topology *topology,
                  const struct hpl_plan *plan, const struct hpl_loads *loads, const int64_t *share,
                  const uint32_t *node_rows, int64_t local_shares, uint32_t *rows) {
    int64_t begin = hpl_max(s->begin - local_shares, 0);
    int64_t end = hpl_max(s->begin + s->rows - local_shares, 0);
    if (begin == end) return;
    const int32_t last = plan->first[s->expert + 1];
    int32_t k = plan->first[s->expert];
    for (int32_t n = 0; n < s->node; n++) { // What earlier nodes send away comes first.
        int64_t sum = 0;
        for (; k < last && topology->node[plan->holder[k]] == n; k++) sum += share[k];
        const int64_t away = hpl_max(node_rows[(int64_t)n * plan->experts + s->expert] - sum, 0);
        begin += away;
        end += away;
    }
    int64_t at = 0;
    for (k = plan->first[s->expert]; k < last && at < end;) {
        const int32_t n = topology->node[plan->holder[k]];
        const int32_t from = k;
        int64_t sum = 0;
        for (; k < last && topology->node[plan->holder[k]] == n; k++) sum += share[k];
        // The node's own rows fill its shares from the front; what is behind them is open.
        const int64_t open = hpl_max(sum - node_rows[(int64_t)n * plan->experts + s->expert], 0);
        if (open == 0) continue;
        int64_t beyond = 0;
        for (int32_t i = from; i < k; i++) {
            beyond += hpl_max(share[i] - rows_of(loads, plan->holder[i], s->expert), 0);
        }
        const int64_t shift = at - (beyond - open); // Shares before `at` are filled by the node.
        meet(plan, loads, share, s->expert, from, k, shift, hpl_max(begin, at),
             hpl_min(end, at + open), rows);
        at += open;
    }
}

enum hpl_status hpl_route(const struct hpl_topology *topology, const struct hpl_plan *plan,
                          const struct hpl_loads *loads, const int64_t *share, int32_t rank,
                          uint32_t *rows, struct hpl_work *work) {
    if (rank < 0 || rank >= topology->devices) return HPL_BAD_ARGUMENT;
    const struct hpl_work before = *work;
    uint32_t *node_rows = HPL_TAKE(work, (int64_t)topology->nodes * plan->experts, uint32_t);
    *work = before;
    if (!node_rows) return HPL_NO_ROOM;
    hpl_tally_nodes(topology, loads, node_rows);

    const int32_t node = topology->node[rank];
    for (int32_t e = 0; e < plan->experts; e++) {
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) rows[k] = 0;
        if (rows_of(loads, rank, e) == 0) continue;
        int32_t from = plan->first[e]; // The node's holders: from .. to - 1.
        while (from < plan->first[e + 1] && topology->node[plan->holder[from]] < node) from++;
        int32_t to = from;
        while (to < plan->first[e + 1] && topology->node[plan->holder[to]] == node) to++;

        struct source s = {.expert = e, .node = node, .rank = rank};
        line_up(&s, topology, plan, loads, share, from, to);
        const int32_t own = holder_on(plan, rank, from, to);
        if (own >= 0) rows[own] = (uint32_t)s.kept;
        const int64_t shares =
            meet(plan, loads, share, e, from, to, 0, s.begin, s.begin + s.rows, rows);
        cross(&s, topology, plan, loads, share, node_rows, shares, rows);
    }
    return HPL_OK;
}

// The holders among which rows of `rank` are split: from .. to - 1.
static void nearest(const struct hpl_topology *topology, const struct hpl_plan *plan,
                    enum hpl_even even, int32_t rank, int32_t expert, int32_t *from, int32_t *to) {
    *from = plan->first[expert];
    *to = plan->first[expert + 1];
    if (even == HPL_EVEN_ALL) return;
    const int32_t own = holder_on(plan, rank, *from, *to);
    if (even == HPL_EVEN_NEAREST && own >= 0) {
        *from = own;
        *to = own + 1;
        return;
    }
    const int32_t node = topology->node[rank];
    int32_t begin = *from;
    while (begin < *to && topology->node[plan->holder[begin]] < node) begin++;
    int32_t end = begin;
    while (end < *to && topology->node[plan->holder[end]] == node) end++;
    if (begin == end) return;
    *from = begin;
    *to = end;
}

void hpl_route_even(const struct hpl_topology *topology, const struct hpl_plan *plan,
                    const struct hpl_loads *loads, enum hpl_even even, int32_t rank,
                    uint32_t *rows) {
    for (int32_t e = 0; e < plan->experts; e++) {
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) rows[k] = 0;
        int32_t from = 0, to = 0;
        nearest(topology, plan, even, rank, e, &from, &to);
        const int32_t count = to - from;
        if (count == 0) continue;
        const uint32_t all = loads->rows[(int64_t)rank * loads->experts + e];
        for (int32_t i = 0; i < count; i++) {
            const int32_t k = from + (rank + e + i) % count;
            rows[k] = all / (uint32_t)count + ((uint32_t)i < all % (uint32_t)count ? 1 : 0);
        }
    }
}
