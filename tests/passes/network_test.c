// The network of the timeline against a fluid simulation that finds rates by definition.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "passes/timeline/network.h"

enum { DEVICES = 6, NODES = 2, PORTS = 2 * DEVICES + 2 * NODES, FLOWS = 120 };

struct given {
    int32_t port[HEC_FLOW_PORTS], ports;
    int after; // Begins when that one is done; -1: at `begins`.
    double begins, bytes, done;
};

static uint64_t state = 7;

static double draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / 9007199254740992.0;
}

// ---- the reference

// Max-min fair by definition: the rates of all flows rise together until a full port stops those that go through it.
static void fair_rates(const struct given *flow, const int *active, int count,
                       const double *capacity, double *rate) {
    bool stopped[FLOWS] = {false};
    for (int i = 0; i < count; i++) rate[i] = 0;
    for (int open = count; open > 0;) {
        double used[PORTS] = {0}, rise = INFINITY;
        int users[PORTS] = {0};
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < flow[active[i]].ports; k++) {
                used[flow[active[i]].port[k]] += rate[i];
                users[flow[active[i]].port[k]] += !stopped[i];
            }
        }
        for (int p = 0; p < PORTS; p++) {
            if (users[p]) rise = fmin(rise, (capacity[p] - used[p]) / users[p]);
        }
        for (int i = 0; i < count; i++) rate[i] += stopped[i] ? 0 : rise;
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < flow[active[i]].ports && !stopped[i]; k++) {
                const int p = flow[active[i]].port[k];
                if (used[p] + users[p] * rise < capacity[p] * (1 - 1e-12)) continue;
                stopped[i] = true;
                open--;
            }
        }
    }
}

static void simulate(struct given *flow, int flows, const double *capacity) {
    double left[FLOWS], now = 0, rate[FLOWS];
    for (int i = 0; i < flows; i++) left[i] = flow[i].bytes, flow[i].done = -1;
    for (int done = 0; done < flows;) {
        int active[FLOWS], count = 0;
        double next = INFINITY;
        for (int i = 0; i < flows; i++) {
            if (flow[i].after >= 0) {
                const double before = flow[flow[i].after].done;
                flow[i].begins = before < 0 ? INFINITY : before;
            }
            if (flow[i].done < 0 && flow[i].begins <= now) active[count++] = i;
            if (flow[i].begins > now && flow[i].begins < next) next = flow[i].begins;
        }
        fair_rates(flow, active, count, capacity, rate);
        for (int i = 0; i < count; i++) {
            const double end = now + left[active[i]] / rate[i];
            if (end < next) next = end;
        }
        for (int i = 0; i < count; i++) {
            left[active[i]] -= rate[i] * (next - now);
            if (left[active[i]] > 1e-9 * flow[active[i]].bytes) continue;
            flow[active[i]].done = next;
            done++;
        }
        now = next;
    }
}

// ---- the network

static double left_at[FLOWS], part[HEC_FLOW_KINDS];

static void start(struct hec_network *network, const struct given *flow, int number, double now,
                  double delay) {
    left_at[number] = now + delay;
    hec_network_start(network, now, flow[number].port, flow[number].ports, flow[number].bytes,
                      delay, number, number % 3);
}

// The kinds that have shared a flow's port take its whole time, and its own kind some of it.
static void check_parts(int number, double now) {
    double all = 0;
    for (int k = 0; k < HEC_FLOW_KINDS; k++) {
        assert_true(part[k] >= -1e-9 * now && (k < 3 || part[k] == 0));
        all += part[k];
    }
    const double took = now - left_at[number];
    assert_true(fabs(all - took) <= 1e-9 * now);
    assert_true(part[number % 3] > 0 || took <= 1e-9 * now);
}

// Every other flow is started at once, with a delay; the others when it is their turn.
static void run(const struct given *flow, int flows, const double *capacity, double slack,
                double *done) {
    struct hec_network *network = hec_network_create(PORTS, capacity, slack);
    bool waits[FLOWS];
    for (int i = 0; i < flows; i++) {
        waits[i] = i % 2 && flow[i].after < 0;
        if (!waits[i] && flow[i].after < 0) start(network, flow, i, 0, flow[i].begins);
    }
    for (int ended = 0; ended < flows;) {
        int first = -1;
        for (int i = 0; i < flows; i++) {
            if (waits[i] && (first < 0 || flow[i].begins < flow[first].begins)) first = i;
        }
        double next = hec_network_next(network);
        if (first >= 0 && flow[first].begins < next) next = flow[first].begins;
        assert_true(next < INFINITY);
        hec_network_pass(network, next);
        for (int owner; (owner = hec_network_done(network, part)) >= 0; ended++) {
            done[owner] = next;
            check_parts(owner, next);
            for (int i = 0; i < flows; i++) {
                if (flow[i].after == owner) start(network, flow, i, next, 0);
            }
        }
        if (first >= 0 && flow[first].begins == next) {
            start(network, flow, first, next, 0);
            waits[first] = false;
        }
    }
    double carried = 0, bytes = 0;
    for (int p = 0; p < PORTS; p++) carried += hec_network_carried(network)[p];
    for (int i = 0; i < flows; i++) bytes += flow[i].ports * flow[i].bytes;
    assert_true(fabs(carried - bytes) <= 1e-9 * bytes);
    hec_network_free(network);
}

// A flow from device to device, or through one port.
static struct given draw_flow(void) {
    const int from = (int)(draw() * DEVICES),
              to = (from + 1 + (int)(draw() * (DEVICES - 1))) % DEVICES;
    const int n = from % NODES, m = to % NODES;
    struct given flow = {.port = {from, DEVICES + to}, .ports = 2, .after = -1};
    if (draw() < 0.1) {
        flow.port[0] = (int)(draw() * PORTS);
        flow.ports = 1;
    } else if (n != m) {
        flow.port[2] = 2 * DEVICES + n;
        flow.port[3] = 2 * DEVICES + NODES + m;
        flow.ports = 4;
    }
    return flow;
}

// Ports that differ, or those of devices and of nodes; of flows some follow others between the same devices.
static void draw_case(struct given *flow, int *flows, double *capacity) {
    const bool alike = draw() < 0.5;
    const double device = 10 + floor(10 * draw()) * 10, node = 10 + floor(10 * draw()) * 10;
    for (int p = 0; p < PORTS; p++)
        capacity[p] = !alike ? 10 + floor(4 * draw()) * 10 : p < 2 * DEVICES ? device : node;
    *flows = 1 + (int)(draw() * FLOWS);
    for (int i = 0; i < *flows; i++) {
        flow[i] = draw_flow();
        const int before = (int)(draw() * i);
        if (i > 0 && draw() < 0.3) {
            flow[i] = flow[before];
            flow[i].after = before;
        }
        flow[i].bytes = draw() < 0.1 ? 1 : draw() < 0.3 ? 1000 : 100 + 10000 * draw();
        flow[i].begins = draw() < 0.3 ? 0 : floor(draw() * 500);
    }
}

static void finds_max_min_fair_times(void **unused) {
    (void)unused;
    struct given flow[FLOWS];
    double capacity[PORTS], done[FLOWS];
    for (int round = 0; round < 1000; round++) {
        int flows;
        draw_case(flow, &flows, capacity);
        simulate(flow, flows, capacity);
        run(flow, flows, capacity, 0, done);
        for (int i = 0; i < flows; i++) {
            if (fabs(done[i] - flow[i].done) <= 1e-8 * flow[i].done) continue;
            fail_msg("case %d, flow %d of %d: done at %.9g, by definition %.9g", round, i, flows,
                     done[i], flow[i].done);
        }
    }
}

// An idle part of a port makes all later by about that part.
static void slack_costs_little(void **unused) {
    (void)unused;
    struct given flow[FLOWS];
    double capacity[PORTS], done[FLOWS], worst = 0;
    for (int round = 0; round < 100; round++) {
        int flows;
        draw_case(flow, &flows, capacity);
        simulate(flow, flows, capacity);
        run(flow, flows, capacity, 0.05, done);
        for (int i = 0; i < flows; i++) {
            const double wrong = fabs(done[i] - flow[i].done) / flow[i].done;
            if (wrong > worst) worst = wrong;
        }
    }
    assert_true(worst < 0.06);
    assert_true(worst > 0);
}

static void flows_of_no_bytes_take_their_delay(void **unused) {
    (void)unused;
    const double capacity[2] = {5, 5};
    struct hec_network *network = hec_network_create(2, capacity, 0);
    assert_true(hec_network_next(network) == INFINITY);
    hec_network_start(network, 3, (const int32_t[]){0, 1}, 2, 0, 4, 9, 1);
    assert_true(hec_network_next(network) == 7);
    hec_network_pass(network, 7);
    assert_int_equal(hec_network_done(network, part), -1); // Its first byte leaves now.
    assert_true(hec_network_next(network) == 7);
    hec_network_pass(network, 7);
    assert_int_equal(hec_network_done(network, part), 9);
    assert_int_equal(hec_network_done(network, part), -1);
    hec_network_free(network);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_max_min_fair_times),
        cmocka_unit_test(slack_costs_little),
        cmocka_unit_test(flows_of_no_bytes_take_their_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
