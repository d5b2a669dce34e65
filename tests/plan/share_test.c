// Shares and quotas against a flow that is written for reading: one vertex for each source and
// expert, one unit of cost for each row that changes device, a thousand for each that changes node.
#include "runtime/plan/share.h"
#include "tests/plan/plan_case.h"

enum { SMALL_DEVICES = 7, SMALL_EXPERTS = 6, FAR_COST = 1000 };
enum {
    SOURCE,
    SINK,
    FIRST,
    VERTICES = FIRST + SMALL_DEVICES * SMALL_EXPERTS + SMALL_DEVICES,
    ARCS = 2 * (SMALL_DEVICES * SMALL_EXPERTS * (SMALL_DEVICES + 1) + SMALL_DEVICES)
};

struct flow {
    int32_t from[ARCS], to[ARCS];
    int64_t fits[ARCS], cost[ARCS];
    int32_t arcs;
};

static void add_arc(struct flow *f, int32_t from, int32_t to, int64_t fits, int64_t cost) {
    f->from[f->arcs] = from, f->to[f->arcs] = to, f->fits[f->arcs] = fits;
    f->cost[f->arcs++] = cost;
    f->from[f->arcs] = to, f->to[f->arcs] = from, f->fits[f->arcs] = 0;
    f->cost[f->arcs++] = -cost;
}

// Bellman and Ford's shortest path, one augmentation at a time. Returns the rows that arrive.
static int64_t send_all(struct flow *f, int64_t *cost) {
    int64_t sent = 0;
    *cost = 0;
    for (;;) {
        int64_t distance[VERTICES];
        int32_t by[VERTICES];
        for (int32_t v = 0; v < VERTICES; v++) distance[v] = INT64_MAX / 4, by[v] = -1;
        distance[SOURCE] = 0;
        for (bool changed = true; changed;) {
            changed = false;
            for (int32_t a = 0; a < f->arcs; a++) {
                const int64_t through = distance[f->from[a]] + f->cost[a];
                if (f->fits[a] == 0 || distance[f->from[a]] == INT64_MAX / 4) continue;
                if (through >= distance[f->to[a]]) continue;
                distance[f->to[a]] = through;
                by[f->to[a]] = a;
                changed = true;
            }
        }
        if (by[SINK] < 0) return sent;
        int64_t rows = INT64_MAX;
        for (int32_t v = SINK; v != SOURCE; v = f->from[by[v]]) {
            if (f->fits[by[v]] < rows) rows = f->fits[by[v]];
        }
        for (int32_t v = SINK; v != SOURCE; v = f->from[by[v]]) {
            f->fits[by[v]] -= rows;
            f->fits[by[v] ^ 1] += rows;
        }
        sent += rows;
        *cost += rows * distance[SINK];
    }
}

static int64_t rows_within(struct hpl_level level, int64_t speed) {
    return (level.num * speed + level.den - 1) / level.den;
}

// The least cost when no device exceeds the level; fails the test if the rows do not fit.
static int64_t least_cost(const struct plan_case *c, struct hpl_level level) {
    struct flow *f = calloc(1, sizeof *f);
    const int32_t devices = c->topology.devices, experts = c->problem.experts;
    int64_t all = 0, cost = 0;
    for (int32_t d = 0; d < devices; d++) {
        add_arc(f, FIRST + devices * experts + d, SINK, rows_within(level, c->speed[d]), 0);
        for (int32_t e = 0; e < experts; e++) {
            const int64_t rows = c->rows[d * experts + e];
            add_arc(f, SOURCE, FIRST + d * experts + e, rows, 0);
            all += rows;
            for (int32_t k = c->plan.first[e]; k < c->plan.first[e + 1]; k++) {
                const int32_t to = c->plan.holder[k];
                const int64_t price = to == d ? 0 : c->node[to] == c->node[d] ? 1 : 1 + FAR_COST;
                add_arc(f, FIRST + d * experts + e, FIRST + devices * experts + to, rows, price);
            }
        }
    }
    assert_int_equal(send_all(f, &cost), all);
    free(f);
    return cost;
}

// A small case with a random plan.
static void draw_small(struct plan_case *c, uint64_t seed) {
    uint64_t state = seed;
    case_draw(c, seed);
    case_draw_topology(c, SMALL_DEVICES, case_number(&state, 0, 1) == 0, &state);
    const int32_t devices = c->topology.devices;
    const int32_t experts = case_number(&state, 1, SMALL_EXPERTS);
    c->problem.experts = c->loads.experts = c->plan.experts = experts;
    c->loads.devices = devices;
    int32_t holders = 0;
    const int32_t most = case_number(&state, 0, 4) == 0 ? 1000 : 20;
    for (int32_t e = 0; e < experts; e++) {
        const int32_t must = case_number(&state, 0, devices - 1);
        c->plan_first[e] = holders;
        for (int32_t d = 0; d < devices; d++) {
            if (d == must || case_number(&state, 0, 3) == 0) c->plan_holder[holders++] = d;
            const bool hot = case_number(&state, 0, 3) == 0;
            c->rows[d * experts + e] = (uint32_t)case_number(&state, 0, hot ? most : 5);
        }
    }
    c->plan_first[experts] = holders;
}

// The least level by trying every set of experts.
static struct hpl_level least_level(const struct plan_case *c, int32_t slack) {
    const int32_t devices = c->topology.devices, experts = c->problem.experts;
    struct hpl_level best = {0, 1};
    for (int32_t set = 1; set < 1 << experts; set++) {
        struct hpl_level level = {0, 0};
        for (int32_t d = 0; d < devices; d++) {
            bool reached = set == (1 << experts) - 1; // The mean counts all devices.
            for (int32_t e = 0; e < experts; e++) {
                if (!(set >> e & 1)) continue;
                level.num += c->rows[d * experts + e];
                reached = reached || case_holds(&c->plan, e, d);
            }
            if (reached) level.den += c->speed[d];
        }
        if (set == (1 << experts) - 1) level.num *= 1000 + slack, level.den *= 1000;
        if (level.num * best.den > best.num * level.den) best = level;
    }
    // And all experts over the devices that hold any.
    struct hpl_level all = {0, 0};
    for (int32_t d = 0; d < devices; d++) {
        bool reached = false;
        for (int32_t e = 0; e < experts; e++) {
            all.num += c->rows[d * experts + e];
            reached = reached || case_holds(&c->plan, e, d);
        }
        if (reached) all.den += c->speed[d];
    }
    return all.num * best.den > best.num * all.den ? all : best;
}

// Routes all ranks; returns the cost in the flow's prices.
static int64_t route_all(struct plan_case *c) {
    const int32_t devices = c->topology.devices, experts = c->problem.experts;
    int64_t cost = 0, sums[CASE_HOLDERS] = {0};
    uint32_t rows[CASE_HOLDERS];
    for (int32_t rank = 0; rank < devices; rank++) {
        assert_int_equal(
            hpl_route(&c->topology, &c->plan, &c->loads, c->share, rank, rows, &c->work), HPL_OK);
        for (int32_t e = 0; e < experts; e++) {
            int64_t sum = 0;
            for (int32_t k = c->plan.first[e]; k < c->plan.first[e + 1]; k++) {
                const int32_t to = c->plan.holder[k];
                sum += rows[k];
                sums[k] += rows[k];
                if (to != rank) cost += rows[k];
                if (c->node[to] != c->node[rank]) cost += (int64_t)FAR_COST * rows[k];
            }
            assert_int_equal(sum, c->rows[rank * experts + e]);
        }
    }
    for (int32_t k = 0; k < c->plan.first[experts]; k++) assert_int_equal(sums[k], c->share[k]);
    return cost;
}

static void shares_equal_the_flow(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    int32_t moved = 0;
    for (int32_t i = 0; i < 3000; i++) {
        draw_small(c, (uint64_t)i);
        const int32_t slack = i % 3 == 0 ? 0 : 10 * (i % 30);
        struct hpl_level level;
        assert_int_equal(
            hpl_share(&c->topology, &c->plan, &c->loads, slack, c->share, &level, &c->work),
            HPL_OK);
        const struct hpl_level wanted = least_level(c, slack);
        for (int32_t d = 0; d < c->topology.devices; d++) {
            // The flow stops at the first level whose rows, rounded up, suffice.
            assert_true(rows_within(level, c->speed[d]) <= rows_within(wanted, c->speed[d]));
            int64_t load = 0;
            for (int32_t k = 0; k < c->plan.first[c->problem.experts]; k++) {
                assert_true(c->share[k] >= 0);
                if (c->plan.holder[k] == d) load += c->share[k];
            }
            assert_true(load <= rows_within(level, c->speed[d]));
        }
        const int64_t cost = route_all(c);
        const int64_t least = least_cost(c, level);
        if (cost != least)
            fail_msg("case %d: cost %lld, least %lld", i, (long long)cost, (long long)least);
        moved += cost > FAR_COST;
    }
    assert_true(moved > 1000); // The comparison had something to compare.
    case_free(c);
}

// No level below can hold the rows: with whole rows, the flow must fail one row lower.
static void the_level_is_the_least_for_equal_speeds(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    for (int32_t i = 0; i < 2000; i++) {
        draw_small(c, 70000 + (uint64_t)i);
        for (int32_t d = 0; d < c->topology.devices; d++) c->speed[d] = 1;
        struct hpl_level level;
        hpl_share(&c->topology, &c->plan, &c->loads, 0, c->share, &level, &c->work);
        const struct hpl_level wanted = least_level(c, 0);
        assert_int_equal(rows_within(level, 1), rows_within(wanted, 1));
    }
    case_free(c);
}

static void rows_without_a_holder_are_refused(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    draw_small(c, 12);
    c->rows[0] = 1;
    for (int32_t e = 1; e <= c->problem.experts; e++) c->plan_first[e] -= c->plan_first[1];
    struct hpl_level level;
    assert_int_equal(hpl_share(&c->topology, &c->plan, &c->loads, 0, c->share, &level, &c->work),
                     HPL_BAD_ARGUMENT);
    draw_small(c, 12);
    assert_int_equal(hpl_share(&c->topology, &c->plan, &c->loads, -1, c->share, &level, &c->work),
                     HPL_BAD_ARGUMENT);
    struct hpl_work small = {.at = c->work.at, .end = c->work.at + 64};
    assert_int_equal(hpl_share(&c->topology, &c->plan, &c->loads, 0, c->share, &level, &small),
                     HPL_NO_ROOM);
    assert_int_equal(hpl_route(&c->topology, &c->plan, &c->loads, c->share, c->topology.devices,
                               c->rows, &c->work),
                     HPL_BAD_ARGUMENT);
    case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_equal_the_flow),
        cmocka_unit_test(the_level_is_the_least_for_equal_speeds),
        cmocka_unit_test(rows_without_a_holder_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
