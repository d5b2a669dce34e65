// plan-time: how long one thread takes for what a rank plans in one layer and iteration, step by step,
// and the bytes that it keeps.
//
// usage: plan-time EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES [SKEW [BIAS]]
// Drawn loads; the plan is made for one microbatch and its quotas for the next one. "quotas" are those of
// one source, "part" is what a rank keeps of all. Prints the
// median, in the thread's own processor time, and the 95th percentile of 200 layer-steps.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/plan/episode.h"
#include "runtime/plan/loads/synthesize.h"
#include "runtime/plan/schedule.h"
#include "tools/replay/replay.h"

enum { STEPS = 200, PARTS = 7, SLACK = 10, WINDOW = 5, SEGMENTS = 4 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The cluster, the problem and all memory of one run.
struct bench {
    struct loads loads;
    struct hpl_topology topology;
    struct hpl_loads before, exact;
    struct hpl_problem problem;
    struct hpl_plan plan;
    uint32_t *rows, *quotas;
    struct hpl_part part;
    struct hpl_schedule schedule, mirror;
    int64_t *share;
    unsigned char *memory;
    size_t bytes;
};

static bool set_up(struct bench *b, const struct synthesis *wanted, int32_t nodes, int32_t slots,
                   int32_t entries) {
    const int32_t experts = (int32_t)wanted->experts, devices = (int32_t)wanted->devices;
    const int32_t holders = experts + devices * slots;
    const size_t cells = (size_t)devices * (size_t)experts;
    int32_t *ints = calloc((size_t)(4 * devices + 2 * experts + holders + 8), sizeof *ints);
    b->rows = calloc(3 * cells + 4 * (size_t)holders, sizeof *b->rows);
    b->schedule.capacity = b->mirror.capacity = holders * SEGMENTS;
    b->schedule.transfer = calloc((size_t)holders * SEGMENTS, sizeof *b->schedule.transfer);
    b->mirror.transfer = calloc((size_t)holders * SEGMENTS, sizeof *b->mirror.transfer);
    b->share = calloc((size_t)holders, sizeof *b->share);
    b->bytes = hpl_work_bytes(experts, devices, nodes, holders);
    b->memory = malloc(b->bytes);
    if (!synthesize(wanted, &b->loads) || !ints || !b->rows || !b->share || !b->memory ||
        !b->schedule.transfer || !b->mirror.transfer) {
        return false;
    }
    int32_t *first = ints, *node = first + devices + 1, *speed = node + devices;
    int32_t *owner = speed + devices;
    for (int32_t n = 0; n <= nodes; n++) first[n] = n * (devices / nodes);
    for (int32_t d = 0; d < devices; d++) node[d] = d / (devices / nodes), speed[d] = 1;
    for (int32_t e = 0; e < experts; e++) owner[e] = (int32_t)((int64_t)e * devices / experts);
    b->quotas = b->rows + 2 * cells;
    uint32_t *const to = b->quotas + holders;
    b->part = (struct hpl_part){to, to + holders, to + 2 * holders, to + 3 * holders, experts};
    b->topology = (struct hpl_topology){devices, nodes, first, node, speed};
    b->plan = (struct hpl_plan){experts, holders, owner + experts, owner + 2 * experts + 1};
    b->before = (struct hpl_loads){devices, experts, b->rows};
    b->exact = (struct hpl_loads){devices, experts, b->rows + cells};
    b->problem =
        (struct hpl_problem){.topology = &b->topology,
                             .experts = experts,
                             .owner = owner,
                             .loads = &b->before,
                             .budget = {.slots = slots, .entries = entries, .slack = SLACK}};
    return true;
}

// One layer-step; times[i] is that of part i.
static bool measure(struct bench *b, int32_t step, double times[PARTS]) {
    const uint32_t layer = (uint32_t)step % b->loads.layers;
    const uint32_t microbatch = (uint32_t)step / b->loads.layers % (b->loads.microbatches - 1);
    loads_step(&b->loads, 0, layer, microbatch, b->rows);
    loads_step(&b->loads, 0, layer, microbatch + 1,
               b->rows + (size_t)b->topology.devices * (size_t)b->problem.experts);
    struct hpl_work work = {.at = b->memory, .end = b->memory + b->bytes};
    struct hpl_level level;
    const double t0 = now_us();
    if (hpl_place(hpl_policy_find("fssdp"), &b->problem, &b->plan, NULL, &work) != HPL_OK)
        return false;
    const double t1 = now_us();
    if (hpl_share(&b->topology, &b->plan, &b->exact, SLACK, b->share, &level, &work)) return false;
    const double t2 = now_us();
    if (hpl_route(&b->topology, &b->plan, &b->exact, b->share, step % b->topology.devices,
                  b->quotas, &work)) {
        return false;
    }
    const double t3 = now_us();
    if (hpl_route_part(&b->topology, &b->plan, &b->exact, b->share, step % b->topology.devices,
                       &b->part, &work)) {
        return false;
    }
    const double t4 = now_us();
    if (hpl_schedule_gather(&b->topology, b->problem.owner, &b->plan, SEGMENTS, &b->schedule,
                            &work)) {
        return false;
    }
    const double t5 = now_us();
    if (hpl_schedule_mirror(&b->schedule, &b->mirror, &work)) return false;
    const double t6 = now_us();
    times[0] = t1 - t0, times[1] = t2 - t1, times[2] = t3 - t2, times[3] = t4 - t3;
    times[4] = t5 - t4, times[5] = t6 - t5;
    times[6] = t6 - t3 + t2 - t0; // Quotas of one source are in its part.
    return true;
}

// Prints the bytes that programs keep for planning: for each set, and for each of its layers.
static void print_bytes(const struct bench *b) {
    const struct hpl_episode episode = {
        .topology = &b->topology, .layers = 1, .experts = b->problem.experts};
    const size_t counts = (size_t)b->topology.devices * (size_t)b->problem.experts * 4;
    const size_t plans = 5 * ((size_t)b->plan.capacity + (size_t)b->problem.experts) * 4;
    const size_t schedule = (size_t)b->schedule.count * sizeof *b->schedule.transfer;
    printf("bytes   of a set %.1f MB; of a layer %.1f MB: counts %.1f, of %d iterations %.1f, "
           "plans %.2f, schedule %.2f\n",
           1e-6 * (double)hpl_episode_bytes(&episode, b->plan.capacity),
           1e-6 * (double)((WINDOW + 1) * counts + plans + schedule), 1e-6 * (double)counts, WINDOW,
           1e-6 * (double)(WINDOW * counts), 1e-6 * (double)plans, 1e-6 * (double)schedule);
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: plan-time EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES [SKEW "
                        "[BIAS]]\n");
        return REPLAY_BAD_COMMAND;
    }
    const int32_t experts = atoi(argv[1]), nodes = atoi(argv[2]), size = atoi(argv[3]);
    const struct synthesis wanted = {
        .iterations = 1,
        .layers = nodes * size > 256 ? 4 : 20,
        .microbatches = 5,
        .devices = (uint32_t)(nodes * size),
        .experts = (uint32_t)experts,
        .rows = 4096,
        .skew = argc > 6 ? atof(argv[6]) : 1.2,
        .bias = argc > 7 ? atof(argv[7]) : 0.1,
        .seed = 7,
    };
    struct bench bench;
    if (!set_up(&bench, &wanted, nodes, atoi(argv[4]), atoi(argv[5]))) return REPLAY_INTERNAL;

    static double times[PARTS][STEPS];
    for (int32_t s = 0; s < STEPS; s++) {
        double parts[PARTS];
        if (!measure(&bench, s, parts)) return REPLAY_INTERNAL;
        for (int i = 0; i < PARTS; i++) times[i][s] = parts[i];
    }
    static const char *names[PARTS] = {"plan",     "shares", "quotas", "part",
                                       "schedule", "mirror", "all"};
    for (int i = 0; i < PARTS; i++) {
        qsort(times[i], STEPS, sizeof(double), by_value);
        printf("%-8s median %8.1f us, 95th percentile %8.1f us\n", names[i], times[i][STEPS / 2],
               times[i][STEPS * 95 / 100]);
    }
    print_bytes(&bench);
    return 0;
}
