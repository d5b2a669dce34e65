// How far policy fssdp is from the best plan there is: 4 experts on 4 devices in 2 nodes, every
// placement within the budget tried. And the lower bound is one, for every placement.
#include "runtime/plan/bound.h"
#include "tests/plan/plan_case.h"

enum { SIZE = 4, CASES = 150 };

struct result {
    int64_t load, cross; // By the best shares, slack 0.
};

static void evaluate(struct plan_case *c, const struct hpl_plan *plan, struct result *result) {
    struct hpl_level level;
    assert_int_equal(hpl_share(&c->topology, plan, &c->loads, 0, c->share, &level, &c->work),
                     HPL_OK);
    *result = (struct result){0, 0};
    for (int32_t d = 0; d < SIZE; d++) {
        int64_t load = 0;
        for (int32_t k = 0; k < plan->first[SIZE]; k++) {
            if (plan->holder[k] == d) load += c->share[k];
        }
        if (load > result->load) result->load = load;
    }
    for (int32_t e = 0; e < SIZE; e++) {
        for (int32_t n = 0; n < 2; n++) {
            int64_t here = 0, starts = 0;
            for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
                if (plan->holder[k] / 2 == n) here += c->share[k];
            }
            for (int32_t d = 2 * n; d < 2 * n + 2; d++) starts += c->rows[d * SIZE + e];
            result->cross += starts > here ? starts - here : 0;
        }
    }
}

static void draw(struct plan_case *c, uint64_t seed, int32_t slots, int32_t entries) {
    static const int32_t first[] = {0, 2, 4};
    uint64_t state = seed;
    case_draw(c, seed);
    memcpy(c->first, first, sizeof first);
    for (int32_t d = 0; d < SIZE; d++) c->node[d] = d / 2, c->speed[d] = 1, c->owner[d] = d;
    c->topology = (struct hpl_topology){SIZE, 2, c->first, c->node, c->speed};
    c->problem.experts = c->loads.experts = c->plan.experts = SIZE;
    c->loads.devices = SIZE;
    c->problem.budget = (struct hpl_budget){.slots = slots, .entries = entries};
    for (int32_t e = 0; e < SIZE; e++) {
        const int32_t most = case_number(&state, 0, 2) == 0 ? 400 : 60;
        for (int32_t d = 0; d < SIZE; d++) {
            c->rows[d * SIZE + e] = (uint32_t)case_number(&state, 0, most);
        }
    }
}

// The plan in which device d also holds the experts of bits 4 * d to 4 * d + 3. False when the
// budget forbids it.
static bool plan_of(const struct plan_case *c, uint32_t bits, struct hpl_plan *plan) {
    int32_t holders = 0, entries[2] = {0};
    for (int32_t d = 0; d < SIZE; d++) {
        const uint32_t own = bits >> (SIZE * d) & 15;
        if (own >> d & 1 || __builtin_popcount(own) > c->problem.budget.slots) return false;
    }
    for (int32_t e = 0; e < SIZE; e++) {
        bool enters = false;
        plan->first[e] = holders;
        for (int32_t d = 0; d < SIZE; d++) {
            const bool replica = bits >> (SIZE * d + e) & 1;
            if (replica || d == e) plan->holder[holders++] = d;
            enters = enters || (replica && d / 2 != e / 2);
        }
        entries[1 - e / 2] += enters;
    }
    plan->first[SIZE] = holders;
    return entries[0] <= c->problem.budget.entries && entries[1] <= c->problem.budget.entries;
}

// Best load over all plans, and the least crossing rows at that load.
static struct result search(struct plan_case *c) {
    int32_t first[SIZE + 1], holder[SIZE * SIZE];
    struct hpl_plan plan = {SIZE, SIZE * SIZE, first, holder};
    struct result best = {INT64_MAX, INT64_MAX};
    for (uint32_t bits = 0; bits < 1u << (SIZE * SIZE); bits++) {
        if (!plan_of(c, bits, &plan)) continue;
        struct result result;
        evaluate(c, &plan, &result);
        if (result.load < best.load || (result.load == best.load && result.cross < best.cross)) {
            best = result;
        }
    }
    return best;
}

// Figures for one budget; fails when quota is farther from the optimum than `mean` and `worst`.
static void compare(int32_t slots, int32_t entries, double mean, double worst) {
    struct plan_case *c = case_new();
    double sum = 0, most = 1, bound_sum = 0;
    int32_t equal = 0, tight = 0;
    for (int32_t i = 0; i < CASES; i++) {
        draw(c, (uint64_t)i, slots, entries);
        const struct result best = search(c);
        struct result got;
        assert_int_equal(hpl_place(hpl_policy_find("fssdp"), &c->problem, &c->plan, NULL, &c->work),
                         HPL_OK);
        evaluate(c, &c->plan, &got);
        struct hpl_bound bound;
        assert_int_equal(hpl_bound(&c->problem, 1000 * best.load, &bound, &c->work), HPL_OK);
        assert_true(bound.load <= 1000 * best.load);
        assert_true(bound.cross <= best.cross);
        assert_true(got.load >= best.load); // Or the search forgot a plan.
        const double ratio = best.load ? (double)got.load / (double)best.load : 1;
        sum += ratio;
        if (ratio > most) most = ratio;
        equal += got.load == best.load;
        tight += bound.load > 1000 * (best.load - 1);
        bound_sum += best.load ? 1000.0 * (double)best.load / (double)bound.load : 1;
    }
    print_message(
        "%d slots, %d entries: load over the optimum %.4f on average, %.3f at most, equal "
        "in %d of %d; optimum over bound %.4f, bound tight in %d\n",
        slots, entries, sum / CASES, most, equal, CASES, bound_sum / CASES, tight);
    assert_true(sum / CASES <= mean);
    assert_true(most <= worst);
    assert_true(bound_sum / CASES <= 1.002); // The bound is worth something, too.
    case_free(c);
}

static void quota_is_near_the_optimum(void **state) {
    (void)state;
    compare(0, 0, 1.0, 1.0);
    compare(1, 0, 1.0, 1.0);
    compare(1, 1, 1.005, 1.25);
    compare(1, 2, 1.0, 1.0);
    compare(2, 1, 1.0, 1.0);
    compare(2, 2, 1.0, 1.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(quota_is_near_the_optimum)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
