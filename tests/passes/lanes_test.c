// Transfers on lanes, against times that can be computed by hand. Two nodes of two devices; a device's port carries 10
// bytes a microsecond, a node's 5; 1 us to a device of the node, 3 us to another node.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "passes/timeline/lanes.h"

enum { DEVICES = 4 };

struct ends {
    double begin[32][DEVICES], end[32][DEVICES];
};

static struct ends ends;
static const struct hec_path none = {{0}, {0}};

static void note(void *context, const struct hec_part *part) {
    struct ends *to = context;
    to->begin[part->transfer][part->device] = part->begin;
    to->end[part->transfer][part->device] = part->end;
}

static struct hec_lanes *create(bool sums) {
    const struct hec_machine machine = {
        .nodes = 2,
        .devices = 2,
        .intra_bandwidth = 10e6 / hec_reached_of_link,
        .inter_bandwidth = 5e6 / hec_reached_of_link,
        .intra_latency = 1e-6,
        .inter_latency = 3e-6,
    };
    struct hec_lanes *lanes = hec_lanes_create(&machine, sums);
    ends = (struct ends){0};
    hec_lanes_observe(lanes, (struct hec_lanes_watcher){.part = note, .context = &ends});
    return lanes;
}

static void start_all(struct hec_lanes *lanes, int32_t transfer, double now) {
    for (int32_t d = 0; d < DEVICES; d++) hec_transfer_start(lanes, transfer, d, now, &none);
}

static void run(struct hec_lanes *lanes) {
    for (double next; (next = hec_lanes_next(lanes)) < INFINITY;) hec_lanes_pass(lanes, next);
}

static void check(double is, double should) {
    if (fabs(is - should) > 1e-6) fail_msg("%.9g, and should be %.9g", is, should);
}

static void a_message_needs_both_devices(void **unused) {
    (void)unused;
    struct hec_lanes *lanes = create(false);
    const int32_t t = hec_transfer_new(lanes, HEC_LANE_ROWS, "rows", -1);
    hec_transfer_message(lanes, t, 0, 1, 100);
    hec_transfer_message(lanes, t, 2, 1, 50);
    hec_transfer_start(lanes, t, 0, 0, &none);
    hec_transfer_start(lanes, t, 2, 0, &none);
    hec_transfer_start(lanes, t, 3, 2, &none);
    assert_true(hec_transfer_done(lanes, t, 3)); // Nothing of it is its own.
    assert_true(isinf(hec_lanes_next(lanes)));   // The receiver is not there.
    hec_transfer_start(lanes, t, 1, 20, &none);
    run(lanes);
    // From 21 on 0 -> 1 has all ten; from 23 on they share the port of device 1: 5 and 5, until the 80 and the 50 are
    // through: the 50 at 33, and then 30 more at 10.
    check(ends.end[t][2], 33);
    check(ends.end[t][0], 36);
    check(ends.end[t][1], 36);
    assert_int_equal(hec_lanes_carried(lanes)[DEVICES + 1], 150);
    assert_int_equal(hec_lanes_carried(lanes)[2 * DEVICES + 1], 50); // Out of node 1.
    hec_lanes_free(lanes);
}

// Two segments forwarded along 0 -> 2 -> 3: the second travels behind the first.
static void messages_wait_for_what_brings_them(void **unused) {
    (void)unused;
    struct hec_lanes *lanes = create(false);
    const int32_t t = hec_transfer_new(lanes, HEC_LANE_GATHER, "parameters", 0);
    const int32_t first = hec_transfer_message(lanes, t, 0, 2, 50);
    const int32_t second = hec_transfer_message(lanes, t, 0, 2, 50);
    hec_transfer_after(lanes, t, hec_transfer_message(lanes, t, 2, 3, 50), first);
    hec_transfer_after(lanes, t, hec_transfer_message(lanes, t, 2, 3, 50), second);
    start_all(lanes, t, 0);
    run(lanes);
    // Both cross the network together, 5 bytes a us: at 23. Then both to 3: 1 + 100 / 10.
    check(ends.end[t][0], 23);
    check(ends.end[t][2], 34);
    check(ends.end[t][3], 34);
    hec_lanes_free(lanes);
}

static void transfers_of_a_lane_follow_each_other(void **unused) {
    (void)unused;
    struct hec_lanes *lanes = create(false);
    const int32_t a = hec_transfer_new(lanes, HEC_LANE_ROWS, "a", -1);
    hec_transfer_message(lanes, a, 0, 1, 100);
    const int32_t b = hec_transfer_new(lanes, HEC_LANE_ROWS, "b", -1);
    hec_transfer_message(lanes, b, 0, 1, 100);
    const int32_t c = hec_transfer_new(lanes, HEC_LANE_GATHER, "c", -1);
    hec_transfer_message(lanes, c, 0, 1, 20);
    start_all(lanes, a, 0);
    start_all(lanes, b, 0);
    start_all(lanes, c, 0);
    run(lanes);
    check(ends.end[c][1], 5); // Beside a, on another lane: 1 + 20 / 5.
    check(ends.end[a][1], 13);
    check(ends.begin[b][0], 13);
    check(ends.end[b][1], 24);
    check(ends.end[b][3], 0); // Has no part of either.
    hec_lanes_free(lanes);
}

static void sums_start(bool alone) {
    const double sent[DEVICES] = {100, 20, 0, 0}, got[DEVICES] = {0, 40, 30, 50};
    const double node_sent[2] = {80, 0}, node_got[2] = {0, 80};
    struct hec_lanes *lanes = create(alone);
    const int32_t t = hec_transfer_new(lanes, HEC_LANE_ROWS, "rows", 1);
    hec_transfer_loads(lanes, t, sent, got, node_sent, node_got, 2);
    for (int32_t d = 0; d < DEVICES - 1; d++) hec_transfer_start(lanes, t, d, d, &none);
    assert_true(isinf(hec_lanes_next(lanes)));
    hec_transfer_start(lanes, t, DEVICES - 1, 10, &none);
    run(lanes);
    check(ends.end[t][0], 28); // Its node's port: 80 / 5 behind 12.
    check(ends.end[t][1], 28);
    check(ends.end[t][3], 28);
    assert_int_equal(hec_transfer_layer(lanes, t), 1);
    hec_lanes_free(lanes);
}

static void sums_start_when_all_have_come(void **unused) {
    (void)unused;
    sums_start(false);
    sums_start(true);
}

// Device 0 computes for 4 us, and sends to 1, which sends on to 2 on another lane.
static void a_path_is_the_time(void **unused) {
    (void)unused;
    struct hec_lanes *lanes = create(false);
    const struct hec_path computed = {{[HEC_PATH_COMPUTE] = 4}, {0}};
    const int32_t first = hec_transfer_new(lanes, HEC_LANE_ROWS, "rows", -1);
    hec_transfer_message(lanes, first, 0, 1, 100);
    const int32_t second = hec_transfer_new(lanes, HEC_LANE_GATHER, "parameters", -1);
    hec_transfer_message(lanes, second, 1, 2, 50);
    hec_transfer_start(lanes, first, 1, 0, &none);
    hec_transfer_start(lanes, second, 2, 0, &none);
    hec_transfer_start(lanes, first, 0, 4, &computed);
    double seen = 0;
    for (double next; (next = hec_lanes_next(lanes)) < INFINITY;) {
        hec_lanes_pass(lanes, next);
        for (const struct hec_woken *w; (w = hec_lanes_woken(lanes));) {
            if (w->transfer == first && w->device == 1) {
                const struct hec_path path = w->path;
                check(path.own[HEC_PATH_COMPUTE], 4);
                check(path.lane[HEC_LANE_ROWS], 1 + 10);
                hec_transfer_start(lanes, second, 1, next, &path);
            } else if (w->transfer == second && w->device == 2) {
                check(w->path.own[HEC_PATH_COMPUTE], 4);
                check(w->path.lane[HEC_LANE_ROWS], 11);
                check(w->path.lane[HEC_LANE_GATHER], 3 + 10);
                seen = next;
            }
        }
    }
    check(seen, 4 + 11 + 13);
    hec_lanes_free(lanes);
}

// Two messages between the same devices on two lanes: half of the time of each is waiting for the other.
static void who_shares_a_port_shares_the_blame(void **unused) {
    (void)unused;
    struct hec_lanes *lanes = create(false);
    const enum hec_lane lane[2] = {HEC_LANE_ROWS, HEC_LANE_REDUCE};
    int seen = 0;
    for (int k = 0; k < 2; k++) {
        const int32_t transfer = hec_transfer_new(lanes, lane[k], "bytes", -1);
        hec_transfer_message(lanes, transfer, 0, 1, k ? 80 : 50);
        start_all(lanes, transfer, 0);
    }
    for (double next; (next = hec_lanes_next(lanes)) < INFINITY;) {
        hec_lanes_pass(lanes, next);
        for (const struct hec_woken *w; (w = hec_lanes_woken(lanes));) {
            if (w->device != 1) continue;
            seen++;
            check(next, w->transfer ? 14 : 11); // 5 each until 11, then 30 bytes at 10.
            check(w->path.lane[lane[w->transfer]], w->transfer ? 1 + 5 + 3 : 1 + 5);
            check(w->path.lane[lane[!w->transfer]], 5);
        }
    }
    assert_int_equal(seen, 2);
    hec_lanes_free(lanes);
}

// ---- sums alone, against the same ones as flows

static uint64_t state = 5;

static double draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

enum { SUMS = 24 };

// Devices come to drawn sums, each at a time of its own, on every lane in the same order. `path`: to the end of
// each device's part.
static void run_drawn(bool alone, uint64_t seed, struct hec_path path[SUMS][DEVICES]) {
    struct hec_lanes *lanes = create(alone);
    double come[SUMS][DEVICES], latest[HEC_LANES][DEVICES] = {{0}}, now = 0;
    state = seed;
    for (int i = 0; i < SUMS; i++) {
        double bytes[4][DEVICES];
        for (int k = 0; k < 4 * DEVICES; k++)
            bytes[k / DEVICES][k % DEVICES] = draw() < 0.3 ? 0 : floor(100 * draw());
        const enum hec_lane lane = (enum hec_lane)(draw() * 4);
        hec_transfer_new(lanes, lane, "drawn", -1);
        hec_transfer_loads(lanes, i, bytes[0], bytes[1], bytes[2], bytes[3], floor(4 * draw()));
        for (int d = 0; d < DEVICES; d++) {
            come[i][d] = fmax(10 * i + 40 * draw(), latest[lane][d]);
            latest[lane][d] = come[i][d];
        }
    }
    for (bool left = true; left;) {
        int sum = -1, device = 0;
        for (int i = 0; i < SUMS * DEVICES; i++) {
            const double own = come[i / DEVICES][i % DEVICES];
            if (own < INFINITY && (sum < 0 || own < come[sum][device]))
                sum = i / DEVICES, device = i % DEVICES;
        }
        const double next = hec_lanes_next(lanes), comes = sum < 0 ? INFINITY : come[sum][device];
        left = sum >= 0 || next < INFINITY;
        now = fmin(next, comes);
        if (comes <= next && sum >= 0) {
            const struct hec_path computed = {{[HEC_PATH_COMPUTE] = now}, {0}};
            come[sum][device] = INFINITY;
            hec_transfer_start(lanes, sum, device, now, &computed);
        } else if (left) {
            hec_lanes_pass(lanes, next);
        }
        for (const struct hec_woken *w; (w = hec_lanes_woken(lanes));)
            path[w->transfer][w->device] = w->path;
    }
    hec_lanes_free(lanes);
}

static void sums_alone_end_as_flows_do(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct hec_path path[2][SUMS][DEVICES];
        run_drawn(false, seed, path[0]);
        const struct ends flows = ends;
        run_drawn(true, seed, path[1]);
        for (int i = 0; i < SUMS * DEVICES; i++) {
            const int t = i / DEVICES, d = i % DEVICES;
            assert_true(flows.end[t][d] > 0);
            check(ends.begin[t][d], flows.begin[t][d]);
            check(ends.end[t][d], flows.end[t][d]);
            const struct hec_path *is = &path[1][t][d], *should = &path[0][t][d];
            check(is->own[HEC_PATH_COMPUTE], should->own[HEC_PATH_COMPUTE]);
            for (int k = 0; k < HEC_LANES; k++) check(is->lane[k], should->lane[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_the_time),
        cmocka_unit_test(who_shares_a_port_shares_the_blame),
        cmocka_unit_test(a_message_needs_both_devices),
        cmocka_unit_test(messages_wait_for_what_brings_them),
        cmocka_unit_test(transfers_of_a_lane_follow_each_other),
        cmocka_unit_test(sums_start_when_all_have_come),
        cmocka_unit_test(sums_alone_end_as_flows_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
