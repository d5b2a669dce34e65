// The simulation of one layer's phases: against numbers worked out by hand, and its limits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/cost/simulate.h"
#include "runtime/plan/loads/synthesize.h"

enum { NODES = 2, DEVICES = 4, EXPERTS = 16, ROWS = 1024 };

static const struct hec_machine machine = {
    .nodes = NODES,
    .devices = DEVICES,
    .intra_bandwidth = 1e9,
    .intra_latency = 1e-6,
    .inter_bandwidth = 1e8,
    .inter_latency = 1e-5,
};

static struct hec_set_cost cost_of(void) {
    return (struct hec_set_cost){
        .name = "sparse",
        .experts = EXPERTS,
        .layers = 2,
        .rows = ROWS,
        .wave_rows = 100 * ROWS,
        .row_bytes = 100,
        .chunk_bytes = 10000,
        .grad_bytes = 20000,
        .row_forward_us = 1,
        .row_backward_us = 2,
        .window_us = 1e9,
        .reduce_window_us = 1e9,
        .rematerialize_window_us = 1e9,
    };
}

static void near(double value, double wanted, double share) {
    if (fabs(value - wanted) > share * fabs(wanted))
        fail_msg("%g is not within %g of %g", value, share * wanted, wanted);
}

struct scene {
    struct hec_scene scene;
    struct hec_set_cost cost;
    struct loads loads;
    int32_t owner[2 * EXPERTS];
};

static void begin(struct scene *s, double skew) {
    const struct synthesis wanted = {.iterations = 6,
                                     .layers = 2,
                                     .devices = NODES * DEVICES,
                                     .microbatches = 1,
                                     .experts = EXPERTS,
                                     .rows = ROWS,
                                     .skew = skew,
                                     .drift = 0,
                                     .bias = 0,
                                     .seed = 7};
    assert_true(synthesize(&wanted, &s->loads));
    s->cost = cost_of();
    for (int i = 0; i < 2 * EXPERTS; i++) {
        s->owner[i] = i % EXPERTS * NODES * DEVICES / EXPERTS;
    }
    s->scene = (struct hec_scene){.machine = &machine,
                                  .cost = &s->cost,
                                  .loads = &s->loads,
                                  .layers = 2,
                                  .owner = s->owner,
                                  .steps = 10};
}

static struct hec_phases simulate(struct scene *s, const char *policy, int64_t slots,
                                  int64_t entries) {
    struct hpl_movement movement = {.overlap = entries, .slots = slots, .window = 3};
    struct hec_phases phases;
    strcpy(movement.policy, policy);
    hec_set_prices(&movement, &machine, &s->cost, 1);
    assert_true(hec_simulate(&s->scene, &movement, &phases));
    return phases;
}

static void test_transfer(void **state) {
    (void)state;
    // 2 chunks of 10,000 bytes over 1e8 bytes/s: 200 us; 5 over 1e9: 50 us. The longer, both delays.
    near(hec_transfer_us(&machine, 2, 5, 10000), 200 / hec_reached_of_link + 10 + 1, 1e-9);
    near(hec_transfer_us(&machine, 0, 5, 10000), 50 / hec_reached_of_link + 1, 1e-9);
    near(hec_transfer_us(&machine, 2, 50, 10000), 500 / hec_reached_of_link + 10 + 1, 1e-9);
    assert_true(hec_transfer_us(&machine, 0, 0, 10000) == 0);
}

static void test_balanced(void **state) {
    (void)state;
    struct scene s;
    begin(&s, 0);
    for (size_t i = 0; i < (size_t)6 * 2 * NODES * DEVICES * EXPERTS; i++) {
        s.loads.rows[i] = ROWS / EXPERTS;
    }
    const struct hec_phases ep = simulate(&s, "ep", 0, 0);
    struct hec_phases even;
    hec_simulate_balanced(&s.scene, &even);
    near(ep.imbalance, 1, 1e-9);
    near(ep.experts_us, 3.0 * ROWS, 1e-9);
    near(ep.experts_us, even.experts_us, 1e-9);
    near(ep.rows_us, even.rows_us, 1e-9);
    near(ep.cross, 0.5, 1e-9);
    near(ep.intra, 3.0 / 8, 1e-9);
    // Four times half of a node's rows over its link.
    near(even.rows_us, 4 * (1e6 * DEVICES * ROWS * 0.5 * 100 / (hec_reached_of_link * 1e8) + 11),
         1e-9);
    loads_free(&s.loads);
}

static void test_replicas(void **state) {
    (void)state;
    struct scene s;
    begin(&s, 1.2);
    const struct hec_phases ep = simulate(&s, "ep", 0, 0);
    const struct hec_phases none = simulate(&s, "fssdp", 2, 0), some = simulate(&s, "fssdp", 2, 3);
    assert_true(ep.imbalance > 2);
    assert_true(none.imbalance < ep.imbalance && some.imbalance < 1.1);
    assert_true(none.entries == 0 && some.entries > 0 && some.entries <= 3);
    assert_true(none.received <= 2 && some.received <= 2 && some.replicas <= 2 * NODES * DEVICES);
    assert_true(some.cross < ep.cross);
    near(some.experts_us, 3.0 * ROWS * some.imbalance, 1e-6);
    assert_true(ep.gather_us == 0 && ep.exposed_us == 0);
    loads_free(&s.loads);
}

static void test_windows(void **state) {
    (void)state;
    struct scene s;
    begin(&s, 1.2);
    const struct hec_phases hidden = simulate(&s, "fssdp", 2, 3);
    assert_true(hidden.exposed_us == 0);
    // One of two layers' parameters come again when backward begins.
    near(hidden.exposed_rematerialized_us, hidden.gather_us / 2, 1e-9);
    s.cost.window_us = s.cost.reduce_window_us = s.cost.rematerialize_window_us = 0;
    // The experts of one layer hide the other's: the next one's parameters, the one's above gradients.
    const struct hec_phases next = simulate(&s, "fssdp", 2, 3);
    near(next.exposed_us, (next.gather_us + next.reduce_us) / 2, 1e-9);
    near(next.exposed_rematerialized_us, 2 * next.gather_us + next.reduce_us, 1e-9);
    s.cost.row_forward_us = s.cost.row_backward_us = 0;
    const struct hec_phases waited = simulate(&s, "fssdp", 2, 3);
    near(waited.exposed_us, waited.gather_us + waited.reduce_us, 1e-9);
    near(waited.exposed_rematerialized_us, next.exposed_rematerialized_us, 1e-9);
    near(hec_layer_us(&waited, true) - hec_layer_us(&waited, false), waited.gather_us, 1e-9);
    // What is planned on exact counts comes behind attention, however long that takes.
    s.cost.window_us = s.cost.reduce_window_us = s.cost.rematerialize_window_us = 1e9;
    const struct hec_phases exact = simulate(&s, "llep", 2, 3);
    assert_true(exact.gather_us > 0);
    near(exact.exposed_us, exact.gather_us, 1e-9);
    loads_free(&s.loads);
}

// Rows beyond a wave's room are recomputed in backward.
static void test_waves(void **state) {
    (void)state;
    struct scene s;
    begin(&s, 1.2);
    const struct hec_phases one = simulate(&s, "ep", 0, 0);
    s.cost.wave_rows = ROWS;
    const struct hec_phases many = simulate(&s, "ep", 0, 0);
    near(one.waves, 1, 1e-9);
    assert_true(many.waves > 2);
    assert_true(many.experts_us > 1.1 * one.experts_us &&
                many.experts_us < 4.0 / 3 * one.experts_us);
    assert_true(many.rows_us > one.rows_us);
    loads_free(&s.loads);
}

// What is placed for many iterations grows old, and owners move with it: balance is worse, and an expert
// with one holder is never gathered.
static void test_placement_grows_old(void **state) {
    (void)state;
    struct scene s;
    begin(&s, 1.2);
    for (uint32_t i = 0; i < 6; i++) { // Another expert is popular in every iteration.
        uint16_t *rows = s.loads.rows + (size_t)i * 2 * NODES * DEVICES * EXPERTS;
        for (int32_t k = 0; k < 2 * NODES * DEVICES * EXPERTS; k++)
            rows[k] = k % EXPERTS == (int32_t)i / 2 ? 800 : 10;
    }
    struct hpl_movement choice = {.policy = "eplb", .slots = 2, .window = 1};
    struct hec_phases never, always, rarely;
    hec_set_prices(&choice, &machine, &s.cost, 1);
    assert_true(hec_simulate(&s.scene, &choice, &never));
    assert_true(never.replicas == 0 && never.gather_us == 0);
    choice.reshard_every = 1;
    assert_true(hec_simulate(&s.scene, &choice, &always));
    choice.reshard_every = 8;
    assert_true(hec_simulate(&s.scene, &choice, &rarely));
    assert_true(always.imbalance < 0.9 * rarely.imbalance);
    strcpy(choice.policy, "smartmoe");
    assert_true(hec_simulate(&s.scene, &choice, &rarely));
    assert_true(rarely.gather_us == 0);
    loads_free(&s.loads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfer), cmocka_unit_test(test_balanced),
        cmocka_unit_test(test_replicas), cmocka_unit_test(test_windows),
        cmocka_unit_test(test_waves),    cmocka_unit_test(test_placement_grows_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
