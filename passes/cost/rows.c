// Rows of the plan that a stage has made, counted.
#include "passes/cost/rows.h"

#include <math.h>
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

// ---- rows that cross once to a node

enum { HEC_PICKS_MAX = 64 };

double hec_rows_once(double tokens, double rows, int32_t picks) {
    const double part = tokens > 0 ? rows / (tokens * picks) : 0;
    return part < 1 ? tokens * (1 - pow(1 - part, picks)) : tokens;
}

double hec_rows_once_part(double tokens, double once, int32_t picks, double part) {
    if (part >= 1 || once <= 0) return once;
    const double one = once < tokens ? 1 - pow(1 - once / tokens, 1.0 / picks) : 1;
    return tokens * (1 - pow(1 - part * one, picks));
}

// Adds an expert to sums over choices of `picks` experts, all different: a token has the expert with the odds `has` to
// 1 - has, and in the node at hand with the part `there` of them. By the number of chosen experts: the odds of the
// choices, of those with none in the node, and those of all times how many they have there.
struct choices {
    double all[HEC_PICKS_MAX + 1], none[HEC_PICKS_MAX + 1], there[HEC_PICKS_MAX + 1];
};

static void add_expert(struct choices *c, int32_t picks, double has, double there) {
    for (int32_t i = picks; i > 0; i--) {
        c->there[i] = c->there[i] * (1 - has) + c->there[i - 1] * has + c->all[i - 1] * there;
        c->all[i] = c->all[i] * (1 - has) + c->all[i - 1] * has;
        c->none[i] = c->none[i] * (1 - has) + c->none[i - 1] * (has - there);
    }
    c->all[0] *= 1 - has;
    c->none[0] *= 1 - has;
}

// Tokens of a rank that was routed with rows in a node, per row there (conditional Bernoulli sampling).
static double tokens_of_row(const struct hec_stage *s, int32_t rank, double tokens, int32_t node) {
    const int32_t experts = s->plan.experts, picks = s->scene->cost->picks;
    struct choices c = {.all = {1}, .none = {1}};
    for (int32_t e = 0; e < experts; e++) {
        const double rows = s->exact[(size_t)rank * (size_t)experts + (size_t)e];
        int64_t there = 0;
        for (int32_t k = s->plan.first[e]; k < s->plan.first[e + 1]; k++)
            there += s->topology.node[s->plan.holder[k]] == node ? (int64_t)s->quota[k] : 0;
        const double has = rows < tokens ? rows / tokens : 1;
        if (rows > 0) add_expert(&c, picks, has, has * ((double)there / rows));
    }
    return c.there[picks] > 0 ? fmin((c.all[picks] - c.none[picks]) / c.there[picks], 1) : 1;
}

// Counts the tokens of a rank that was routed: once [nodes].
static void count_once(const struct hec_stage *s, int32_t rank, double *once) {
    const int32_t experts = s->plan.experts, picks = s->scene->cost->picks;
    double all = 0;
    for (int32_t e = 0; e < experts; e++)
        all += s->exact[(size_t)rank * (size_t)experts + (size_t)e];
    const double tokens = all / picks;
    for (int32_t node = 0; node < s->topology.nodes; node++) {
        double rows = 0;
        for (int32_t k = 0; k < s->plan.first[experts]; k++)
            rows += s->topology.node[s->plan.holder[k]] == node ? s->quota[k] : 0;
        once[node] = node == s->topology.node[rank] || rows <= 0 ? 0
                     : picks > HEC_PICKS_MAX ? hec_rows_once(tokens, rows, picks)
                                             : rows * tokens_of_row(s, rank, tokens, node);
    }
}

bool hec_rows_pairs(struct hec_stage *s, double *pair, double *once) {
    const int32_t devices = s->topology.devices;
    memset(pair, 0, sizeof *pair * (size_t)devices * (size_t)devices);
    for (int32_t rank = 0; rank < devices; rank++) {
        if (hpl_episode_route(&s->episode, s->exact, &s->plan, rank, s->quota) != HPL_OK)
            return false;
        for (int32_t k = 0; k < s->plan.first[s->plan.experts]; k++)
            pair[(size_t)rank * (size_t)devices + (size_t)s->plan.holder[k]] += s->quota[k];
        if (once) count_once(s, rank, once + (size_t)rank * (size_t)s->topology.nodes);
    }
    return true;
}
