// Algorithm 2: every device owns at most its share of all chunks, light experts are spread, heavy
// ones stay where there is room. And the bounds hold for plans drawn at random.
#include "runtime/plan/bound.h"
#include "runtime/plan/reshard.h"
#include "tests/plan/plan_case.h"

enum { LAYERS = 6, CHUNKS = LAYERS * CASE_EXPERTS };

static void owners_stay_within_their_share(void **state) {
    (void)state;
    struct plan_case *c = case_new();
    int64_t rows[CHUNKS];
    int32_t present[CHUNKS], owner[CHUNKS], again[CHUNKS];
    for (int32_t i = 0; i < 500; i++) {
        uint64_t random = (uint64_t)i;
        case_draw(c, (uint64_t)i);
        const int32_t experts = c->problem.experts, devices = c->topology.devices;
        const int32_t layers = case_number(&random, 1, LAYERS);
        const int32_t overlap = case_number(&random, 0, experts);
        for (int32_t k = 0; k < layers * experts; k++) {
            rows[k] = case_number(&random, 0, 1000);
            present[k] = (int32_t)((int64_t)(k % experts) * devices / experts);
        }
        assert_int_equal(
            hpl_reshard(&c->topology, layers, experts, rows, overlap, present, owner, &c->work),
            HPL_OK);
        int32_t owned[CASE_DEVICES] = {0};
        for (int32_t k = 0; k < layers * experts; k++) {
            assert_true(owner[k] >= 0 && owner[k] < devices);
            owned[owner[k]]++;
        }
        for (int32_t d = 0; d < devices; d++) {
            assert_true(owned[d] <= (layers * experts + devices - 1) / devices);
        }
        memset(c->work.at, 0xa5, (size_t)(c->work.end - c->work.at));
        hpl_reshard(&c->topology, layers, experts, rows, overlap, present, again, &c->work);
        assert_memory_equal(owner, again, (size_t)(layers * experts) * sizeof *owner);
    }
    case_free(c);
}

// Two nodes of two devices, one layer of four experts: by hand.
static void light_experts_are_spread(void **state) {
    (void)state;
    static const int32_t first[] = {0, 2, 4}, node[] = {0, 0, 1, 1}, speed[] = {1, 1, 1, 1};
    const struct hpl_topology topology = {4, 2, first, node, speed};
    const int64_t rows[] = {100, 40, 30, 5};
    const int32_t present[] = {2, 2, 2, 2};
    int32_t owner[4];
    unsigned char memory[8192];
    struct hpl_work work = {memory, memory + sizeof memory};
    assert_int_equal(hpl_reshard(&topology, 1, 4, rows, 1, present, owner, &work), HPL_OK);
    // Light: 40 to node 0, device 0; 30 to node 1, device 2; 5 to node 1 (30 < 40), device 3.
    assert_int_equal(owner[1], 0);
    assert_int_equal(owner[2], 2);
    assert_int_equal(owner[3], 3);
    assert_int_equal(owner[0], 1); // Device 2 and its node are full.
    const int32_t bad[] = {0, 1, 2, 4};
    assert_int_equal(hpl_reshard(&topology, 1, 4, rows, 1, bad, owner, &work), HPL_BAD_ARGUMENT);
}

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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_stay_within_their_share),
        cmocka_unit_test(light_experts_are_spread),
        cmocka_unit_test(bounds_hold_for_any_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
