// Chunks counted, one way of counting for each collective.
#include "passes/cost/chunks.h"

#include <string.h>

#include "runtime/plan/plan.h"

struct hec_chunks hec_chunks_take(struct hec_stage *s) {
    const size_t devices = (size_t)s->topology.devices, nodes = (size_t)s->topology.nodes;
    struct hec_chunks c = {.sent =
                               hec_arena_alloc(&s->arena, 2 * devices + 2 * nodes, sizeof(double))};
    c.got = c.sent + devices;
    c.node_sent = c.got + devices, c.node_got = c.node_sent + nodes;
    return c;
}

// Whether holder k of the plan is the first of its expert in its node.
static bool enters(const struct hpl_topology *t, const struct hpl_plan *plan, int32_t e,
                   int32_t k) {
    return k == plan->first[e] || t->node[plan->holder[k]] != t->node[plan->holder[k - 1]];
}

// From the owner to all holders, which pass it on; a node is entered once.
static void count_tree(const struct hec_stage *s, const struct hpl_plan *plan, int32_t e,
                       struct hec_chunks *c) {
    const struct hpl_topology *t = &s->topology;
    const int32_t owner = s->owner[e], begin = plan->first[e], end = plan->first[e + 1];
    const bool holds = hpl_plan_holds(plan, e, owner);
    const int32_t count = end - begin + !holds;
    int32_t nodes = 1;
    for (int32_t k = begin; k < end; k++) {
        const int32_t d = plan->holder[k], n = t->node[d];
        c->sent[d] += (double)(count - 1) / count;
        if (d != owner) c->got[d]++;
        if (n != t->node[owner] && enters(t, plan, e, k)) c->node_got[n]++, nodes++;
    }
    if (!holds) c->sent[owner] += (double)(count - 1) / count;
    for (int32_t k = begin; k < end; k++) {
        const int32_t n = t->node[plan->holder[k]];
        if (n != t->node[owner] && enters(t, plan, e, k))
            c->node_sent[n] += (double)(nodes - 1) / nodes;
    }
    c->node_sent[t->node[owner]] += (double)(nodes - 1) / nodes;
}

// From the owner to each holder.
static void count_direct(const struct hec_stage *s, const struct hpl_plan *plan, int32_t e,
                         struct hec_chunks *c) {
    const struct hpl_topology *t = &s->topology;
    const int32_t owner = s->owner[e], home = t->node[owner];
    for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
        const int32_t d = plan->holder[k], n = t->node[d];
        if (d == owner) continue;
        c->sent[owner]++, c->got[d]++;
        if (n != home) c->node_sent[home]++, c->node_got[n]++;
    }
}

// A part from each device to every holder.
static void count_shards(const struct hec_stage *s, const struct hpl_plan *plan,
                         struct hec_chunks *c) {
    const struct hpl_topology *t = &s->topology;
    const double holders = plan->first[plan->experts], devices = t->devices;
    for (int32_t k = 0; k < plan->first[plan->experts]; k++) {
        const int32_t d = plan->holder[k], n = t->node[d];
        c->got[d] += (devices - 1) / devices;
        c->sent[d] -= 1 / devices; // A holder has its own part.
        c->node_got[n] += (devices - (t->first[n + 1] - t->first[n])) / devices;
        c->node_sent[n] -= (t->first[n + 1] - t->first[n]) / devices;
    }
    for (int32_t d = 0; d < t->devices; d++) {
        c->sent[d] += holders / devices;
        c->node_sent[t->node[d]] += holders / devices;
    }
}

// All parts to all devices: each enters a node once.
static void count_all(const struct hec_stage *s, const struct hpl_plan *plan,
                      struct hec_chunks *c) {
    const struct hpl_topology *t = &s->topology;
    const double experts = plan->experts, devices = t->devices;
    for (int32_t d = 0; d < t->devices; d++)
        c->sent[d] = c->got[d] = experts * (devices - 1) / devices;
    for (int32_t n = 0; n < t->nodes; n++) {
        const double own = t->first[n + 1] - t->first[n];
        c->node_got[n] = experts * (devices - own) / devices;
        c->node_sent[n] = experts * own * (t->nodes - 1) / devices;
        if (c->node_sent[n] > c->node_got[n]) c->node_sent[n] = c->node_got[n];
    }
}

// Sums over k copies: each sends and gets 2 (k - 1) / k; so do nodes.
static void count_sums(const struct hec_stage *s, const struct hpl_plan *plan, int32_t e,
                       struct hec_chunks *c) {
    const struct hpl_topology *t = &s->topology;
    const int32_t begin = plan->first[e], end = plan->first[e + 1];
    const double part = 2.0 * (end - begin - 1) / (end - begin);
    int32_t nodes = 0;
    for (int32_t k = begin; k < end; k++) nodes += enters(t, plan, e, k);
    const double across = 2.0 * (nodes - 1) / nodes;
    for (int32_t k = begin; k < end; k++) {
        const int32_t d = plan->holder[k], n = t->node[d];
        c->sent[d] += part, c->got[d] += part;
        if (enters(t, plan, e, k)) c->node_sent[n] += across, c->node_got[n] += across;
    }
}

void hec_chunks_count(const struct hec_stage *s, const struct hpl_plan *plan,
                      struct hec_chunks *c) {
    const enum hpl_collective collective = s->episode.policy->collective;
    memset(c->sent, 0, sizeof *c->sent * (size_t)(2 * s->topology.devices + 2 * s->topology.nodes));
    if (collective == HPL_COLLECTIVE_ALL_TO_ALL) {
        count_shards(s, plan, c);
    } else if (collective == HPL_COLLECTIVE_ALL_GATHER) {
        count_all(s, plan, c);
    }
    for (int32_t e = 0; e < plan->experts && !hpl_from_shards(s->episode.policy); e++) {
        if (collective == HPL_COLLECTIVE_EXCHANGE) {
            count_sums(s, plan, e, c);
        } else if (collective == HPL_COLLECTIVE_DIRECT) {
            count_direct(s, plan, e, c);
        } else {
            count_tree(s, plan, e, c);
        }
    }
}
