// A flow that is resumed after each change, against one that is solved anew.
#include "runtime/plan/live_flow.h"
#include "runtime/plan/share.h"
#include "runtime/plan/tally.h"
#include "tests/plan/plan_case.h"

enum { CASES = 60, CHANGES = 40 };

static int64_t rows_of[CASE_EXPERTS];

// A place for each owner's chunk and two slots on each device.
static void begin(struct plan_case *c, struct hpl_live *f, struct hpl_work *work) {
    const int32_t devices = c->topology.devices, experts = c->problem.experts;
    *f = (struct hpl_live){
        .experts = experts, .devices = devices, .speed = c->speed, .rows = rows_of};
    assert_true(hpl_live_take(f, experts + 2 * devices, work));
    int32_t p = 0;
    for (int32_t d = 0; d < devices; d++) {
        f->first[d] = p;
        for (int32_t e = 0; e < experts; e++) {
            if (c->owner[e] == d) f->expert[p++] = e;
        }
        f->expert[p++] = -1;
        f->expert[p++] = -1;
    }
    f->first[devices] = p;
    for (int32_t d = 0; d < devices; d++) {
        for (p = f->first[d]; p < f->first[d + 1]; p++) f->device[p] = d;
    }
    for (int32_t e = 0; e < experts; e++) {
        rows_of[e] = 0;
        for (int32_t d = 0; d < devices; d++) rows_of[e] += c->rows[d * experts + e];
    }
}

static struct hpl_level mean(const struct plan_case *c) {
    int64_t sum = 0;
    for (int32_t e = 0; e < c->problem.experts; e++) sum += rows_of[e];
    return (struct hpl_level){sum, hpl_tally_speed(&c->topology)};
}

// Every row is in one place, and no device has more than the level allows.
static void check_rows(const struct plan_case *c, const struct hpl_live *f) {
    int64_t left = 0, placed[CASE_EXPERTS] = {0};
    for (int32_t d = 0; d < f->devices; d++) {
        int64_t load = 0;
        for (int32_t p = f->first[d]; p < f->first[d + 1]; p++) {
            assert_true(f->share[p] >= 0);
            assert_true(f->share[p] == 0 || f->expert[p] >= 0);
            load += f->share[p];
            if (f->expert[p] >= 0) placed[f->expert[p]] += f->share[p];
        }
        assert_true(f->room[d] >= 0);
        assert_int_equal(load + f->room[d], hpl_level_rows(f->level, c->speed[d]));
    }
    for (int32_t e = 0; e < f->experts; e++) {
        assert_int_equal(placed[e] + f->left[e], rows_of[e]);
        left += f->left[e];
    }
    assert_int_equal(left, f->all_left);
}

// The least level of the places' plan, by the flow of shares.
static struct hpl_level least(struct plan_case *c, const struct hpl_live *f) {
    struct hpl_level level;
    int32_t holders = 0;
    for (int32_t e = 0; e < f->experts; e++) {
        c->plan.first[e] = holders;
        for (int32_t p = 0; p < f->places; p++) {
            if (f->expert[p] == e) c->plan.holder[holders++] = f->device[p];
        }
    }
    c->plan.first[f->experts] = holders;
    assert_int_equal(hpl_share_level(&c->topology, &c->plan, &c->loads, 0, &level, NULL, &c->work),
                     HPL_OK);
    return level;
}

// Puts any expert, or none, in any slot; owners stay.
static void change(struct plan_case *c, struct hpl_live *f, uint64_t *state) {
    const int32_t d = case_number(state, 0, f->devices - 1);
    const int32_t p = f->first[d + 1] - case_number(state, 1, 2);
    const int32_t e = case_number(state, -1, f->experts - 1);
    for (int32_t k = f->first[d]; e >= 0 && k < f->first[d + 1]; k++) {
        if (f->expert[k] == e) return;
    }
    hpl_live_replace(f, p, e);
    check_rows(c, f);
}

static void a_resumed_flow_is_as_large_as_a_new_one(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    for (int32_t i = 0; i < CASES; i++) {
        uint64_t sequence = (uint64_t)i;
        struct hpl_live f;
        case_draw(c, (uint64_t)i + 500);
        unsigned char *memory = malloc(1 << 20);
        struct hpl_work work = {.at = memory, .end = memory + (1 << 20)};
        begin(c, &f, &work);
        hpl_live_begin(&f, mean(c));
        for (int32_t k = 0; k < CHANGES; k++) {
            change(c, &f, &sequence);
            if (k % 4 == 3) hpl_live_set_level(&f, mean(c));
            check_rows(c, &f);
            const bool fits = hpl_live_run(&f);
            check_rows(c, &f);
            const struct hpl_level level = least(c, &f);
            const int64_t wanted = hpl_level_rows(level, 1), have = hpl_level_rows(f.level, 1);
            if (have > wanted) assert_true(fits);
            if (have < wanted) assert_false(fits);
            hpl_live_raise(&f);
            check_rows(c, &f);
            assert_int_equal(f.all_left, 0);
            const int64_t raised = hpl_level_rows(f.level, 1);
            assert_true(raised <= hpl_max(have, wanted + 1) && raised >= hpl_min(have, wanted - 1));
        }
        free(memory);
    }
    case_free(c);
}

// Where rows are left over, the cut and what is open have nothing in common.
static void a_cut_and_what_is_open_are_apart(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    int32_t cuts = 0;
    for (int32_t i = 0; i < CASES; i++) {
        struct hpl_live f;
        case_draw(c, (uint64_t)i + 900);
        unsigned char *memory = malloc(1 << 20);
        struct hpl_work work = {.at = memory, .end = memory + (1 << 20)};
        uint64_t sequence = (uint64_t)i;
        begin(c, &f, &work);
        hpl_live_begin(&f, mean(c));
        for (int32_t k = 0; k < CHANGES; k++) change(c, &f, &sequence);
        if (!hpl_live_run(&f)) {
            cuts++;
            hpl_live_find_open(&f);
            for (int32_t v = 0; v < f.experts + f.devices; v++)
                assert_false(f.open[v] && f.depth[v] >= 0);
            for (int32_t d = 0; d < f.devices; d++)
                assert_true(f.room[d] == 0 || f.open[f.experts + d]);
        }
        free(memory);
    }
    assert_true(cuts > CASES / 3);
    case_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resumed_flow_is_as_large_as_a_new_one),
        cmocka_unit_test(a_cut_and_what_is_open_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
