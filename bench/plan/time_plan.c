// plan-time: how long one thread takes for a plan and its own quotas, step by step.
//
// usage: plan-time EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES [SKEW [BIAS]]
// Drawn loads; the plan is made for one microbatch and its quotas for the next one. Prints the
// median and the 95th percentile of 200 layer-steps.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/replay/synthesize.h"

enum { STEPS = 200, PARTS = 4 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: plan-time EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES [SKEW "
                        "[BIAS]]\n");
        return REPLAY_BAD_COMMAND;
    }
    const int32_t experts = atoi(argv[1]), nodes = atoi(argv[2]), size = atoi(argv[3]);
    const int32_t slots = atoi(argv[4]), entries = atoi(argv[5]), devices = nodes * size;
    const int32_t holders = experts + devices * slots;
    const struct synthesis wanted = {
        .iterations = 1,
        .layers = devices > 256 ? 4 : 20,
        .microbatches = 5,
        .devices = (uint32_t)devices,
        .experts = (uint32_t)experts,
        .rows = 4096,
        .skew = argc > 6 ? atof(argv[6]) : 1.2,
        .bias = argc > 7 ? atof(argv[7]) : 0.1,
        .seed = 7,
    };
    struct loads loads;
    if (!synthesize(&wanted, &loads)) return REPLAY_INTERNAL;

    int32_t *ints = calloc((size_t)(4 * devices + 2 * experts + holders + 8), sizeof *ints);
    const size_t cells = (size_t)devices * (size_t)experts;
    uint32_t *rows = calloc(2 * cells + (size_t)holders, sizeof *rows);
    int64_t *share = calloc((size_t)holders, sizeof *share);
    const size_t bytes = hpl_work_bytes(experts, devices, nodes, holders);
    unsigned char *memory = malloc(bytes);
    if (!ints || !rows || !share || !memory) return REPLAY_INTERNAL;
    int32_t *first = ints, *node = first + devices + 1, *speed = node + devices;
    int32_t *owner = speed + devices;
    for (int32_t n = 0; n <= nodes; n++) first[n] = n * size;
    for (int32_t d = 0; d < devices; d++) node[d] = d / size, speed[d] = 1;
    for (int32_t e = 0; e < experts; e++) owner[e] = (int32_t)((int64_t)e * devices / experts);
    const struct hpl_topology topology = {devices, nodes, first, node, speed};
    struct hpl_plan plan = {experts, holders, owner + experts, owner + 2 * experts + 1};
    const struct hpl_loads before = {devices, experts, rows};
    const struct hpl_loads exact = {devices, experts, rows + cells};
    const struct hpl_problem problem = {.topology = &topology,
                                        .experts = experts,
                                        .owner = owner,
                                        .loads = &before,
                                        .budget = {.slots = slots, .entries = entries, .slack = 10}};

    static double times[PARTS][STEPS];
    for (int32_t s = 0; s < STEPS; s++) {
        const uint32_t layer = (uint32_t)s % loads.layers, m = (uint32_t)s / loads.layers % 4;
        loads_step(&loads, 0, layer, m, rows);
        loads_step(&loads, 0, layer, m + 1, rows + cells);
        struct hpl_work work = {memory, memory + bytes};
        struct hpl_level level;
        const double t0 = now_us();
        if (hpl_policy_find("quota")->place(&problem, &plan, NULL, &work) != HPL_OK) return 70;
        const double t1 = now_us();
        if (hpl_share(&topology, &plan, &exact, 10, share, &level, &work) != HPL_OK) return 70;
        const double t2 = now_us();
        if (hpl_route(&topology, &plan, &exact, share, s % devices, rows + 2 * cells, &work)) {
            return 70;
        }
        const double t3 = now_us();
        const double parts[PARTS] = {t1 - t0, t2 - t1, t3 - t2, t3 - t0};
        for (int i = 0; i < PARTS; i++) times[i][s] = parts[i];
    }
    static const char *names[PARTS] = {"plan", "shares", "quotas", "all"};
    for (int i = 0; i < PARTS; i++) {
        qsort(times[i], STEPS, sizeof(double), by_value);
        printf("%-7s median %8.1f us, 95th percentile %8.1f us\n", names[i], times[i][STEPS / 2],
               times[i][STEPS * 95 / 100]);
    }
    loads_free(&loads);
    free(ints);
    free(rows);
    free(share);
    free(memory);
    return 0;
}
