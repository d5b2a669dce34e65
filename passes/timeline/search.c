// Candidates and the choice among them, by simulated steps.
//
// t first: the chunks that windows hide, from bytes. Then m at that t, t around it, and again until neither
// changes, each re-materialized where it does not fit otherwise; then the other way, and without calibration.
// The fastest of those that fit in memory wins, and of those within one part in a hundred as sums, in two hundred
// message by message, the one that takes least memory.
//
// All of that is done for replicas that live for an iteration and, where that is open, for a step: then also at a lower
// price of chunks that enter a node.
//
// Then it is done once more from the best of these on, and the candidates near it are simulated message by message.
//
// At last t = 0 with owners of its own: those for another t leave the most loaded experts to replicas.
#include "passes/timeline/search.h"

#include <math.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "passes/timeline/candidates.h"
#include "passes/timeline/first_owners.h"

enum { ANY_LIFETIME = -1, LIFETIMES = 2, ROUNDS = 4, DISCOUNT = 50, FINALISTS = 3 };

static const double alike[HEC_DETAILS] = {0.01, 0.005, 0.005}, surprise = 0.03;

// The error of few layers, and how many times as long m may take with one t and still be tried with another.
static const double few_layers = 0.01, hopeless = 1.5;

// ---- what the user said

void hec_search_settings(MlirOperation module, struct hec_search *s) {
    s->fixed_overlap = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_overlap);
    s->fixed_slots = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_memory);
    s->fixed_calibrate = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_calibrate);
    s->fixed_rematerialize = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_rematerialize);
    // Steps of one iteration, and policies whose plans are of one, leave no choice.
    s->fixed_lifetime = !hec_setting_is_auto(module, HEC_KEY_parallel_placement_lifetime) ||
                        s->setup.movement.iterations < 2 || !hpl_may_last(s->setup.policy);
    s->slot_bytes = hec_setting_bytes(module, HEC_KEY_parallel_placement_memory);
    s->fixed_slots &= s->slot_bytes == 0;
    s->uses_overlap = s->setup.policy->calibrates; // The planner's own two policies.
    const struct hpl_movement one = {.slots = 1}, two = {.slots = 2};
    s->uses_slots = hec_replica_bytes(&s->setup.costs, s->setup.policy, &one) !=
                    hec_replica_bytes(&s->setup.costs, s->setup.policy, &two);
}

// ---- the choice

// Whether `a` is faster than `b`, or nearer to what memory there is.
static bool is_faster(const struct hec_candidate *a, const struct hec_candidate *b) {
    if (a->fits != b->fits) return a->fits;
    if (!a->fits) return a->replica_bytes < b->replica_bytes;
    if (a->us != b->us) return a->us < b->us;
    if (a->movement.overlap != b->movement.overlap)
        return a->movement.overlap < b->movement.overlap;
    return a->movement.slots < b->movement.slots;
}

static bool is_among(const struct hec_search *s, int i) {
    const struct hec_candidate *c = &s->candidate[i];
    return (s->among == ANY_LIFETIME || s->among == (int)c->movement.lifetime) &&
           c->detail >= s->detail;
}

// The best one but `except`; -1: there is none.
static int best_of(const struct hec_search *s, int except) {
    int fastest = -1;
    for (int i = 0; i < s->count; i++) {
        if (i == except || !is_among(s, i)) continue;
        if (fastest < 0 || is_faster(&s->candidate[i], &s->candidate[fastest])) fastest = i;
    }
    if (fastest < 0 || !s->candidate[fastest].fits) return fastest;
    int best = fastest;
    for (int i = 0; i < s->count; i++) {
        const struct hec_candidate *c = &s->candidate[i];
        const bool near = c->us <= (1 + alike[s->detail]) * s->candidate[fastest].us;
        const int64_t more = c->replica_bytes - s->candidate[best].replica_bytes;
        if (i != except && is_among(s, i) && c->fits && near &&
            (more < 0 || (more == 0 && is_faster(c, &s->candidate[best]))))
            best = i;
    }
    return best;
}

// The same candidate with calibration, where it costs next to nothing: loads that are assumed can be
// forecast better than those of a model that begins to learn. Real ones need no such allowance.
static int with_calibration(const struct hec_search *s, int chosen) {
    const struct hec_candidate *c = &s->candidate[chosen];
    for (int i = 0; i < s->count && !s->setup.recorded; i++) {
        const struct hec_candidate *other = &s->candidate[i];
        if (other->movement.calibrate != HPL_CALIBRATES_NEVER &&
            other->movement.overlap == c->movement.overlap &&
            other->movement.slots == c->movement.slots &&
            other->movement.rematerialize == c->movement.rematerialize &&
            other->movement.lifetime == c->movement.lifetime &&
            other->movement.import_discount == c->movement.import_discount && is_among(s, i) &&
            other->fits == c->fits && other->us <= (1 + surprise) * c->us)
            return i;
    }
    return chosen;
}

// False: there are no candidates to choose among.
static bool choose(struct hec_search *s) {
    const int best = best_of(s, -1);
    if (best < 0) return false;
    s->chosen = with_calibration(s, best);
    s->second = best_of(s, s->chosen);
    return true;
}

static int64_t most_experts(const struct hec_search *s) {
    int64_t most = 0;
    for (int i = 0; i < s->setup.costs.count; i++) {
        if (s->setup.costs.set[i].experts > most) most = s->setup.costs.set[i].experts;
    }
    return most;
}

// Re-materialization where the policy leaves it open: nobody can keep all experts of all layers,
// and what is placed for many iterations stays.
static int rematerializes(MlirOperation module, const struct hec_search *s) {
    if (hpl_gathers_all(s->setup.policy)) return 1;
    if (s->setup.policy->when == HPL_WHEN_PERIODIC) return 0;
    if (!s->fixed_rematerialize) return -1;
    return hec_setting_is(module, HEC_KEY_parallel_placement_rematerialize, "true");
}

// Whether so many slots took much longer than others, for replicas that live as long and with the same t.
static bool is_hopeless(const struct hec_search *s, const struct hpl_movement *c) {
    bool known = false, hope = false;
    for (int i = 0; i < s->count && !hope; i++) {
        const struct hec_candidate *a = &s->candidate[i];
        if (a->movement.slots != c->slots || a->movement.lifetime != c->lifetime) continue;
        double least = INFINITY;
        for (int k = 0; k < s->count; k++) {
            const struct hec_candidate *b = &s->candidate[k];
            if (b->fits && b->movement.lifetime == c->lifetime &&
                b->movement.overlap == a->movement.overlap && b->took[0] < least)
                least = b->took[0];
        }
        known = true;
        hope = a->took[0] <= hopeless * least;
    }
    return known && !hope;
}

static bool vary_slots(struct hec_searching *g, struct hpl_movement c, int rematerialize) {
    const struct hec_search *s = g->search;
    // Policies that keep nothing at owners need room for all experts.
    const int64_t devices = s->setup.costs.machine.nodes * s->setup.costs.machine.devices;
    const int64_t share = (most_experts(s) + devices - 1) / devices;
    // Those that give every node every expert need room for what its own devices do not have.
    const int64_t of_node = s->setup.costs.machine.devices;
    const int64_t lacked = (most_experts(s) + of_node - 1) / of_node - share;
    int64_t value[HEC_LISTED_MAX] = {1, 2, 3, 4, 6, 8, 12, 16, share, share + 1, 2 * share};
    if (hpl_fills_nodes(s->setup.policy)) value[8] = lacked > 0 ? lacked : 1;
    const int given =
        hec_setting_listed(g->module, HEC_KEY_parallel_placement_memory, value, HEC_LISTED_MAX);
    const int usual = hpl_from_shards(s->setup.policy)   ? 11
                      : hpl_fills_nodes(s->setup.policy) ? 9
                                                         : 8;
    struct hpl_movement choice[HEC_LISTED_MAX];
    int count = 0;
    for (int i = 0; i < (given ? given : usual); i++) {
        c.slots = value[i];
        if (c.slots <= most_experts(s) && !is_hopeless(s, &c)) choice[count++] = c;
    }
    return hec_consider(g, choice, count, rematerialize);
}

static bool vary_overlap(struct hec_searching *g, struct hpl_movement c, int rematerialize) {
    const struct hec_search *s = g->search;
    const int64_t t = c.overlap;
    int64_t value[HEC_LISTED_MAX] = {t / 4,     t / 2,     3 * t / 4, t + 1,
                                     5 * t / 4, 3 * t / 2, 2 * t,     4 * t};
    const int given = hec_setting_listed(g->module, HEC_KEY_parallel_placement_overlap, value,
                                         HEC_LISTED_MAX),
              usual = 8;
    const int count = given ? given : usual;
    struct hpl_movement choice[HEC_LISTED_MAX];
    for (int i = 0; i < count; i++) {
        c.overlap = value[i] < most_experts(s) ? value[i] : most_experts(s);
        choice[i] = c;
    }
    return hec_consider(g, choice, count, rematerialize);
}

// A candidate takes time in proportion to experts times devices: with very many of both few are compared.
static int most_candidates(const struct hec_search *s) {
    enum { CELLS = 5 << 18, LEAST = 8 };
    const int64_t devices = s->setup.costs.machine.nodes * s->setup.costs.machine.devices;
    int64_t cells = 1;
    for (int i = 0; i < s->setup.costs.count; i++) {
        const int64_t own = s->setup.costs.set[i].experts * devices;
        if (own > cells) cells = own;
    }
    const int64_t most = CELLS / cells;
    return (int)(most < LEAST ? LEAST : most > HEC_CANDIDATES_MAX ? HEC_CANDIDATES_MAX : most);
}

// The search itself: from `c` on, among replicas that live as long. False as above.
static bool find_candidates(struct hec_searching *g, struct hpl_movement c, int rematerialize) {
    struct hec_search *s = g->search;
    s->among = (int)c.lifetime;
    for (int round = 0; round < ROUNDS; round++) {
        const struct hpl_movement before = c;
        const bool one = s->fixed_slots || !s->uses_slots;
        if (!(one ? hec_consider(g, &c, 1, rematerialize) : vary_slots(g, c, rematerialize)))
            return false;
        if (!choose(s)) return true;
        c.slots = s->candidate[s->chosen].movement.slots;
        if (!s->fixed_overlap && s->uses_overlap && !vary_overlap(g, c, rematerialize))
            return false;
        choose(s);
        c = s->candidate[s->chosen].movement;
        if (c.overlap == before.overlap && c.slots == before.slots) break;
    }
    if (rematerialize < 0 && !hec_consider(g, &c, 1, !c.rematerialize)) return false;
    choose(s);
    c = s->candidate[s->chosen].movement;
    if (s->fixed_calibrate || !s->setup.policy->calibrates) return true;
    const bool never = c.calibrate == HPL_CALIBRATES_NEVER;
    c.calibrate = never ? HPL_CALIBRATES_WORTH : HPL_CALIBRATES_NEVER;
    return hec_consider(g, &c, 1, c.rematerialize);
}

// At the full price of imports, then, for replicas of a step, at a lower one: those of an iteration were 3 to 5 %
// slower with it when messages were simulated one by one. False as above.
static bool find_prices(struct hec_searching *g, struct hpl_movement c, int rematerialize) {
    struct hec_search *s = g->search;
    if (!find_candidates(g, c, rematerialize)) return false;
    if (c.lifetime != HPL_LIFETIME_STEP || !s->uses_overlap || !choose(s)) return true;
    c = s->candidate[s->chosen].movement;
    c.import_discount = DISCOUNT;
    return find_candidates(g, c, rematerialize);
}

// With either lifetime, where that is open; then the best one with the other, for comparison. False as above.
static bool find_lifetimes(struct hec_searching *g, struct hpl_movement c, int rematerialize) {
    struct hec_search *s = g->search;
    if (!find_prices(g, c, rematerialize)) return false;
    if (s->fixed_lifetime || !choose(s)) return true;
    c = s->candidate[s->chosen].movement;
    c.lifetime = HPL_LIFETIME_STEP;
    c.import_discount = 0;
    if (!find_prices(g, c, rematerialize)) return false;
    s->among = ANY_LIFETIME;
    choose(s);
    c = s->candidate[s->chosen].movement;
    c.lifetime = c.lifetime == HPL_LIFETIME_STEP ? HPL_LIFETIME_ITERATION : HPL_LIFETIME_STEP;
    return hec_consider(g, &c, 1, c.rematerialize);
}

// The fastest candidate of a lifetime at a price; -1: there is none.
static int fastest_of(const struct hec_search *s, int lifetime, int discount) {
    int of = -1;
    for (int i = 0; i < s->count; i++) {
        const struct hec_candidate *c = &s->candidate[i];
        if ((int)c->movement.lifetime == lifetime && c->movement.import_discount == discount &&
            (of < 0 || is_faster(c, &s->candidate[of])))
            of = i;
    }
    return of;
}

// The fastest ones so far in all layers, where those that are about as fast have other plans. Calibration counts as it
// does where is chosen.
static void compare_finalists(struct hec_searching *g) {
    struct hec_search *s = g->search;
    struct hpl_movement finalist[FINALISTS];
    bool taken[HEC_CANDIDATES_MAX] = {false};
    int count = 0;
    s->among = ANY_LIFETIME;
    double most = INFINITY;
    for (int round = 0; round < FINALISTS; round++) {
        int next = -1;
        for (int i = 0; i < s->count; i++) {
            if (!taken[i] && is_among(s, i) &&
                (next < 0 || is_faster(&s->candidate[i], &s->candidate[next])))
                next = i;
        }
        if (next < 0 || s->candidate[next].us > most) break;
        if (round == 0) most = (1 + few_layers) * s->candidate[next].us;
        const struct hec_candidate *with = &s->candidate[with_calibration(s, next)];
        for (int i = 0; i < s->count; i++)
            taken[i] |= hec_is_twin(&s->candidate[i], &s->candidate[next]) ||
                        hec_is_twin(&s->candidate[i], with);
        finalist[count++] = with->movement;
    }
    if (count > 1) hec_detail(g, HEC_DETAIL_WHOLE, finalist, count);
}

// The best of each lifetime and price, message by message, and from the best of these on m and t in turn. False as
// above.
static bool find_singly(struct hec_searching *g, int rematerialize) {
    struct hec_search *s = g->search;
    struct hpl_movement best[2 * LIFETIMES];
    int count = 0;
    s->among = ANY_LIFETIME;
    const int all = s->count ? best_of(s, -1) : -1;
    if (all < 0 || !s->candidate[all].fits || !hec_may_be_single(g)) return true;
    for (int k = 0; k < 2 * LIFETIMES; k++) {
        const int of = fastest_of(s, k / 2, k % 2 * DISCOUNT);
        if (of >= 0) best[count++] = s->candidate[of].movement;
    }
    hec_detail(g, HEC_DETAIL_BRIEF, best, count);
    const int first = best_of(s, -1);
    if (first >= 0 && !find_candidates(g, s->candidate[first].movement, rematerialize))
        return false;
    if (first >= 0) compare_finalists(g);
    return true;
}

// The largest `overlap` that is listed and not above it; the least listed where all are above.
static int64_t among_listed(MlirOperation module, int64_t overlap) {
    int64_t value[HEC_LISTED_MAX], best = -1, least = INT64_MAX;
    const int given =
        hec_setting_listed(module, HEC_KEY_parallel_placement_overlap, value, HEC_LISTED_MAX);
    for (int i = 0; i < given; i++) {
        if (value[i] <= overlap && value[i] > best) best = value[i];
        if (value[i] < least) least = value[i];
    }
    if (given == 0) return overlap;
    return best >= 0 ? best : least;
}

// Leaves out the candidates of which no chunk enters a node.
static void forget_at_rest(struct hec_search *s) {
    int kept = 0;
    for (int i = 0; i < s->count; i++) {
        if (s->candidate[i].movement.overlap > 0) s->candidate[kept++] = s->candidate[i];
    }
    s->count = kept;
}

// Where no chunk enters a node, with owners whom recorded loads choose for that. Slots stay for replicas inside of
// nodes, which loads that change may need. False as above.
static bool find_at_rest(struct hec_searching *g, int rematerialize) {
    struct hec_search *s = g->search;
    s->among = ANY_LIFETIME;
    if (!s->sharded || s->fixed_overlap || among_listed(g->module, 0) > 0 || !choose(s))
        return true;
    struct hpl_movement c = s->candidate[s->chosen].movement, choice[2];
    int64_t listed[HEC_LISTED_MAX];
    c.overlap = c.import_discount = 0;
    choice[0] = choice[1] = c;
    const int given =
        hec_setting_listed(g->module, HEC_KEY_parallel_placement_memory, listed, HEC_LISTED_MAX);
    if (!s->fixed_slots && s->uses_slots && given == 0) choice[1].slots = 1;
    forget_at_rest(s);
    return hec_first_owners(g->module, s, g->arena, 0) && hec_consider(g, choice, 2, rematerialize);
}

// The choice of all. Those that were simulated in less detail take as many times as long as it does.
static void choose_of_all(struct hec_search *s) {
    s->among = ANY_LIFETIME;
    while (best_of(s, -1) < 0) s->detail--; // The planner refuses all in such detail.
    choose(s);
    const struct hec_candidate chosen = s->candidate[s->chosen];
    for (int i = 0; i < s->count; i++) {
        struct hec_candidate *c = &s->candidate[i];
        if (c->detail < chosen.detail) c->us *= chosen.us / chosen.took[c->detail];
    }
}

// The entries to begin with.
static int64_t first_overlap(MlirOperation module, const struct hec_search *s) {
    const struct hpl_movement *m = &s->setup.movement;
    int64_t overlap = m->gather_hidden < m->reduce_hidden ? m->gather_hidden : m->reduce_hidden;
    if (rematerializes(module, s) == 1) overlap = m->gather_hidden_first;
    for (int i = 0; i < s->setup.costs.count && rematerializes(module, s) == 1; i++) {
        const struct hec_set_cost *c = &s->setup.costs.set[i];
        const int64_t fit = hec_fitting(&s->setup.costs.machine, c->rematerialize_window_us,
                                        c->chunk_bytes + c->grad_way_bytes);
        if (fit < overlap) overlap = fit;
    }
    if (overlap > most_experts(s)) overlap = most_experts(s);
    if (s->fixed_overlap)
        overlap = hec_setting_count(module, HEC_KEY_parallel_placement_overlap, 0);
    return among_listed(module, overlap);
}

bool hec_search(MlirOperation module, const struct hec_pass_options *options,
                struct hec_arena *arena, struct hec_search *s) {
    *s = (struct hec_search){0};
    if (!hec_setup_read(module, arena, &s->setup)) return false;
    hec_search_settings(module, s);
    const int64_t overlap = first_overlap(module, s);
    hec_even_owners(s, arena);
    if (!hec_first_owners(module, s, arena, overlap)) return false;
    struct hec_searching g = {.search = s, .arena = arena, .module = module, .options = options};
    struct hpl_movement c = s->setup.movement;
    const bool calibrate = s->setup.policy->calibrates &&
                           !hec_setting_is(module, HEC_KEY_parallel_placement_calibrate, "false");
    c.overlap = overlap;
    c.calibrate = calibrate ? HPL_CALIBRATES_WORTH : HPL_CALIBRATES_NEVER;
    c.slots = hec_setting_count(module, HEC_KEY_parallel_placement_memory, 0);
    s->most = most_candidates(s);
    const bool found = find_lifetimes(&g, c, rematerializes(module, s)) &&
                       find_singly(&g, rematerializes(module, s)) &&
                       find_at_rest(&g, rematerializes(module, s));
    hec_searching_free(&g);
    if (!found) return false;
    if (s->count == 0)
        return hec_ir_error(
            module,
            "`parallel.experts = %s` cannot place these experts on this cluster, with %s slots",
            s->setup.policy->name, s->fixed_slots ? "so few" : "1 to 8");
    choose_of_all(s);
    const bool at_rest = s->candidate[s->chosen].movement.overlap == 0;
    return !s->sharded || at_rest || hec_first_owners(module, s, arena, overlap);
}
