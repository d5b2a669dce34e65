// Every policy on random problems: plans within the budget, every row routed to a holder, the same
// plan whatever the workspace held before.
#include "runtime/plan/bound.h"
#include "runtime/plan/calibrate.h"
#include "runtime/plan/policy.h"
#include "tests/plan/check.h"
#include "tests/plan/plan_case.h"

enum { CASES = 400 };

// laer needs a place for every expert.
static bool must_refuse(const struct plan_case *c, const struct hpl_policy *policy) {
    const struct hpl_budget *budget = &c->problem.budget;
    const int32_t slots = budget->slots < c->problem.experts ? budget->slots : c->problem.experts;
    return strcmp(policy->name, "laer") == 0 && c->topology.devices * slots < c->problem.experts;
}

static void check_plan(const struct plan_case *c, const struct hpl_plan *plan) {
    assert_int_equal(plan->experts, c->problem.experts);
    assert_int_equal(plan->first[0], 0);
    for (int32_t e = 0; e < plan->experts; e++) {
        assert_true(plan->first[e] < plan->first[e + 1]); // Someone holds it.
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            assert_true(plan->holder[k] >= 0 && plan->holder[k] < c->topology.devices);
            if (k > plan->first[e]) assert_true(plan->holder[k] > plan->holder[k - 1]);
        }
    }
}

// Slots of devices and entries of nodes, counted without the planner.
static void check_budget(const struct plan_case *c, const struct hpl_plan *plan, bool entries_too) {
    int32_t slots[CASE_DEVICES] = {0}, entries[CASE_DEVICES] = {0};
    for (int32_t e = 0; e < plan->experts; e++) {
        assert_true(case_holds(plan, e, c->owner[e]));
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            slots[plan->holder[k]] += plan->holder[k] != c->owner[e];
        }
        for (int32_t n = 0; n < c->topology.nodes; n++) {
            bool present = false;
            for (int32_t d = c->first[n]; d < c->first[n + 1]; d++) {
                present = present || case_holds(plan, e, d);
            }
            entries[n] += present && n != c->node[c->owner[e]];
        }
    }
    for (int32_t d = 0; d < c->topology.devices; d++) {
        assert_true(slots[d] <= c->problem.budget.slots);
    }
    for (int32_t n = 0; entries_too && n < c->topology.nodes; n++) {
        assert_true(entries[n] <= c->problem.budget.entries);
    }
}

static enum hpl_status split(struct plan_case *c, const struct hpl_policy *policy, int32_t rank,
                             uint32_t *rows) {
    if (policy->split == HPL_SPLIT_QUOTA || policy->split == HPL_SPLIT_PLANNED) {
        return hpl_route(&c->topology, &c->plan, &c->loads, c->share, rank, rows, &c->work);
    }
    const enum hpl_even even = policy->split == HPL_SPLIT_NEAREST ? HPL_EVEN_NEAREST
                               : policy->split == HPL_SPLIT_NODE  ? HPL_EVEN_NODE
                                                                  : HPL_EVEN_ALL;
    hpl_route_even(&c->topology, &c->plan, &c->loads, even, rank, rows);
    return HPL_OK;
}

// Every rank's rows go somewhere, and since quotas are listed by holder, only where a holder is.
static void check_routes(struct plan_case *c, const struct hpl_policy *policy) {
    uint32_t rows[CASE_HOLDERS];
    for (int32_t rank = 0; rank < c->topology.devices; rank++) {
        assert_int_equal(split(c, policy, rank, rows), HPL_OK);
        for (int32_t e = 0; e < c->problem.experts; e++) {
            int64_t sum = 0;
            for (int32_t k = c->plan.first[e]; k < c->plan.first[e + 1]; k++) sum += rows[k];
            assert_int_equal(sum, c->rows[rank * c->problem.experts + e]);
        }
    }
}

static void plans_are_sound(void **state) {
    const struct hpl_policy *policy = *state;
    struct plan_case *c = case_new();
    for (int32_t i = 0; i < CASES; i++) {
        case_draw(c, (uint64_t)i);
        const enum hpl_status status = hpl_place(policy, &c->problem, &c->plan, c->share, &c->work);
        assert_int_equal(status, must_refuse(c, policy) ? HPL_BAD_ARGUMENT : HPL_OK);
        if (status != HPL_OK) continue;
        check_plan(c, &c->plan);
        // The paper's algorithm limits experts that move, not entries of a node.
        if (policy->calibrates) check_budget(c, &c->plan, policy->split == HPL_SPLIT_QUOTA);
        if (policy->split == HPL_SPLIT_QUOTA) {
            struct hpl_level level;
            assert_int_equal(hpl_share(&c->topology, &c->plan, &c->loads, c->problem.budget.slack,
                                       c->share, &level, &c->work),
                             HPL_OK);
        }
        check_routes(c, policy);
    }
    case_free(c);
}

// Two ranks with nothing in common but the input: other memory, other rubbish in it.
static void ranks_agree(void **state) {
    const struct hpl_policy *policy = *state;
    struct plan_case *a = case_new(), *b = case_new();
    for (int32_t i = 0; i < CASES; i++) {
        case_draw(a, (uint64_t)i);
        case_draw(b, (uint64_t)i);
        memset(b->work.at, 0xa5, (size_t)(b->work.end - b->work.at));
        memset(b->plan_holder, 0x5a, sizeof b->plan_holder);
        const enum hpl_status status = hpl_place(policy, &a->problem, &a->plan, a->share, &a->work);
        assert_int_equal(hpl_place(policy, &b->problem, &b->plan, b->share, &b->work), status);
        if (status != HPL_OK) continue;
        const size_t holders = (size_t)a->plan.first[a->problem.experts];
        assert_memory_equal(a->plan_first, b->plan_first, 4 * (size_t)(a->problem.experts + 1));
        assert_memory_equal(a->plan_holder, b->plan_holder, holders * 4);
        if (policy->split == HPL_SPLIT_PLANNED) {
            assert_memory_equal(a->share, b->share, holders * 8);
        }
    }
    case_free(a);
    case_free(b);
}

static void a_small_workspace_is_refused(void **state) {
    const struct hpl_policy *policy = *state;
    struct plan_case *c = case_new();
    for (int32_t i = 0; i < 20; i++) {
        case_draw(c, (uint64_t)i);
        for (size_t bytes = 0; bytes < 4096; bytes += 256) {
            struct hpl_work small = {.at = c->work.at, .end = c->work.at + bytes};
            const enum hpl_status status =
                hpl_place(policy, &c->problem, &c->plan, c->share, &small);
            assert_true(status == HPL_OK || status == HPL_NO_ROOM || must_refuse(c, policy));
        }
        c->plan.capacity = c->problem.experts - 1;
        const enum hpl_status status = hpl_place(policy, &c->problem, &c->plan, c->share, &c->work);
        assert_true(status == HPL_NO_ROOM || must_refuse(c, policy));
    }
    case_free(c);
}

// Calibration leaves in c->share the shares of the plan that it keeps; their level, found by itself.
static void check_shares(struct plan_case *c, const struct hpl_plan *plan,
                         const struct hpl_problem *problem) {
    static int64_t share[CASE_HOLDERS];
    static unsigned char full[CASE_DEVICES];
    const int32_t slack = problem->budget.slack;
    struct hpl_level level, alone;
    assert_int_equal(hpl_share(&c->topology, plan, problem->loads, slack, share, &level, &c->work),
                     HPL_OK);
    assert_memory_equal(share, c->share, sizeof *share * (size_t)plan->first[plan->experts]);
    assert_int_equal(
        hpl_share_level(&c->topology, plan, problem->loads, slack, &alone, full, &c->work), HPL_OK);
    assert_true(level.num * alone.den == alone.num * level.den);
}

// Calibration adds to the plan, within what is left, and never makes the largest load larger.
static void calibration_only_adds(void **state) {
    const struct hpl_policy *policy = *state;
    const bool is_quota = policy->split == HPL_SPLIT_QUOTA;
    struct plan_case *c = case_new();
    int32_t first[CASE_EXPERTS + 1], holder[CASE_HOLDERS], taken = 0;
    uint32_t exact[CASE_DEVICES * CASE_EXPERTS];
    for (int32_t i = 0; i < CASES; i++) {
        case_draw(c, (uint64_t)i);
        c->problem.budget.replica_rows = INT32_MAX;
        struct hpl_problem first_problem = c->problem;
        first_problem.budget.slots /= 2;
        assert_int_equal(hpl_place(policy, &first_problem, &c->plan, NULL, &c->work), HPL_OK);
        const enum hpl_split split = i % 3 == 0 && !is_quota ? HPL_SPLIT_ALL : policy->split;
        struct hpl_plan after = {c->problem.experts, CASE_HOLDERS, first, holder};
        struct hpl_problem problem = c->problem;
        uint64_t random = (uint64_t)i;
        for (int32_t k = 0; k < c->topology.devices * c->problem.experts; k++) {
            exact[k] = c->rows[k] * (uint32_t)case_number(&random, 0, 4);
        }
        const struct hpl_loads loads = {c->topology.devices, c->problem.experts, exact};
        struct hpl_calibration result;
        problem.present = &c->plan;
        problem.loads = &loads;
        assert_int_equal(
            hpl_calibrate(&problem, policy, split, i % 2 == 0, &after, c->share, &result, &c->work),
            HPL_OK);
        check_budget(c, &after, is_quota);
        if (split == HPL_SPLIT_QUOTA) check_shares(c, &after, &problem);
        int32_t added = 0;
        for (int32_t e = 0; e < c->problem.experts; e++) {
            for (int32_t d = 0; d < c->topology.devices; d++) {
                if (case_holds(&c->plan, e, d))
                    assert_true(case_holds(&after, e, d));
                else
                    added += case_holds(&after, e, d);
            }
        }
        assert_int_equal(added, result.taken ? result.added : 0);
        if (result.taken) assert_true(result.level_after < result.level_before);
        if (result.taken && i % 2 == 1) assert_true(result.gain > result.price);
        taken += result.taken;
    }
    assert_true(taken > 50);
    case_free(c);
}

// hpl_work_bytes promises enough for plan, shares, quotas, bound, calibration and schedule.
static void the_promised_workspace_suffices(void **state) {
    (void)state;
    const struct hpl_policy *quota = hpl_policy_find("fssdp");
    struct plan_case *c = case_new();
    static struct hpl_transfer transfers[CASE_HOLDERS * HPL_SEGMENTS_MAX];
    static uint32_t rows[CASE_HOLDERS];
    static int32_t first[CASE_EXPERTS + 1], holder[CASE_HOLDERS];
    for (int32_t i = 0; i < CASES; i++) {
        case_draw(c, (uint64_t)i);
        const int32_t experts = c->problem.experts, devices = c->topology.devices;
        const int32_t slots = c->problem.budget.slots < experts ? c->problem.budget.slots : experts;
        const size_t bytes =
            hpl_work_bytes(experts, devices, c->topology.nodes, experts + devices * slots);
        assert_true(bytes <= (size_t)(c->work.end - c->work.at));
        struct hpl_work work = {.at = c->work.at, .end = c->work.at + bytes};
        struct hpl_level level;
        struct hpl_bound bound;
        struct hpl_calibration result;
        struct hpl_plan after = {experts, CASE_HOLDERS, first, holder};
        struct hpl_schedule schedule = {.capacity = CASE_HOLDERS * HPL_SEGMENTS_MAX,
                                        .transfer = transfers};
        struct hpl_traffic traffic = {0};
        assert_int_equal(hpl_place(quota, &c->problem, &c->plan, NULL, &work), HPL_OK);
        assert_int_equal(hpl_share(&c->topology, &c->plan, &c->loads, 0, c->share, &level, &work),
                         HPL_OK);
        assert_int_equal(hpl_route(&c->topology, &c->plan, &c->loads, c->share, 0, rows, &work),
                         HPL_OK);
        c->problem.present = &c->plan;
        assert_int_equal(hpl_bound(&c->problem, 0, &bound, &work), HPL_OK);
        assert_int_equal(hpl_calibrate(&c->problem, quota, HPL_SPLIT_QUOTA, true, &after, c->share,
                                       &result, &work),
                         HPL_OK);
        assert_int_equal(hpl_schedule_gather(&c->topology, c->owner, &c->plan, HPL_SEGMENTS_MAX,
                                             &schedule, &work),
                         HPL_OK);
        assert_int_equal(
            hpl_check_gather(&c->topology, c->owner, &c->plan, &schedule, &traffic, &work),
            HPL_SOUND);
    }
    case_free(c);
}

static void bad_problems_are_refused(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    case_draw(c, 5);
    struct hpl_problem bad = c->problem;
    bad.budget.slots = -1;
    assert_int_equal(hpl_problem_check(&bad), HPL_BAD_ARGUMENT);
    bad = c->problem;
    bad.experts++;
    assert_int_equal(hpl_problem_check(&bad), HPL_BAD_ARGUMENT);
    bad = c->problem;
    bad.costs.chunk_send = HPL_PRICE_MAX + 1;
    assert_int_equal(hpl_problem_check(&bad), HPL_BAD_ARGUMENT);
    c->owner[0] = c->topology.devices;
    assert_int_equal(hpl_problem_check(&c->problem), HPL_BAD_ARGUMENT);
    case_draw(c, 5);
    c->speed[0] = 0;
    assert_int_equal(hpl_problem_check(&c->problem), HPL_BAD_ARGUMENT);
    case_draw(c, 5);
    c->first[c->topology.nodes]++;
    assert_int_equal(hpl_problem_check(&c->problem), HPL_BAD_ARGUMENT);
    assert_null(hpl_policy_find("quot"));
    assert_null(hpl_policy_find("quotas"));
    case_free(c);
}

int main(void) {
    struct CMUnitTest tests[64];
    char names[64][64];
    int32_t count = 0;
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } each[] = {{"plans_are_sound", plans_are_sound},
                {"ranks_agree", ranks_agree},
                {"a_small_workspace_is_refused", a_small_workspace_is_refused}};
    for (size_t t = 0; t < sizeof each / sizeof *each; t++) {
        for (int32_t i = 0; i < hpl_policy_count; i++, count++) {
            snprintf(names[count], sizeof names[count], "%s(%s)", each[t].name,
                     hpl_policies[i].name);
            tests[count] = (struct CMUnitTest){.name = names[count],
                                               .test_func = each[t].run,
                                               .initial_state = (void *)&hpl_policies[i]};
        }
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(calibration_only_adds,
                                                                  (void *)hpl_policy_find("fssdp"));
    tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(
        calibration_only_adds, (void *)hpl_policy_find("hecate"));
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(the_promised_workspace_suffices);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(bad_problems_are_refused);
    return _cmocka_run_group_tests("policies", tests, (size_t)count, NULL, NULL);
}
