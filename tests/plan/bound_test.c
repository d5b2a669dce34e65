// Lower bounds: no plan drawn at random beats them, and where they can be worked out by hand they are
// as high as they should be.
#include "runtime/plan/bound.h"
#include "tests/plan/plan_case.h"

// Adds random replicas to the owners, as far as the budget goes.
static void draw_plan(struct plan_case *c, uint64_t *random, bool all) {
    const int32_t experts = c->problem.experts, devices = c->topology.devices;
    bool held[CASE_EXPERTS][CASE_DEVICES] = {{false}};
    int32_t slots[CASE_DEVICES], entries[CASE_DEVICES], copies[CASE_DEVICES][CASE_EXPERTS] = {{0}};
    for (int32_t d = 0; d < devices; d++) slots[d] = c->problem.budget.slots;
    for (int32_t n = 0; n < c->topology.nodes; n++) entries[n] = c->problem.budget.entries;
    for (int32_t e = 0; e < experts; e++) {
        held[e][c->owner[e]] = true;
        copies[c->node[c->owner[e]]][e]++;
    }
    for (int32_t i = 0; i < (all ? 2000 : 10); i++) {
        const int32_t e = case_number(random, 0, experts - 1);
        const int32_t d = case_number(random, 0, devices - 1), n = c->node[d];
        if (held[e][d] || slots[d] == 0 || (copies[n][e] == 0 && entries[n] == 0)) continue;
        entries[n] -= copies[n][e]++ == 0;
        slots[d]--;
        held[e][d] = true;
    }
    int32_t holders = 0;
    for (int32_t e = 0; e < experts; e++) {
        c->plan_first[e] = holders;
        for (int32_t d = 0; d < devices; d++) {
            if (held[e][d]) c->plan_holder[holders++] = d;
        }
    }
    c->plan_first[experts] = holders;
}

static void bounds_hold_for_any_plan(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    int32_t above_mean = 0;
    for (int32_t i = 0; i < 1500; i++) {
        uint64_t random = (uint64_t)i + 7;
        case_draw(c, (uint64_t)i);
        int32_t first[CASE_EXPERTS + 1], holder[CASE_HOLDERS];
        struct hpl_plan part = {c->problem.experts, CASE_HOLDERS, first, holder};
        draw_plan(c, &random, false);
        memcpy(first, c->plan_first, sizeof first);
        memcpy(holder, c->plan_holder, sizeof holder);
        const bool from_part = i % 2 == 0; // Bound what can be added to a part, or to the owners.
        if (!from_part) draw_plan(c, &random, true);
        struct hpl_problem problem = c->problem;
        problem.present = from_part ? &part : NULL;
        struct hpl_level level;
        assert_int_equal(
            hpl_share(&c->topology, &c->plan, &c->loads, 0, c->share, &level, &c->work), HPL_OK);
        struct hpl_bound bound;
        const int64_t load = (1000 * level.num + level.den - 1) / level.den;
        assert_int_equal(hpl_bound(&problem, load, &bound, &c->work), HPL_OK);
        if (bound.load > load)
            fail_msg("case %d: bound %lld above a plan's %lld", i, (long long)bound.load,
                     (long long)load);
        int64_t all = 0, speed = 0;
        for (int32_t d = 0; d < c->topology.devices; d++) speed += c->speed[d];
        for (int32_t k = 0; k < c->topology.devices * c->problem.experts; k++) all += c->rows[k];
        above_mean += bound.load > 1000 * all / speed + 1;
    }
    assert_true(above_mean > 100); // It says more than the mean does.
    case_free(c);
}

// One node of two devices: the second can take one chunk only of the first's three.
static void few_slots_raise_the_bound(void **state) {
    (void)state;
    static const int32_t first[] = {0, 2}, node[] = {0, 0}, speed[] = {1, 1}, owner[] = {0, 0, 0};
    static const uint32_t rows[] = {5, 5, 5, 5, 5, 5};
    const struct hpl_topology topology = {2, 1, first, node, speed};
    const struct hpl_loads loads = {2, 3, rows};
    struct hpl_problem problem = {
        .topology = &topology, .experts = 3, .owner = owner, .loads = &loads};
    unsigned char memory[1 << 17];
    struct hpl_work work = {.at = memory, .end = memory + sizeof memory};
    static const int64_t wanted[] = {30, 20, 15, 15}; // By slots.
    for (int32_t slots = 0; slots < 4; slots++) {
        struct hpl_bound bound;
        problem.budget.slots = slots;
        assert_int_equal(hpl_bound(&problem, 100000, &bound, &work), HPL_OK);
        assert_true(bound.load >= 1000 * wanted[slots] - 1 && bound.load <= 1000 * wanted[slots]);
        assert_int_equal(bound.cross, 0);
    }
}

// Two nodes of one device, two chunks in the first. Half of the rows start in each.
static void few_entries_raise_the_bounds(void **state) {
    (void)state;
    static const int32_t first[] = {0, 1, 2}, node[] = {0, 1}, speed[] = {1, 1}, owner[] = {0, 0};
    static const uint32_t rows[] = {6, 14, 6, 14};
    const struct hpl_topology topology = {2, 2, first, node, speed};
    const struct hpl_loads loads = {2, 2, rows};
    struct hpl_problem problem = {
        .topology = &topology, .experts = 2, .owner = owner, .loads = &loads, .budget.slots = 2};
    unsigned char memory[1 << 17];
    struct hpl_work work = {.at = memory, .end = memory + sizeof memory};
    // Nothing enters: all 40 rows in the first node, 20 of them from the second. One chunk: the
    // second node keeps its 14 and sends 6, or at a load of 20 computes 6 of the first's as well.
    static const int64_t load[] = {40, 20, 20}, cross[] = {20, 12, 0};
    for (int32_t entries = 0; entries < 3; entries++) {
        struct hpl_bound bound;
        problem.budget.entries = entries;
        assert_int_equal(hpl_bound(&problem, 1000 * load[entries], &bound, &work), HPL_OK);
        assert_true(bound.load >= 1000 * load[entries] - 1 && bound.load <= 1000 * load[entries]);
        assert_true(bound.cross >= cross[entries] - 1 && bound.cross <= cross[entries]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_hold_for_any_plan),
        cmocka_unit_test(few_slots_raise_the_bound),
        cmocka_unit_test(few_entries_raise_the_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
