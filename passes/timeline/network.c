// Flows and their rates. Rates are found anew when a flow begins, and when enough of a port has become free; in
// between every flow's end is known, and flows come off a heap.
#include "passes/timeline/network.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "passes/timeline/heap.h"

struct flow {
    int32_t port[HEC_FLOW_PORTS], ports, owner;
    int64_t number; // In the order of starts.
    double begins, bytes;
    double left, rate, end; // What is left when rates were found, and when it is done at this rate.
    bool ended;
    int32_t place; // Of one that has ended: in `flow`; -1: another has taken it.
};

struct hec_network {
    int32_t ports;
    double slack, now, found; // found: when rates were.
    bool stale;               // Flows have begun since rates were found.
    bool
        less; // Flows have ended, and nobody has looked yet whether that is enough to find rates anew.
    double *capacity, *carried;
    double *freed; // [ports] what ended flows had, since rates were found
    int64_t started;
    struct flow *flow; // Under way, and those that have ended since rates were found.
    int32_t count, room;
    struct hec_heap next; // Flows under way, the earliest end first.
    struct flow *ended;   // Done at `now`; from ended_at on nobody has been told.
    int32_t ended_count, ended_at, ended_room;
    struct flow *later; // Not yet at their first byte.
    int32_t later_count, later_room;
    struct hec_heap waiting,
        vacant; // Of them, the earliest first; places that are free, in no order.
    // Of water-filling.
    double *room_left;    // [ports]
    int32_t *active;      // [ports] flows under way
    int32_t *users;       // [ports] flows that have no rate yet
    int32_t *first, *end; // [ports] a port's flows in `through`
    int32_t *busy;        // Ports with flows that have no rate.
    int32_t *through;     // [count * HEC_FLOW_PORTS] flows, port by port
    int32_t through_room, busy_count;
};

static void *take(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) abort(); // As the arenas of the compiler do.
    return memory;
}

struct hec_network *hec_network_create(int32_t ports, const double *capacity, double slack) {
    struct hec_network *n = take(1, sizeof *n);
    n->ports = ports;
    n->slack = slack;
    n->capacity = take((size_t)ports, sizeof *n->capacity);
    memcpy(n->capacity, capacity, (size_t)ports * sizeof *capacity);
    n->carried = take((size_t)ports, sizeof *n->carried);
    n->freed = take((size_t)ports, sizeof *n->freed);
    n->room_left = take((size_t)ports, sizeof *n->room_left);
    n->active = take((size_t)ports, sizeof *n->active);
    n->users = take((size_t)ports, sizeof *n->users);
    n->first = take((size_t)ports, sizeof *n->first);
    n->end = take((size_t)ports, sizeof *n->end);
    n->busy = take((size_t)ports, sizeof *n->busy);
    return n;
}

void hec_network_free(struct hec_network *n) {
    if (!n) return;
    free(n->capacity);
    free(n->carried);
    free(n->freed);
    free(n->next.item);
    free(n->waiting.item);
    free(n->vacant.item);
    free(n->room_left);
    free(n->active);
    free(n->users);
    free(n->first);
    free(n->end);
    free(n->ended);
    free(n->busy);
    free(n->through);
    free(n->flow);
    free(n->later);
    free(n);
}

// Makes room for one more.
static void grow(struct flow **flow, int32_t count, int32_t *room) {
    if (count < *room) return;
    *room = *room ? 2 * *room : 256;
    *flow = realloc(*flow, (size_t)*room * sizeof **flow);
    if (!*flow) abort();
}

// ---- flows that have not begun

static bool begins_before(const void *context, int32_t a, int32_t b) {
    const struct hec_network *n = context;
    const struct flow *left = &n->later[a], *right = &n->later[b];
    return left->begins < right->begins ||
           (left->begins == right->begins && left->number < right->number);
}

static void put_off(struct hec_network *n, const struct flow *flow) {
    int32_t place = n->later_count;
    if (n->vacant.count) {
        place = n->vacant.item[--n->vacant.count];
    } else {
        grow(&n->later, n->later_count++, &n->later_room);
    }
    n->later[place] = *flow;
    hec_heap_push(&n->waiting, place, begins_before, n);
}

static struct flow first_later(struct hec_network *n) {
    const int32_t place = hec_heap_pop(&n->waiting, begins_before, n);
    hec_heap_reserve(&n->vacant, n->vacant.count + 1);
    n->vacant.item[n->vacant.count++] = place;
    return n->later[place];
}

// ---- rates

// Lists the flows of each port that is in use.
static void list_through(struct hec_network *n) {
    if (n->through_room < n->count * HEC_FLOW_PORTS) {
        n->through_room = 2 * n->count * HEC_FLOW_PORTS;
        n->through = realloc(n->through, (size_t)n->through_room * sizeof *n->through);
        if (!n->through) abort();
    }
    memcpy(n->users, n->active, (size_t)n->ports * sizeof *n->users);
    int32_t at = 0;
    n->busy_count = 0;
    for (int32_t p = 0; p < n->ports; p++) {
        n->first[p] = n->end[p] = at;
        at += n->users[p];
        n->room_left[p] = n->capacity[p];
        if (n->users[p]) n->busy[n->busy_count++] = p;
    }
    for (int32_t i = 0; i < n->count; i++) {
        for (int32_t k = 0; k < n->flow[i].ports; k++) n->through[n->end[n->flow[i].port[k]]++] = i;
    }
}

static void set_rate(struct hec_network *n, struct flow *flow, double rate) {
    flow->rate = rate;
    for (int32_t k = 0; k < flow->ports; k++) {
        const int32_t p = flow->port[k];
        n->room_left[p] = n->room_left[p] > rate ? n->room_left[p] - rate : 0;
        n->users[p]--;
    }
}

// The port that gives each of its flows least decides about them; then the next one, of what is left.
static void fill(struct hec_network *n) {
    list_through(n);
    for (int32_t i = 0; i < n->count; i++) n->flow[i].rate = -1;
    while (n->busy_count) {
        double least = INFINITY;
        int32_t kept = 0;
        for (int32_t b = 0; b < n->busy_count; b++) {
            const int32_t p = n->busy[b];
            if (!n->users[p]) continue;
            n->busy[kept++] = p;
            const double part = n->room_left[p] / n->users[p];
            if (part < least) least = part;
        }
        n->busy_count = kept;
        for (int32_t b = 0; b < kept; b++) {
            const int32_t p = n->busy[b];
            if (!n->users[p] || n->room_left[p] / n->users[p] > least * (1 + 1e-12)) continue;
            for (int32_t i = n->first[p]; i < n->end[p]; i++) {
                struct flow *flow = &n->flow[n->through[i]];
                if (flow->rate < 0) set_rate(n, flow, least);
            }
        }
    }
}

// ---- ends

static bool ends_before(const void *context, int32_t a, int32_t b) {
    const struct hec_network *n = context;
    const struct flow *left = &n->flow[a], *right = &n->flow[b];
    return left->end < right->end || (left->end == right->end && left->number < right->number);
}

// Moves what is under way on to now, finds its rates, and when it ends.
static void find_rates(struct hec_network *n) {
    int32_t kept = 0;
    for (int32_t i = 0; i < n->count; i++) {
        struct flow flow = n->flow[i];
        if (flow.ended) continue;
        flow.left -= flow.rate * (n->now - n->found);
        if (flow.left < 0) flow.left = 0;
        n->flow[kept++] = flow;
    }
    n->count = kept;
    n->found = n->now;
    fill(n);
    memset(n->freed, 0, (size_t)n->ports * sizeof *n->freed);
    hec_heap_reserve(&n->next, kept);
    n->next.count = kept;
    for (int32_t i = 0; i < kept; i++) {
        n->flow[i].end = n->now + (n->flow[i].left > 0 ? n->flow[i].left / n->flow[i].rate : 0);
        n->next.item[i] = i;
    }
    for (int32_t i = kept / 2 - 1; i >= 0; i--) hec_heap_sink(&n->next, i, ends_before, n);
    n->stale = n->less = false;
}

// Finds rates where they are not those of the flows under way: some have begun, or what ended ones have left is
// more than the network's slack.
static void renew(struct hec_network *n) {
    for (int32_t p = 0; n->less && !n->stale && p < n->ports; p++)
        n->stale = n->active[p] && n->freed[p] > n->slack * n->capacity[p];
    n->less = false;
    if (n->stale) find_rates(n);
}

// ---- beginnings

// A flow that begins where one has just ended, through the same ports, takes over its rate: nothing changes for the others.
static bool take_place(struct hec_network *n, const struct flow *next) {
    struct flow *last = n->ended_at > 0 ? &n->ended[n->ended_at - 1] : NULL;
    if (!last || last->place < 0 || n->stale || next->begins > n->now ||
        last->ports != next->ports ||
        memcmp(last->port, next->port, (size_t)last->ports * sizeof *last->port) != 0)
        return false;
    const int32_t place = last->place;
    struct flow *flow = &n->flow[place];
    *flow = *next;
    flow->rate = last->rate;
    flow->left = next->bytes + last->rate * (n->now - n->found);
    flow->end = n->now + next->bytes / last->rate;
    for (int32_t k = 0; k < next->ports; k++) {
        n->active[next->port[k]]++;
        n->freed[next->port[k]] -= last->rate;
    }
    last->place = -1;
    hec_heap_push(&n->next, place, ends_before, n);
    return true;
}

void hec_network_start(struct hec_network *n, double now, const int32_t *port, int32_t ports,
                       double bytes, double delay, int32_t owner) {
    assert(now >= n->now && ports >= 1 && ports <= HEC_FLOW_PORTS);
    struct flow flow = {.ports = ports,
                        .owner = owner,
                        .number = n->started++,
                        .begins = now + delay,
                        .bytes = bytes,
                        .left = bytes};
    for (int32_t i = 0; i < ports; i++) {
        flow.port[i] = port[i];
        n->carried[port[i]] += bytes;
    }
    if (delay > 0 || !take_place(n, &flow)) put_off(n, &flow);
}

// ---- time

double hec_network_next(struct hec_network *n) {
    renew(n);
    const double begin = n->waiting.count ? n->later[n->waiting.item[0]].begins : INFINITY;
    const double end = n->next.count ? n->flow[n->next.item[0]].end : INFINITY;
    return begin < end ? begin : end;
}

static void begin_flows(struct hec_network *n) {
    while (n->waiting.count && n->later[n->waiting.item[0]].begins <= n->now) {
        grow(&n->flow, n->count, &n->room);
        const struct flow flow = first_later(n);
        for (int32_t k = 0; k < flow.ports; k++) n->active[flow.port[k]]++;
        n->flow[n->count++] = flow;
        n->stale = true;
    }
}

static void end_flow(struct hec_network *n, int32_t place) {
    struct flow *flow = &n->flow[place];
    flow->ended = true;
    flow->place = place;
    grow(&n->ended, n->ended_count, &n->ended_room);
    n->ended[n->ended_count++] = *flow;
    n->less = true;
    for (int32_t k = 0; k < flow->ports; k++) {
        const int32_t p = flow->port[k];
        n->freed[p] += flow->rate;
        n->active[p]--;
    }
}

void hec_network_pass(struct hec_network *n, double now) {
    renew(n);
    n->now = now;
    n->ended_count = n->ended_at = 0;
    while (n->next.count && n->flow[n->next.item[0]].end <= now)
        end_flow(n, hec_heap_pop(&n->next, ends_before, n));
    begin_flows(n);
}

int32_t hec_network_done(struct hec_network *n) {
    return n->ended_at < n->ended_count ? n->ended[n->ended_at++].owner : -1;
}

const double *hec_network_carried(const struct hec_network *n) {
    return n->carried;
}
