// The bytes of each policy's collective in the timeline: single messages and sums through ports are as many
// bytes, and those that can be worked out by hand. Two nodes of four devices; chunks of 8,000 bytes, gradients
// of 16,000.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "passes/timeline/owners.h"
#include "runtime/plan/loads/synthesize.h"
#include "runtime/plan/plan.h"

enum {
    NODES = 2,
    EACH = 4,
    DEVICES = NODES * EACH,
    EXPERTS = 16,
    SLOTS = 3,
    PORTS = 2 * DEVICES + 2 * NODES
};
static const double chunk = 8000, gradient = 16000, owner = 72000;

static const struct hec_machine machine = {
    .nodes = NODES,
    .devices = EACH,
    .intra_bandwidth = 1e9,
    .intra_latency = 1e-6,
    .inter_bandwidth = 1e8,
    .inter_latency = 1e-5,
};

// Bytes through ports, of one way.
struct carried {
    double sent[DEVICES], got[DEVICES], node_sent[NODES], node_got[NODES];
    double copies; // In the plan.
};

struct layer {
    struct loads loads;
    struct hec_set_cost cost;
    int32_t owner[EXPERTS];
    struct hec_mover mover;
    struct hec_traffic traffic;
};

static bool once; // Rows cross once to a node.

static void begin(struct layer *l, const char *policy, bool sums, int64_t iterations) {
    const struct synthesis wanted = {.iterations = 6,
                                     .layers = 1,
                                     .devices = DEVICES,
                                     .microbatches = 1,
                                     .experts = EXPERTS,
                                     .rows = 1024,
                                     .skew = 1.2,
                                     .drift = 1.5,
                                     .seed = 7};
    *l = (struct layer){.cost = {.name = "sparse",
                                 .experts = EXPERTS,
                                 .layers = 1,
                                 .rows = 1024,
                                 .wave_rows = 100000,
                                 .row_bytes = 100,
                                 .picks = 2,
                                 .once = once,
                                 .chunk_bytes = (int64_t)chunk,
                                 .grad_bytes = (int64_t)gradient,
                                 .grad_way_bytes = (int64_t)gradient,
                                 .owner_bytes = (int64_t)owner,
                                 .row_forward_us = 1,
                                 .row_backward_us = 2}};
    assert_true(synthesize(&wanted, &l->loads));
    for (int32_t e = 0; e < EXPERTS; e++) l->owner[e] = e * DEVICES / EXPERTS;
    l->mover = (struct hec_mover){
        .lanes = hec_lanes_create(&machine, sums),
        .cost = &l->cost,
        .segments = 4,
        .sums = sums,
        .iterations = iterations,
        .owner = l->owner,
        .scene = {.machine = &machine,
                  .cost = &l->cost,
                  .loads = &l->loads,
                  .layers = 1,
                  .owner = l->owner},
        .movement = {.even = true, .overlap = 4, .slots = SLOTS, .window = 2, .reshard_every = 2}};
    strcpy(l->mover.movement.policy, policy);
    l->mover.movement.calibrate = HPL_CALIBRATES_WORTH;
    hec_set_prices(&l->mover.movement, &machine, &l->cost, 1);
    hec_mover_begin(&l->mover);
    hec_traffic_take(&l->mover, &l->traffic);
}

static void end(struct layer *l) {
    hec_lanes_free(l->mover.lanes);
    hec_mover_free(&l->mover);
    loads_free(&l->loads);
}

// Lets the transfer happen; returns what it carries.
static struct carried carry(struct layer *l, int32_t transfer) {
    struct hec_lanes *lanes = l->mover.lanes;
    double before[PORTS];
    struct carried c = {.copies = l->mover.whole.first[EXPERTS]};
    for (int p = 0; p < PORTS; p++) before[p] = hec_lanes_carried(lanes)[p];
    for (int32_t d = 0; d < DEVICES && transfer >= 0; d++)
        hec_transfer_start(lanes, transfer, d, 0, &(struct hec_path){0});
    for (double next; (next = hec_lanes_next(lanes)) < INFINITY;) hec_lanes_pass(lanes, next);
    for (int32_t d = 0; d < DEVICES && transfer >= 0; d++)
        assert_true(hec_transfer_done(lanes, transfer, d));
    for (int p = 0; p < PORTS; p++) {
        double *to = p < DEVICES         ? &c.sent[p]
                     : p < 2 * DEVICES   ? &c.got[p - DEVICES]
                     : p < PORTS - NODES ? &c.node_sent[p - 2 * DEVICES]
                                         : &c.node_got[p - 2 * DEVICES - NODES];
        *to = hec_lanes_carried(lanes)[p] - before[p];
    }
    return c;
}

static double sum(const double *of, int32_t count) {
    double all = 0;
    for (int32_t i = 0; i < count; i++) all += of[i];
    return all;
}

static void same(const char *policy, const char *what, double one, double other) {
    if (fabs(one - other) > 1e-6 * (1 + fabs(other)))
        fail_msg("%s, %s: %.10g and %.10g", policy, what, one, other);
}

// Plans the layer, with what lasts placed by the loads before.
static bool plan(struct layer *l, int64_t iteration) {
    return (l->mover.states || hec_owners_begin(&l->mover, 3)) &&
           hec_traffic_plan(&l->mover, 0, iteration, &l->traffic);
}

static struct carried of(const char *policy, bool sums, bool back) {
    struct layer l;
    begin(&l, policy, sums, 1);
    assert_true(plan(&l, 4));
    const struct carried c = carry(&l, back ? l.traffic.reduce : l.traffic.gather);
    end(&l);
    return c;
}

// Rows are counted as sums, and routed one source after the other.
static void sums_of_rows_are_those_of_pairs(void **state) {
    (void)state;
    for (int32_t p = 0; p < hpl_policy_count; p++) {
        const char *policy = hpl_policies[p].name;
        struct layer l;
        begin(&l, policy, false, 1);
        assert_true(plan(&l, 4));
        const struct hec_traffic *t = &l.traffic;
        struct carried c = {.copies = 0};
        double load[DEVICES] = {0};
        for (int i = 0; i < DEVICES * DEVICES; i++) {
            const int from = i / DEVICES, to = i % DEVICES, there = to / EACH;
            load[to] += t->pair[i];
            if (from == to) continue;
            c.sent[from] += t->pair[i], c.got[to] += t->pair[i];
            if (from / EACH == there) continue;
            c.node_sent[from / EACH] += t->pair[i], c.node_got[there] += t->pair[i];
        }
        for (int d = 0; d < DEVICES; d++) {
            same(policy, "rows computed", t->load[d], load[d]);
            same(policy, "rows sent", t->sent[d], c.sent[d]);
            same(policy, "rows got", t->got[d], c.got[d]);
        }
        for (int n = 0; n < NODES; n++) {
            same(policy, "rows out of a node", t->node_sent[n], c.node_sent[n]);
            same(policy, "rows into a node", t->node_got[n], c.node_got[n]);
        }
        end(&l);
    }
}

// Tokens of a device with an expert in a node, of `there` rows, by all pairs of different experts.
static double by_pairs_of_experts(const struct layer *l, int from, int node, double there) {
    const uint32_t *rows = l->mover.stage.exact + (size_t)from * EXPERTS;
    double odds[EXPERTS], tokens = 0, some = 0, all = 0;
    for (int e = 0; e < EXPERTS; e++) tokens += rows[e] / 2.0;
    for (int e = 0; e < EXPERTS; e++) {
        odds[e] = rows[e] < tokens ? rows[e] / (tokens - rows[e]) : 1e9; // Chosen by each.
    }
    for (int e = 0; e < EXPERTS; e++) {
        for (int other = 0; other < e; other++) {
            const int in = (e / (EXPERTS / NODES) == node) + (other / (EXPERTS / NODES) == node);
            all += in * odds[e] * odds[other];
            some += in ? odds[e] * odds[other] : 0;
        }
    }
    return there * some / all;
}

// A wave's rows out or home; sums through ports cross nearly as much.
static void check_once(const char *policy, bool back) {
    struct layer l, coarse;
    double crossed = 0, rows = 0;
    begin(&l, policy, false, 1);
    begin(&coarse, policy, true, 1);
    assert_true(plan(&l, 4) && plan(&coarse, 4));
    const struct hec_traffic *t = &l.traffic;
    for (int from = 0; from < DEVICES; from++) {
        const int node = 1 - from / EACH;
        const double tokens = t->once[from * NODES + node];
        double there = 0;
        for (int to = node * EACH; to < (node + 1) * EACH; to++)
            there += t->pair[from * DEVICES + to];
        assert_true(tokens <= there && 2.000001 * tokens >= there);
        if (!strcmp(policy, "ep"))
            same(policy, "tokens", tokens, by_pairs_of_experts(&l, from, node, there));
        crossed += tokens, rows += there;
    }
    const struct carried c = carry(&l, hec_traffic_wave(&l.mover, t, 0, 0, "rows", back));
    const double numbers = back ? 0 : 4 * rows + DEVICES * 4 * (1 + EACH);
    same(policy, "bytes", sum(c.node_sent, NODES), 100 * crossed + numbers);
    assert_true(crossed < (strcmp(policy, "ep") ? 1 : 0.9) * rows);
    const struct hec_traffic *sums = &coarse.traffic;
    assert_true(fabs(sum(sums->node_got, NODES) / crossed - 1) < 0.15);
    same(policy, "sums", sum(sums->node_got, NODES), sum(sums->node_sent, NODES));
    same(policy, "sums of devices", sum(sums->got, DEVICES), sum(sums->sent, DEVICES));
    end(&l);
    end(&coarse);
}

static void rows_cross_once_to_a_node(void **state) {
    (void)state;
    once = true;
    for (int back = 0; back < 2; back++) {
        check_once("ep", back);
        check_once("fssdp", back);
    }
    once = false;
}

// Every device gets the same, and nodes together, whether messages are single ones or sums.
static void messages_and_sums_are_as_many_bytes(void **state) {
    (void)state;
    for (int32_t p = 0; p < hpl_policy_count; p++) {
        const char *policy = hpl_policies[p].name;
        for (int back = 0; back < 2; back++) {
            const struct carried one = of(policy, false, back), sums = of(policy, true, back);
            same(policy, "sent and got", sum(one.sent, DEVICES), sum(one.got, DEVICES));
            same(policy, "all", sum(one.got, DEVICES), sum(sums.got, DEVICES));
            same(policy, "sent, sums", sum(sums.sent, DEVICES), sum(sums.got, DEVICES));
            same(policy, "across", sum(one.node_got, NODES), sum(sums.node_got, NODES));
            same(policy, "across, sums", sum(sums.node_sent, NODES), sum(sums.node_got, NODES));
            for (int32_t d = 0; d < DEVICES; d++) {
                const bool exchange = hpl_policies[p].collective == HPL_COLLECTIVE_EXCHANGE;
                if (!exchange && !back) same(policy, "got", one.got[d], sums.got[d]);
                if (!exchange && back) same(policy, "sent", one.sent[d], sums.sent[d]);
            }
        }
    }
}

static void shards_come_from_all(void **state) {
    (void)state;
    const struct carried laer = of("laer", false, false), home = of("laer", false, true);
    for (int32_t d = 0; d < DEVICES; d++) {
        same("laer", "got", laer.got[d], SLOTS * chunk * (DEVICES - 1) / DEVICES);
        same("laer", "sent", laer.sent[d], SLOTS * chunk * (DEVICES - 1) / DEVICES);
        same("laer", "gradients sent", home.sent[d], SLOTS * gradient * (DEVICES - 1) / DEVICES);
    }
    same("laer", "a node", laer.node_got[0], EACH * SLOTS * chunk / 2);
    const struct carried fsdp = of("fsdp", false, false), back = of("fsdp", false, true);
    same("fsdp", "got", fsdp.got[1], EXPERTS * chunk * (DEVICES - 1) / DEVICES);
    same("fsdp", "a node", fsdp.node_got[1], EXPERTS * chunk / 2);
    same("fsdp", "gradients", back.sent[1], EXPERTS * gradient * (DEVICES - 1) / DEVICES);
}

static void ultraep_stays_in_nodes_and_ep_at_home(void **state) {
    (void)state;
    const struct carried inside = of("ultraep", false, false), ep = of("ep", false, false);
    assert_true(sum(inside.got, DEVICES) > 0);
    assert_true(sum(inside.node_got, NODES) == 0 && sum(ep.got, DEVICES) == 0);
}

// Half of the experts have their owners in the other node: they come once, and no rows leave.
static void edp_brings_every_expert_into_every_node(void **state) {
    (void)state;
    const struct carried there = of("edp", false, false), back = of("edp", false, true);
    struct layer l;
    begin(&l, "edp", false, 1);
    assert_true(plan(&l, 4));
    for (int n = 0; n < NODES; n++)
        assert_true(l.traffic.node_sent[n] == 0 && l.traffic.node_got[n] == 0);
    for (int n = 0; n < NODES; n++) {
        same("edp", "a node", there.node_got[n], EXPERTS / NODES * chunk);
        same("edp", "gradients", back.node_sent[n], EXPERTS / NODES * gradient);
    }
    same("edp", "copies", there.copies, NODES * EXPERTS);
    end(&l);
}

// From owners, for each copy: four in a node are as many entries.
static void llep_enters_a_node_once_for_each_copy(void **state) {
    (void)state;
    struct layer l;
    begin(&l, "llep", false, 1);
    assert_true(plan(&l, 4));
    double entries = 0;
    for (int32_t e = 0; e < EXPERTS; e++) {
        for (int32_t k = l.mover.whole.first[e]; k < l.mover.whole.first[e + 1]; k++)
            entries += l.mover.whole.holder[k] / EACH != l.owner[e] / EACH;
    }
    const struct carried c = carry(&l, l.traffic.gather);
    assert_true(entries > 0);
    same("llep", "across", sum(c.node_got, NODES), entries * chunk);
    end(&l);
}

// Copies stay: no parameters; gradients go up and down, at the end of a step alone.
static void copies_sum_their_gradients_once_a_step(void **state) {
    (void)state;
    struct layer l;
    begin(&l, "eplb", false, 3);
    for (int64_t i = 3; i < 6; i++) {
        assert_true(plan(&l, i));
        assert_true(l.traffic.gather == -1 && l.traffic.again == -1);
        const struct carried c = carry(&l, l.traffic.reduce);
        assert_true(c.copies > EXPERTS);
        same("eplb", "gradients", sum(c.got, DEVICES),
             i == 5 ? 2 * (c.copies - EXPERTS) * gradient : 0);
    }
    end(&l);
}

// Parameters of a plan that was calibrated come in two parts, and again in one.
static void calibrated_plans_are_as_many_bytes_in_two_parts(void **state) {
    (void)state;
    int taken = 0;
    for (int64_t i = 3; i < 6; i++) {
        struct carried c[3];
        for (int part = 0; part < 3; part++) {
            struct layer l;
            begin(&l, "fssdp", false, 1);
            assert_true(plan(&l, i));
            const int32_t transfer[] = {l.traffic.gather, l.traffic.added, l.traffic.again};
            c[part] = carry(&l, transfer[part]);
            taken += l.mover.stage.calibrated;
            end(&l);
        }
        for (int32_t d = 0; d < DEVICES; d++)
            same("fssdp", "got", c[0].got[d] + c[1].got[d], c[2].got[d]);
    }
    assert_true(taken > 0);
}

// A plan for a time is kept and used again; with new owners it is made anew.
static void plans_are_kept_until_owners_change(void **state) {
    (void)state;
    struct layer l;
    double chunks, first[DEVICES], other[DEVICES], *got = NULL;
    begin(&l, "fssdp", true, 1);
    got = l.traffic.got;
    assert_true(plan(&l, 4));
    memcpy(first, got, sizeof first);
    assert_true(plan(&l, 5));
    memcpy(other, got, sizeof other);
    assert_true(memcmp(first, other, sizeof first) != 0);
    l.loads.rows[0] ^= 1; // Nobody looks at the loads again.
    assert_true(plan(&l, 4));
    assert_memory_equal(first, got, sizeof first);
    assert_true(hec_owners_change(&l.mover, 3, &chunks) && chunks > 0);
    assert_true(plan(&l, 4));
    assert_true(memcmp(first, got, sizeof first) != 0);
    end(&l);
}

// A placement stays until it is changed; a new copy then comes with its states, from one that was there.
static void new_copies_bring_their_states(void **state) {
    (void)state;
    const char *const policy[] = {"eplb", "flexmoe", "smartmoe"};
    for (int p = 0; p < 3; p++) {
        struct layer l;
        double chunks, added = 0, bytes = 0;
        bool held[EXPERTS][DEVICES] = {0};
        begin(&l, policy[p], false, 1);
        assert_true(hec_owners_begin(&l.mover, 1));
        const struct hpl_plan *placed = &l.mover.placed[0];
        for (int32_t e = 0; e < EXPERTS; e++) {
            for (int32_t k = placed->first[e]; k < placed->first[e + 1]; k++)
                held[e][placed->holder[k]] = true;
        }
        assert_true(hec_traffic_plan(&l.mover, 0, 4, &l.traffic));
        assert_true(hpl_plan_holds(placed, 0, l.owner[0]));
        assert_int_equal(l.mover.stage.plan.first[EXPERTS], placed->first[EXPERTS]);
        assert_true(hec_owners_change(&l.mover, 5, &chunks));
        for (int32_t e = 0; e < EXPERTS; e++) {
            for (int32_t k = placed->first[e]; k < placed->first[e + 1]; k++)
                added += !held[e][placed->holder[k]];
            assert_true(hpl_plan_holds(placed, e, l.owner[e]));
        }
        assert_true(added > 0);
        same(policy[p], "chunks", chunks, added);
        const struct carried c = carry(&l, hec_owners_transfer(&l.mover));
        bytes = added * (owner - gradient);
        same(policy[p], "states", sum(c.got, DEVICES), bytes);
        // The same loads again: copies stay.
        assert_true(hec_owners_change(&l.mover, 5, &chunks));
        if (p == 0) assert_true(chunks == 0 && hec_owners_transfer(&l.mover) == -1);
        end(&l);
    }
}

static void owners_of_ours_change_and_others_do_not(void **state) {
    (void)state;
    for (int sums = 0; sums < 2; sums++) {
        struct layer l;
        int32_t before[EXPERTS];
        double chunks, differ = 0;
        begin(&l, "fssdp", sums, 1);
        assert_true(hec_owners_begin(&l.mover, 1));
        memcpy(before, l.owner, sizeof before);
        assert_true(hec_owners_change(&l.mover, 3, &chunks));
        for (int32_t e = 0; e < EXPERTS; e++) differ += before[e] != l.owner[e];
        assert_true(differ > 0);
        same("fssdp", "chunks", chunks, differ);
        const struct carried c = carry(&l, hec_owners_transfer(&l.mover));
        same("fssdp", "states", sum(c.got, DEVICES), differ * (owner - gradient));
        end(&l);
    }
    struct layer l;
    double chunks;
    begin(&l, "laer", false, 1);
    assert_true(hec_owners_begin(&l.mover, 1) && hec_owners_change(&l.mover, 3, &chunks));
    assert_true(chunks == 0 && hec_owners_transfer(&l.mover) == -1);
    end(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_rows_are_those_of_pairs),
        cmocka_unit_test(rows_cross_once_to_a_node),
        cmocka_unit_test(messages_and_sums_are_as_many_bytes),
        cmocka_unit_test(shards_come_from_all),
        cmocka_unit_test(ultraep_stays_in_nodes_and_ep_at_home),
        cmocka_unit_test(edp_brings_every_expert_into_every_node),
        cmocka_unit_test(llep_enters_a_node_once_for_each_copy),
        cmocka_unit_test(copies_sum_their_gradients_once_a_step),
        cmocka_unit_test(calibrated_plans_are_as_many_bytes_in_two_parts),
        cmocka_unit_test(plans_are_kept_until_owners_change),
        cmocka_unit_test(new_copies_bring_their_states),
        cmocka_unit_test(owners_of_ours_change_and_others_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
