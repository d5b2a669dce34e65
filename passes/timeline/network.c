// Flows, from their start to their end. Rates are found anew when a flow begins, and when enough of a port has become
// free; in between every flow's end is known.
#include "passes/timeline/network.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "passes/timeline/bundles.h"

struct hec_network *hec_network_create(int32_t ports, const double *capacity, double slack) {
    struct hec_network *n = calloc(1, sizeof *n);
    if (!n) abort(); // As the arenas of the compiler do.
    n->port = calloc((size_t)ports, sizeof *n->port);
    n->carried = calloc((size_t)ports, sizeof *n->carried);
    if (!n->port || !n->carried) abort();
    n->ports = ports;
    n->slack = slack;
    n->slowest = INFINITY;
    for (int32_t p = 0; p < ports; p++) {
        n->port[p].capacity = capacity[p];
        n->port[p].watched = -1;
    }
    return n;
}

void hec_network_free(struct hec_network *n) {
    if (!n) return;
    for (int32_t p = 0; p < n->ports; p++) free(n->port[p].through);
    for (int32_t b = 0; b < n->bundle_count; b++) free(n->bundle[b].ahead.item);
    struct hec_list *list[] = {&n->vacant, &n->spare,   &n->ended,   &n->touched, &n->freed,
                               &n->joined, &n->watched, &n->reached, &n->opened};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) free(list[i]->item);
    free(n->later.item);
    free(n->share);
    free(n->port);
    free(n->carried);
    free(n->flow);
    free(n->bundle);
    free(n->rate);
    free(n->ends.item);
    free(n);
}

// ---- who shares a port

static void settle(const struct hec_network *n, struct hec_port *port) {
    const double us = n->now - port->settled;
    port->settled = n->now;
    if (!port->all || us <= 0) return;
    for (int k = 0; k < HEC_FLOW_KINDS; k++)
        port->shared.part[k] += us * port->present[k] / port->all;
    port->shared.crowd += us * port->all;
}

// So many more flows of the kind are at the port.
static void pass_by(const struct hec_network *n, struct hec_port *port, int32_t kind,
                    int32_t flows) {
    settle(n, port);
    port->present[kind] += flows;
    port->all += flows;
}

static void enter_keys(const struct hec_network *n, struct hec_flow *flow) {
    for (int k = 0; k < 2 && flow->key[k] >= 0; k++) {
        pass_by(n, &n->port[flow->key[k]], flow->kind, 1);
        flow->met[k] = n->port[flow->key[k]].shared;
    }
}

static void leave_keys(const struct hec_network *n, const struct hec_flow *flow) {
    for (int k = 0; k < 2 && flow->key[k] >= 0; k++)
        pass_by(n, &n->port[flow->key[k]], flow->kind, -1);
}

static void divide(const struct hec_network *n, const struct hec_flow *flow, double *part) {
    double crowd[2] = {0, -1};
    for (int k = 0; k < 2 && flow->key[k] >= 0; k++) {
        settle(n, &n->port[flow->key[k]]);
        crowd[k] = n->port[flow->key[k]].shared.crowd - flow->met[k].crowd;
    }
    const int at = crowd[1] > crowd[0];
    for (int k = 0; k < HEC_FLOW_KINDS; k++)
        part[k] = n->port[flow->key[at]].shared.part[k] - flow->met[at].part[k];
}

// ---- ports

static void touch(struct hec_network *n, int32_t port) {
    if (!n->port[port].begun && !n->port[port].ended) hec_list_add(&n->touched, port);
}

static void begin_flow(struct hec_network *n, int32_t number) {
    struct hec_flow *flow = &n->flow[number];
    for (int32_t k = 0; k < flow->ports; k++) {
        touch(n, flow->port[k]);
        n->port[flow->port[k]].begun = true;
        n->port[flow->port[k]].flows++;
    }
    hec_flow_keys(n, flow, flow->key);
    enter_keys(n, flow);
    const int32_t bundle = hec_bundle_with(n, flow->key, false);
    if (!n->bundle[bundle].changed) hec_list_add(&n->joined, bundle);
    n->bundle[bundle].changed = true;
    hec_bundle_join(n, bundle, number, flow->bytes);
    n->stale = true;
}

// A flow that has ended gives its part of ports back.
static void end_flow(struct hec_network *n, int32_t number) {
    const struct hec_flow *flow = &n->flow[number];
    const double rate = n->bundle[flow->bundle].rate;
    leave_keys(n, flow);
    for (int32_t k = 0; k < flow->ports; k++) {
        struct hec_port *port = &n->port[flow->port[k]];
        touch(n, flow->port[k]);
        port->ended = true;
        port->flows--;
        port->freed += rate;
        hec_list_add(&n->freed, flow->port[k]);
    }
    if (rate < n->slowest) n->slowest = rate;
    hec_bundle_leave(n, flow->bundle, number);
    if (!n->bundle[flow->bundle].flows) hec_bundle_drop(n, flow->bundle);
    hec_list_add(&n->vacant, number);
}

static void end_flows(struct hec_network *n, int32_t until) {
    while (n->gone < until) end_flow(n, n->ended.item[n->gone++]);
}

// Finds new rates where the flows under way have changed: some have begun, or ended ones have freed
// more than the network's slack.
static void renew(struct hec_network *n) {
    end_flows(n, n->ended.count);
    for (int32_t i = 0; i < n->freed.count && !n->stale; i++) {
        const struct hec_port *port = &n->port[n->freed.item[i]];
        n->stale = port->keys && port->freed > n->slack * port->capacity;
    }
    n->freed.count = 0;
    if (n->stale) hec_rates_find(n);
}

// ---- starts

static int32_t take_place(struct hec_network *n) {
    if (n->vacant.count) return n->vacant.item[--n->vacant.count];
    if (n->flow_count == n->flow_room) {
        n->flow_room = n->flow_room ? 2 * n->flow_room : 256;
        n->flow = realloc(n->flow, (size_t)n->flow_room * sizeof *n->flow);
        if (!n->flow) abort();
    }
    return n->flow_count++;
}

// A flow that begins where one has just ended, through the same ports, takes over its part of them: nothing changes for the others.
static bool take_over(struct hec_network *n, const struct hec_flow *next) {
    if (n->gone + 1 != n->ended_at) return false;
    const int32_t place = n->ended.item[n->gone];
    struct hec_flow *flow = &n->flow[place];
    if (flow->ports != next->ports || flow->port[0] != next->port[0] ||
        memcmp(flow->port, next->port, (size_t)next->ports * sizeof *next->port) != 0)
        return false;
    const int32_t bundle = flow->bundle, key[2] = {flow->key[0], flow->key[1]};
    leave_keys(n, flow);
    *flow = *next;
    flow->bundle = bundle;
    memcpy(flow->key, key, sizeof key);
    enter_keys(n, flow);
    n->gone++;
    struct hec_bundle *b = &n->bundle[bundle];
    hec_agenda_add(&b->ahead,
                   (struct hec_item){hec_served(n, b) + flow->bytes, flow->number, place});
    hec_bundle_schedule(n, bundle);
    return true;
}

void hec_network_start(struct hec_network *n, double now, const int32_t *port, int32_t ports,
                       double bytes, double delay, int32_t owner, int32_t kind) {
    assert(now >= n->now && ports >= 1 && ports <= HEC_FLOW_PORTS);
    assert(kind >= 0 && kind < HEC_FLOW_KINDS);
    struct hec_flow flow = {
        .ports = ports, .owner = owner, .kind = kind, .number = n->started++, .bytes = bytes};
    for (int32_t i = 0; i < ports; i++) {
        flow.port[i] = port[i];
        n->carried[port[i]] += bytes;
    }
    if (delay <= 0 && now <= n->now && take_over(n, &flow)) return;
    const int32_t place = take_place(n);
    n->flow[place] = flow;
    hec_agenda_add(&n->later, (struct hec_item){now + delay, flow.number, place});
}

// ---- time

double hec_network_next(struct hec_network *n) {
    renew(n);
    const double begin = n->later.count ? n->later.item[0].at : INFINITY;
    const double end = n->ends.count ? n->ends.item[0].at : INFINITY;
    return begin < end ? begin : end;
}

void hec_network_pass(struct hec_network *n, double now) {
    renew(n);
    n->now = now;
    n->ended.count = n->ended_at = n->gone = 0;
    while (n->ends.count && n->ends.item[0].at <= now) {
        const int32_t bundle = n->ends.item[0].what;
        hec_list_add(&n->ended, hec_agenda_take(&n->bundle[bundle].ahead).what);
        hec_bundle_schedule(n, bundle);
    }
    while (n->later.count && n->later.item[0].at <= now)
        begin_flow(n, hec_agenda_take(&n->later).what);
}

int32_t hec_network_done(struct hec_network *n, double *part) {
    end_flows(n, n->ended_at);
    if (n->ended_at == n->ended.count) return -1;
    const struct hec_flow *flow = &n->flow[n->ended.item[n->ended_at++]];
    divide(n, flow, part);
    return flow->owner;
}

const double *hec_network_carried(const struct hec_network *n) {
    return n->carried;
}
