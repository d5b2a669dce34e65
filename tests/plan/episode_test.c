// An episode over iterations with numbers that can be checked by hand, and on random problems: plans are
// those of the functions it is made of.
#include "runtime/plan/episode.h"

#include "runtime/plan/plan.h"
#include "tests/plan/plan_case.h"

enum { LAYERS = 2, PAST = 4 };

// Counts of PAST iterations of a random problem; every one has half as many rows again as the one before,
// and other popular experts.
struct run {
    struct plan_case *c;
    struct hpl_episode episode;
    uint32_t past[PAST + 1][CASE_DEVICES * CASE_EXPERTS];
    int32_t seen; // Iterations so far.
    int32_t owner[LAYERS * CASE_EXPERTS], next[LAYERS * CASE_EXPERTS];
    void *memory;
};

static const uint32_t *counts(void *context, int32_t layer, int32_t back) {
    struct run *run = context;
    assert_in_range(layer, 0, LAYERS - 1);
    return back <= run->seen ? run->past[run->seen - back] : NULL;
}

static void begin(struct run *run, const char *policy, uint64_t seed) {
    struct plan_case *c = run->c;
    case_draw(c, seed);
    const int32_t experts = c->problem.experts, cells = experts * c->topology.devices;
    for (int32_t t = 0; t <= PAST; t++) {
        for (int32_t i = 0; i < cells; i++)
            run->past[t][i] = t ? run->past[t - 1][cells - 1 - i] * 3 / 2 + 1 : c->rows[i];
    }
    for (int32_t i = 0; i < LAYERS * experts; i++) run->owner[i] = c->owner[i % experts];
    run->seen = 0;
    run->episode = (struct hpl_episode){.topology = &c->topology,
                                        .layers = LAYERS,
                                        .experts = experts,
                                        .counts = counts,
                                        .context = run,
                                        .owner = run->owner};
    struct hpl_movement movement = {.slots = 3,
                                    .overlap = 4,
                                    .calibrate = HPL_CALIBRATES_ALWAYS,
                                    .window = 3,
                                    .gather_hidden_first = 1,
                                    .gather_hidden = 2,
                                    .reduce_hidden_first = 3,
                                    .reduce_hidden = 4,
                                    .row_compute = 1,
                                    .row_send = 1,
                                    .chunk_send = 500};
    strcpy(movement.policy, policy);
    assert_true(hpl_episode_move(&run->episode, &movement, &(struct hpl_sizes){1000, 2000, 10}));
    const size_t bytes = hpl_episode_bytes(&run->episode, CASE_HOLDERS);
    free(run->memory);
    run->memory = malloc(bytes);
    const struct hpl_work work = {.at = run->memory, .end = (unsigned char *)run->memory + bytes};
    assert_int_equal(hpl_episode_begin(&run->episode, work, CASE_HOLDERS), HPL_OK);
}

static void check_same(const struct hpl_plan *a, const struct hpl_plan *b) {
    assert_int_equal(a->experts, b->experts);
    assert_memory_equal(a->first, b->first, ((size_t)a->experts + 1) * sizeof *a->first);
    assert_memory_equal(a->holder, b->holder, (size_t)a->first[a->experts] * sizeof *a->holder);
}

static struct run *new_run(void) {
    struct run *run = calloc(1, sizeof *run);
    assert_non_null(run);
    run->c = case_new();
    return run;
}

static void free_run(struct run *run) {
    case_free(run->c);
    free(run->memory);
    free(run);
}

static void the_forecast_is_the_rounded_mean(void **state) {
    (void)state;
    struct run *run = new_run();
    begin(run, "fssdp", 3);
    const uint32_t *forecast = run->episode.forecast;
    assert_false(hpl_episode_forecast(&run->episode, 1));
    assert_int_equal(forecast[0], 0);
    uint32_t given[LAYERS * CASE_DEVICES * CASE_EXPERTS] = {0};
    given[run->episode.experts * run->c->topology.devices] = 77; // An expert of layer 1.
    run->episode.given = given;
    assert_true(hpl_episode_forecast(&run->episode, 1));
    assert_int_equal(forecast[0], 77);
    run->past[0][0] = 1, run->past[1][0] = 2, run->past[2][0] = 2, run->past[3][0] = 9;
    run->seen = 2;
    assert_true(hpl_episode_forecast(&run->episode, 1));
    assert_int_equal(forecast[0], 2); // 3 / 2, up
    run->seen = 4;
    hpl_episode_forecast(&run->episode, 0);
    assert_int_equal(forecast[0], 4); // 13 / 3, of the last three
    free_run(run);
}

// Owners alone, then what the policy makes of the mean; calibrated plans have the shares that a second
// look would find.
static void plans_are_those_of_the_planner(void **state) {
    (void)state;
    struct run *run = new_run();
    int32_t calibrated = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct hpl_calibration result;
        static int64_t share[CASE_HOLDERS];
        begin(run, seed % 2 ? "fssdp" : "hecate", seed);
        struct hpl_episode *e = &run->episode;
        struct plan_case *c = run->c;
        assert_int_equal(hpl_episode_plan(e, 1, NULL, &c->plan), HPL_OK);
        assert_int_equal(c->plan.first[c->plan.experts], c->plan.experts);
        run->seen = 1;
        if (hpl_episode_plan(e, 1, NULL, &c->plan) != HPL_OK) continue; // Too few slots.
        c->problem.loads = &(struct hpl_loads){c->topology.devices, e->experts, run->past[0]};
        c->problem.budget = e->plan[1].budget;
        c->problem.costs = e->plan[1].costs;
        assert_int_equal(hpl_place(e->policy, &c->problem, &e->spare, NULL, &c->work), HPL_OK);
        check_same(&c->plan, &e->spare);
        assert_int_equal(hpl_episode_calibrate(e, 1, 1, run->past[1], &c->plan, &result), HPL_OK);
        calibrated += result.taken;
        assert_int_equal(hpl_episode_divide(e, 1, run->past[1], &c->plan), HPL_OK);
        const size_t bytes = (size_t)c->plan.first[e->experts] * sizeof *share;
        memcpy(share, e->share, bytes); // Found by calibration.
        memset(e->share, 0xff, (size_t)CASE_HOLDERS * sizeof *e->share);
        assert_int_equal(hpl_episode_divide(e, 1, run->past[1], &c->plan), HPL_OK);
        if (e->split == HPL_SPLIT_QUOTA) assert_memory_equal(share, e->share, bytes);
    }
    assert_true(calibrated > 5);
    free_run(run);
}

// Replicas that stay for more iterations are added more often.
static void more_is_added_early_in_a_step(void **state) {
    (void)state;
    static const int64_t left[] = {1, 2, 8};
    struct run *run = new_run();
    int64_t taken[3] = {0};
    for (uint64_t seed = 0; seed < 60; seed++) {
        for (int i = 0; i < 3; i++) {
            struct hpl_calibration result;
            begin(run, "fssdp", seed);
            run->episode.calibrates = HPL_CALIBRATES_WORTH;
            run->episode.late[1].costs.chunk_send = 100000; // Dear: a step pays for few.
            run->seen = 1;
            if (hpl_episode_plan(&run->episode, 1, NULL, &run->c->plan) != HPL_OK) continue;
            assert_int_equal(hpl_episode_calibrate(&run->episode, 1, left[i], run->past[1],
                                                   &run->c->plan, &result),
                             HPL_OK);
            taken[i] += result.taken;
            assert_true(!result.taken || result.gain > result.price);
        }
    }
    assert_true(0 < taken[0] && taken[0] < taken[1] && taken[1] < taken[2]);
    free_run(run);
}

// Counts that are known before the gate give the plan that calibration would make behind it, and more replicas.
static void known_plans_are_calibrated(void **state) {
    (void)state;
    struct run *run = new_run();
    struct hpl_episode *e = &run->episode;
    struct hpl_plan *plan = &run->c->plan;
    int32_t larger = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct hpl_calibration result;
        begin(run, "fssdp", seed);
        memcpy(run->past[1], run->past[0], sizeof run->past[0]);
        run->seen = 1;
        if (hpl_episode_plan(e, 1, NULL, plan) != HPL_OK) continue;
        assert_int_equal(hpl_episode_calibrate(e, 1, 1, run->past[1], plan, &result), HPL_OK);
        const int32_t holders = plan->first[plan->experts];
        e->known = true;
        assert_int_equal(hpl_episode_plan(e, 1, NULL, plan), HPL_OK);
        assert_true(plan->first[plan->experts] >= holders);
        larger += plan->first[plan->experts] > holders;
        assert_int_equal(hpl_episode_calibrate(e, 1, 1, run->past[1], plan, &result), HPL_OK);
        assert_int_equal(result.level_after, result.level_before); // Nothing is left for later.
    }
    assert_true(larger > 5);
    free_run(run);
}

// Replicas that balance does not need are left to calibration only where there is one; the first layer hides less.
static void terms(void **state) {
    (void)state;
    struct run *run = new_run();
    begin(run, "fssdp", 5);
    const struct hpl_episode *e = &run->episode;
    assert_int_equal(e->plan[0].budget.gather_hidden, 1);
    assert_int_equal(e->plan[1].budget.gather_hidden, 2);
    assert_int_equal(e->plan[1].budget.replica_rows, INT32_MAX);
    assert_int_equal(e->late[1].budget.entries, e->experts);
    assert_int_equal(e->late[1].costs.row_compute, 3);
    const struct hpl_movement never = {.policy = "fssdp", .slots = 1000};
    assert_true(hpl_episode_move(&run->episode, &never, &(struct hpl_sizes){1000, 2000, 1}));
    assert_int_equal(e->plan[1].budget.slots, e->experts);
    assert_int_equal(e->plan[1].budget.replica_rows, (1024 + 2048) / 4);
    free_run(run);
}

// A periodic policy's placement stays until it is placed anew; then every owner holds what it owns.
static void owners_follow_placements(void **state) {
    (void)state;
    struct run *run = new_run();
    int32_t moved = 0;
    for (uint64_t seed = 0; seed < 30; seed++) {
        begin(run, seed % 2 ? "flexmoe" : "eplb", seed);
        struct hpl_episode *e = &run->episode;
        struct plan_case *c = run->c;
        int64_t owned[CASE_DEVICES] = {0};
        assert_int_equal(hpl_plan_of_owners(&c->plan, e->experts, run->owner), HPL_OK);
        run->seen = 2;
        assert_int_equal(hpl_episode_plan(e, 0, NULL, &c->plan), HPL_OK);
        assert_int_equal(c->plan.first[e->experts], e->experts);
        if (hpl_episode_place_anew(e, 0, &c->plan) != HPL_OK) continue;
        hpl_episode_follow(e, 0, &c->plan, owned, run->next);
        for (int32_t i = 0; i < e->experts; i++) {
            assert_true(hpl_plan_holds(&c->plan, i, run->next[i]));
            moved += run->next[i] != run->owner[i];
            if (hpl_plan_holds(&c->plan, i, run->owner[i]))
                assert_int_equal(run->next[i], run->owner[i]);
        }
        // Where it goes on from the placement, not from the owners that followed it.
        for (int32_t i = 0; i < e->experts; i++)
            run->owner[i] = (run->next[i] + 1) % c->topology.devices;
        assert_int_equal(hpl_episode_place_anew(e, 0, &c->plan), HPL_OK);
    }
    assert_true(moved > 10);
    free_run(run);
}

// Owners of all layers spread after their forecasts, of policies of ours, once every layer has one.
static void owners_spread(void **state) {
    (void)state;
    struct run *run = new_run();
    begin(run, "fssdp", 8);
    const size_t bytes = LAYERS * (size_t)run->episode.experts * sizeof *run->owner;
    assert_int_equal(hpl_episode_spread(&run->episode, run->next), HPL_OK);
    assert_memory_equal(run->next, run->owner, bytes);
    run->seen = 3;
    assert_int_equal(hpl_episode_spread(&run->episode, run->next), HPL_OK);
    assert_memory_not_equal(run->next, run->owner, bytes);
    begin(run, "llep", 8);
    run->seen = 3;
    assert_int_equal(hpl_episode_spread(&run->episode, run->next), HPL_OK);
    assert_memory_equal(run->next, run->owner, bytes);
    free_run(run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forecast_is_the_rounded_mean),
        cmocka_unit_test(plans_are_those_of_the_planner),
        cmocka_unit_test(known_plans_are_calibrated),
        cmocka_unit_test(more_is_added_early_in_a_step),
        cmocka_unit_test(terms),
        cmocka_unit_test(owners_follow_placements),
        cmocka_unit_test(owners_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
