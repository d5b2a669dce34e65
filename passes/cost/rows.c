// Rows of the plan that a stage has made, counted.
#include "passes/cost/rows.h"

#include <string.h>

#include "runtime/plan/share.h"

struct hec_rows hec_rows_take(struct hec_stage *s) {
    const int32_t devices = s->topology.devices, nodes = s->topology.nodes;
    int64_t *numbers =
        hec_arena_alloc(&s->arena, (size_t)(3 * devices + 3 * nodes), sizeof *numbers);
    struct hec_rows r = {.load = numbers};
    r.sent = r.load + devices, r.got = r.sent + devices;
    r.node_sent = r.got + devices, r.node_got = r.node_sent + nodes;
    r.lacked = r.node_got + nodes;
    return r;
}

// Rows of `rank` that holders from .. to - 1 of the plan get.
static void add_routes(const struct hec_stage *s, struct hec_rows *r, int32_t rank, int32_t from,
                       int32_t to) {
    const int32_t home = s->topology.node[rank];
    for (int32_t k = from; k < to; k++) {
        const int32_t d = s->plan.holder[k], node = s->topology.node[d];
        const int64_t rows = s->quota[k];
        r->load[d] += rows;
        if (d == rank) continue;
        r->sent[rank] += rows;
        r->got[d] += rows;
        if (node == home) continue;
        r->node_sent[home] += rows;
        r->node_got[node] += rows;
    }
}

// Routes every rank.
static bool count_routes(struct hec_stage *s, struct hec_rows *r) {
    for (int32_t rank = 0; rank < s->topology.devices; rank++) {
        if (hpl_episode_route(&s->episode, s->exact, &s->plan, rank, s->quota) != HPL_OK)
            return false;
        add_routes(s, r, rank, 0, s->plan.first[s->plan.experts]);
    }
    return true;
}

// The same under an even split, where most holders get nothing of a rank: a thousand devices may all hold everything.
static void count_even(struct hec_stage *s, struct hec_rows *r) {
    const struct hpl_loads loads = {s->topology.devices, s->plan.experts, s->exact};
    const enum hpl_even even = hpl_split_even(s->episode.split);
    for (int32_t rank = 0; rank < s->topology.devices; rank++) {
        for (int32_t e = 0; e < s->plan.experts; e++) {
            int32_t from, to;
            if (s->exact[(size_t)rank * (size_t)s->plan.experts + (size_t)e] == 0) continue;
            hpl_route_even_expert(&s->topology, &s->plan, &loads, even, rank, e, s->quota, &from,
                                  &to);
            add_routes(s, r, rank, from, to);
        }
    }
}

// The same sums under quotas, which keep as many rows as shares allow on their device, then in their node:
// as routing every rank would give.
static void count_shares(const struct hec_stage *s, struct hec_rows *r) {
    const int32_t experts = s->plan.experts, nodes = s->topology.nodes;
    for (int32_t e = 0; e < experts; e++) {
        memset(r->lacked, 0, sizeof *r->lacked * (size_t)nodes); // Rows that the nodes lack.
        for (int32_t d = 0; d < s->topology.devices; d++) {
            const int64_t rows = s->exact[(size_t)d * (size_t)experts + (size_t)e];
            r->sent[d] += rows;
            r->lacked[s->topology.node[d]] -= rows;
        }
        for (int32_t k = s->plan.first[e]; k < s->plan.first[e + 1]; k++) {
            const int32_t d = s->plan.holder[k];
            const int64_t own = s->exact[(size_t)d * (size_t)experts + (size_t)e];
            const int64_t kept = own < s->episode.share[k] ? own : s->episode.share[k];
            r->load[d] += s->episode.share[k];
            r->sent[d] -= kept;
            r->got[d] += s->episode.share[k] - kept;
            r->lacked[s->topology.node[d]] += s->episode.share[k];
        }
        for (int32_t n = 0; n < nodes; n++) {
            const int64_t more = r->lacked[n];
            if (more > 0) {
                r->node_got[n] += more;
            } else {
                r->node_sent[n] -= more;
            }
        }
    }
}

bool hec_rows_count(struct hec_stage *s, struct hec_rows *r) {
    memset(r->load, 0, sizeof *r->load * (size_t)(3 * s->topology.devices)); // load, sent, got
    memset(r->node_sent, 0, sizeof *r->node_sent * (size_t)(2 * s->topology.nodes));
    if (s->episode.split == HPL_SPLIT_PLANNED) return count_routes(s, r);
    if (s->episode.split == HPL_SPLIT_QUOTA) {
        count_shares(s, r);
    } else {
        count_even(s, r);
    }
    return true;
}

bool hec_rows_pairs(struct hec_stage *s, double *pair) {
    const int32_t devices = s->topology.devices;
    memset(pair, 0, sizeof *pair * (size_t)devices * (size_t)devices);
    for (int32_t rank = 0; rank < devices; rank++) {
        if (hpl_episode_route(&s->episode, s->exact, &s->plan, rank, s->quota) != HPL_OK)
            return false;
        for (int32_t k = 0; k < s->plan.first[s->plan.experts]; k++)
            pair[(size_t)rank * (size_t)devices + (size_t)s->plan.holder[k]] += s->quota[k];
    }
    return true;
}
