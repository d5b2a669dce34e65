// route.c: one rank's quotas, from the shares that every rank has computed alike.
//
// Sources and shares of an expert are laid end to end in one fixed order, within the node and then
// across nodes; where two intervals meet, rows go from that source to that holder. Every rank finds
// its own interval by sums over the ranks before it, so ranks agree without a message.
#include "runtime/plan/share.h"
#include "runtime/plan/tally.h"
#include "runtime/plan/work.h"

// The plan, and the loads that it routes.
struct ground {
    const struct hpl_topology *topology;
    const struct hpl_plan *plan;
    const struct hpl_loads *loads;
    const int64_t *share;
    const uint32_t *node_rows; // [nodes][experts]
};

// Holders of one expert in one node: from .. to - 1.
struct group {
    int32_t from, to;
};

// One expert's numbers from which a rank places its own rows.
struct source {
    int32_t expert;
    int32_t node, rank;
    int64_t kept;  // Rows that stay on the rank.
    int64_t begin; // Rows of ranks of its node, not kept there, that come before its own.
    int64_t rows;  // Its own rows that are not kept.
};

struct range {
    int64_t begin, end;
};

static int64_t common(struct range a, struct range b) {
    return hpl_max(hpl_min(a.end, b.end) - hpl_max(a.begin, b.begin), 0);
}

static int64_t rows_of(const struct hpl_loads *loads, int32_t device, int32_t expert) {
    return loads->rows[(int64_t)device * loads->experts + expert];
}

static int64_t node_rows_of(const struct ground *g, int32_t node, int32_t expert) {
    return g->node_rows[(int64_t)node * g->plan->experts + expert];
}

// Rows that holder k takes beyond those of its own device.
static int64_t beyond_of(const struct ground *g, int32_t expert, int32_t k) {
    return hpl_max(g->share[k] - rows_of(g->loads, g->plan->holder[k], expert), 0);
}

// Rows of its own device that holder k keeps.
static int64_t kept_of(const struct ground *g, int32_t expert, int32_t k) {
    return hpl_min(g->share[k], rows_of(g->loads, g->plan->holder[k], expert));
}

// The holder of `expert` on `device`, -1 if there is none, among holders `from` .. `to` - 1.
static int32_t holder_on(const struct hpl_plan *plan, int32_t device, int32_t from, int32_t to) {
    const int32_t end = to; // They ascend.
    while (from < to) {
        const int32_t middle = from + (to - from) / 2;
        if (plan->holder[middle] < device)
            from = middle + 1;
        else
            to = middle;
    }
    return from < end && plan->holder[from] == device ? from : -1;
}

// The node's holders, which begin at `at` or later.
static struct group group_from(const struct ground *g, int32_t expert, int32_t node, int32_t at) {
    const int32_t last = g->plan->first[expert + 1];
    struct group group = {.from = at};
    while (group.from < last && g->topology->node[g->plan->holder[group.from]] < node) group.from++;
    group.to = group.from;
    while (group.to < last && g->topology->node[g->plan->holder[group.to]] == node) group.to++;
    return group;
}

static int64_t share_of(const struct ground *g, struct group group) {
    int64_t sum = 0;
    for (int32_t k = group.from; k < group.to; k++) sum += g->share[k];
    return sum;
}

// Lays the rows that the node's devices do not keep end to end, beginning with device
// expert % size so that no device always comes last. Sets kept, begin and rows.
static void line_up(const struct ground *g, struct source *s, struct group group) {
    const int32_t first = g->topology->first[s->node];
    const int32_t size = g->topology->first[s->node + 1] - first;
    int64_t sum = 0;
    for (int32_t i = 0; i < size; i++) {
        const int32_t d = first + (s->expert + i) % size;
        const int32_t k = holder_on(g->plan, d, group.from, group.to);
        const int64_t have = rows_of(g->loads, d, s->expert);
        const int64_t kept = k < 0 ? 0 : hpl_min(have, g->share[k]);
        if (d == s->rank) {
            s->kept = kept;
            s->begin = sum;
            s->rows = have - kept;
            return;
        }
        sum += have - kept;
    }
}

// Adds the part of `range` that meets what the holders take beyond their own device's rows, when those
// are laid end to end from `at` on. Returns where they end.
static int64_t meet(const struct ground *g, int32_t expert, struct group group, int64_t at,
                    struct range range, uint32_t *rows) {
    for (int32_t k = group.from; k < group.to; k++) {
        const int64_t next = at + beyond_of(g, expert, k);
        rows[k] += (uint32_t)common((struct range){at, next}, range);
        at = next;
    }
    return at;
}

// ---- across nodes
//
// The rows that found no share in their node meet the shares that found no rows in theirs: both are
// laid end to end by node.

// Rows that leave a node.
static int64_t away_of(const struct ground *g, int32_t expert, int32_t node, struct group group) {
    return hpl_max(node_rows_of(g, node, expert) - share_of(g, group), 0);
}

// Where a source's rows lie among those that leave: `near` rows find shares in its node.
static struct range leaving(const struct source *s, int64_t near, int64_t earlier) {
    return (struct range){earlier + hpl_max(s->begin - near, 0),
                          earlier + hpl_max(s->begin + s->rows - near, 0)};
}

// Open shares of one node: the node's own rows fill its shares from the front, and the shares behind them are
// open.
struct open {
    struct group group;
    int64_t shift;      // Where the group's shares would begin, were they all open.
    struct range range; // Where the open ones lie.
};

// The open shares of the next node that has some, from holder `k` on; false: there is none.
static bool next_open(const struct ground *g, int32_t expert, int32_t *k, int64_t *at,
                      struct open *open) {
    while (*k < g->plan->first[expert + 1]) {
        const int32_t node = g->topology->node[g->plan->holder[*k]];
        const struct group group = group_from(g, expert, node, *k);
        const int64_t rows = share_of(g, group) - node_rows_of(g, node, expert);
        *k = group.to;
        if (rows <= 0) continue;
        int64_t beyond = 0;
        for (int32_t i = group.from; i < group.to; i++) beyond += beyond_of(g, expert, i);
        *open = (struct open){group, *at - (beyond - rows), {*at, *at + rows}};
        *at += rows;
        return true;
    }
    return false;
}

static void cross(const struct ground *g, int32_t expert, struct range range, uint32_t *rows) {
    int32_t k = g->plan->first[expert];
    int64_t at = 0;
    struct open open;
    while (at < range.end && next_open(g, expert, &k, &at, &open)) {
        const struct range part = {hpl_max(range.begin, open.range.begin),
                                   hpl_min(range.end, open.range.end)};
        if (part.begin < part.end) meet(g, expert, open.group, open.shift, part, rows);
    }
}

// ---- a rank's row

// Adds the rows of `rank` for the expert's holders.
static void route_expert(const struct ground *g, int32_t expert, int32_t rank, uint32_t *rows) {
    const int32_t node = g->topology->node[rank], first = g->plan->first[expert];
    if (rows_of(g->loads, rank, expert) == 0) return;
    const struct group group = group_from(g, expert, node, first);
    struct source s = {.expert = expert, .node = node, .rank = rank};
    line_up(g, &s, group);
    const int32_t own = holder_on(g->plan, rank, group.from, group.to);
    if (own >= 0) rows[own] += (uint32_t)s.kept;
    const int64_t near = meet(g, expert, group, 0, (struct range){s.begin, s.begin + s.rows}, rows);
    if (s.begin + s.rows <= near) return;
    int64_t earlier = 0; // Rows that leave earlier nodes come first.
    int32_t k = first;
    for (int32_t n = 0; n < node; n++) {
        const struct group other = group_from(g, expert, n, k);
        earlier += away_of(g, expert, n, other);
        k = other.to;
    }
    cross(g, expert, leaving(&s, near, earlier), rows);
}

// Takes node_rows from the workspace. False: there is no room.
static bool survey(struct ground *g, struct hpl_work *work) {
    uint32_t *rows = HPL_TAKE(work, (int64_t)g->topology->nodes * g->plan->experts, uint32_t);
    if (!rows) return false;
    hpl_tally_nodes(g->topology, g->loads, rows);
    g->node_rows = rows;
    return true;
}

enum hpl_status hpl_route(const struct hpl_topology *topology, const struct hpl_plan *plan,
                          const struct hpl_loads *loads, const int64_t *share, int32_t rank,
                          uint32_t *rows, struct hpl_work *work) {
    if (rank < 0 || rank >= topology->devices) return HPL_BAD_ARGUMENT;
    const struct hpl_work before = *work;
    struct ground g = {topology, plan, loads, share, NULL};
    const bool surveyed = survey(&g, work);
    *work = before;
    if (!surveyed) return HPL_NO_ROOM;
    for (int32_t k = 0; k < plan->first[plan->experts]; k++) rows[k] = 0;
    for (int32_t e = 0; e < plan->experts; e++) route_expert(&g, e, rank, rows);
    return HPL_OK;
}

// ---- a rank's part of all

// Adds the rows of all ranks before this one: of whole nodes at once, then of its own node's.
static void route_before(const struct ground *g, int32_t expert, int32_t rank, uint32_t *before) {
    const int32_t node = g->topology->node[rank];
    int64_t away = 0;
    int32_t at = g->plan->first[expert];
    for (int32_t n = 0; n < node; n++) {
        const struct group group = group_from(g, expert, n, at);
        int64_t line = node_rows_of(g, n, expert); // Rows that their devices do not keep.
        for (int32_t k = group.from; k < group.to; k++) {
            before[k] += (uint32_t)kept_of(g, expert, k);
            line -= kept_of(g, expert, k);
        }
        meet(g, expert, group, 0, (struct range){0, line}, before);
        away += away_of(g, expert, n, group);
        at = group.to;
    }
    cross(g, expert, (struct range){0, away}, before);
    for (int32_t r = g->topology->first[node]; r < rank; r++) route_expert(g, expert, r, before);
}

// Where the open shares of holder k lie among all; empty if it has none.
static struct range open_of(const struct ground *g, int32_t expert, int32_t holder) {
    int32_t k = g->plan->first[expert];
    int64_t at = 0;
    struct open open;
    while (next_open(g, expert, &k, &at, &open)) {
        if (holder >= open.group.to) continue;
        if (holder < open.group.from) break;
        int64_t begin = open.shift;
        for (int32_t i = open.group.from; i < holder; i++) begin += beyond_of(g, expert, i);
        const int64_t end = begin + beyond_of(g, expert, holder);
        return (struct range){hpl_max(begin, open.range.begin), hpl_min(end, open.range.end)};
    }
    return (struct range){0, 0};
}

// Counts the rows of each of a node's devices that holder k gets: `wanted` among those that leave, the first of which
// comes behind `earlier`; or, where it is the holder's own node, among those that stay.
static void route_node(const struct ground *g, int32_t expert, int32_t node, struct group group,
                       bool own, int64_t earlier, struct range wanted, int32_t stride,
                       uint32_t *here) {
    int64_t near = 0;
    for (int32_t i = group.from; i < group.to; i++) near += beyond_of(g, expert, i);
    for (int32_t d = g->topology->first[node]; d < g->topology->first[node + 1]; d++) {
        struct source s = {.expert = expert, .node = node, .rank = d};
        line_up(g, &s, group);
        const struct range rows =
            own ? (struct range){s.begin, s.begin + s.rows} : leaving(&s, near, earlier);
        here[(int64_t)d * stride] = (uint32_t)common(rows, wanted);
    }
}

// The rows of every device that holder k gets.
static void route_column(const struct ground *g, int32_t expert, int32_t k, int32_t stride,
                         uint32_t *here) {
    const int32_t device = g->plan->holder[k], home = g->topology->node[device];
    const struct range open = open_of(g, expert, k);
    int64_t earlier = 0;
    int32_t at = g->plan->first[expert];
    for (int32_t n = 0; n < g->topology->nodes; n++) {
        const struct group group = group_from(g, expert, n, at);
        const int64_t away = away_of(g, expert, n, group);
        at = group.to;
        if (n == home) {
            int64_t begin = 0;
            for (int32_t i = group.from; i < k; i++) begin += beyond_of(g, expert, i);
            const struct range near = {begin, begin + beyond_of(g, expert, k)};
            route_node(g, expert, n, group, true, 0, near, stride, here);
        } else if (common(open, (struct range){earlier, earlier + away}) > 0) {
            route_node(g, expert, n, group, false, earlier, open, stride, here);
        }
        earlier += away;
    }
    here[(int64_t)device * stride] += (uint32_t)kept_of(g, expert, k);
}

void hpl_part_begin(const struct hpl_part *part, const struct hpl_plan *plan) {
    for (int32_t k = 0; k < plan->first[plan->experts]; k++)
        part->to[k] = part->before[k] = part->sum[k] = 0;
}

void hpl_part_add(const struct hpl_part *part, const struct hpl_plan *plan, int32_t rank,
                  int32_t source, const uint32_t *rows) {
    uint32_t *here = part->here + (int64_t)source * part->stride;
    for (int32_t k = 0; k < plan->first[plan->experts]; k++) {
        if (plan->holder[k] == rank) *here++ = rows[k];
        if (source == rank) part->to[k] = rows[k];
        if (source < rank) part->before[k] += rows[k];
        part->sum[k] += rows[k];
    }
}

enum hpl_status hpl_route_part(const struct hpl_topology *topology, const struct hpl_plan *plan,
                               const struct hpl_loads *loads, const int64_t *share, int32_t rank,
                               const struct hpl_part *part, struct hpl_work *work) {
    if (rank < 0 || rank >= topology->devices) return HPL_BAD_ARGUMENT;
    const struct hpl_work before = *work;
    struct ground g = {topology, plan, loads, share, NULL};
    const bool surveyed = survey(&g, work);
    *work = before;
    if (!surveyed) return HPL_NO_ROOM;
    int32_t held = 0;
    hpl_part_begin(part, plan);
    for (int64_t i = 0; i < (int64_t)topology->devices * part->stride; i++) part->here[i] = 0;
    for (int32_t e = 0; e < plan->experts; e++) {
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            part->sum[k] = (uint32_t)share[k]; // As shares say.
            if (plan->holder[k] == rank) route_column(&g, e, k, part->stride, part->here + held++);
        }
        if (rows_of(loads, rank, e) == 0) continue;
        route_expert(&g, e, rank, part->to);
        route_before(&g, e, rank, part->before);
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

void hpl_route_even_expert(const struct hpl_topology *topology, const struct hpl_plan *plan,
                           const struct hpl_loads *loads, enum hpl_even even, int32_t rank,
                           int32_t expert, uint32_t *rows, int32_t *from, int32_t *to) {
    nearest(topology, plan, even, rank, expert, from, to);
    const int32_t count = *to - *from;
    const uint32_t all = loads->rows[(int64_t)rank * loads->experts + expert];
    for (int32_t i = 0; i < count; i++) {
        const int32_t k = *from + (rank + expert + i) % count;
        rows[k] = all / (uint32_t)count + ((uint32_t)i < all % (uint32_t)count ? 1 : 0);
    }
}

void hpl_route_even(const struct hpl_topology *topology, const struct hpl_plan *plan,
                    const struct hpl_loads *loads, enum hpl_even even, int32_t rank,
                    uint32_t *rows) {
    for (int32_t e = 0; e < plan->experts; e++) {
        int32_t from, to;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) rows[k] = 0;
        hpl_route_even_expert(topology, plan, loads, even, rank, e, rows, &from, &to);
    }
}
