// plan-families: how long a plan takes, and how good it is, over loads of ten families.
//
// usage: plan-families EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES [SEEDS]
// Draws every family at skews from 0 to 2, SEEDS times each (5). A row of the table is a family, the last one all.
// Times are the thread's own processor time in microseconds, the least of three for each draw. "steps" are those of
// the searches, the same on any machine. "level" is the largest load over the mean: that of the rows the plan is made
// for, and that of the next microbatch. "cross" are the latter's rows that change node.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/plan/loads/families.h"
#include "runtime/plan/schedule.h"
#include "runtime/plan/share.h"

enum { SLACK = 10, SEGMENTS = 4, TRIES = 3, SEEDS_MAX = 100 };

static const double skews[] = {0, 0.2, 0.5, 1, 1.5, 2};
enum { SKEWS = sizeof skews / sizeof *skews };

struct bench {
    struct loads_shape shape;
    struct hpl_topology topology;
    struct hpl_loads before, after;
    struct hpl_problem problem;
    struct hpl_plan plan;
    struct hpl_schedule schedule;
    uint32_t *rows;
    int64_t *share;
    unsigned char *memory;
    size_t bytes;
};

// Figures of one draw.
struct figures {
    double plan, share, schedule; // Microseconds.
    double steps;                 // The plan took so many.
    double own, next, cross;      // Levels over the mean; a part of the rows.
};

struct samples {
    int32_t count;
    struct figures at[LOADS_FAMILIES * SKEWS * SEEDS_MAX];
};

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static bool set_up(struct bench *b, int32_t slots, int32_t entries) {
    const struct loads_shape *shape = &b->shape;
    const int32_t experts = shape->experts, nodes = shape->nodes, devices = nodes * shape->size;
    const int32_t holders = experts + devices * slots;
    const size_t cells = (size_t)devices * (size_t)experts;
    int32_t *ints = calloc((size_t)(nodes + 2 * devices + 2 * experts + holders + 8), sizeof *ints);
    b->rows = calloc(2 * cells, sizeof *b->rows);
    b->schedule.capacity = holders * SEGMENTS;
    b->schedule.transfer = calloc((size_t)holders * SEGMENTS, sizeof *b->schedule.transfer);
    b->share = calloc((size_t)holders, sizeof *b->share);
    b->bytes = hpl_work_bytes(experts, devices, nodes, holders);
    b->memory = malloc(b->bytes);
    if (!ints || !b->rows || !b->schedule.transfer || !b->share || !b->memory) return false;
    int32_t *first = ints, *node = first + nodes + 1, *speed = node + devices;
    int32_t *owner = speed + devices;
    for (int32_t n = 0; n <= nodes; n++) first[n] = n * shape->size;
    for (int32_t d = 0; d < devices; d++) node[d] = d / shape->size, speed[d] = 1;
    for (int32_t e = 0; e < experts; e++) owner[e] = (int32_t)((int64_t)e * devices / experts);
    b->topology = (struct hpl_topology){devices, nodes, first, node, speed};
    b->plan = (struct hpl_plan){experts, holders, owner + experts, owner + 2 * experts + 1};
    b->before = (struct hpl_loads){devices, experts, b->rows};
    b->after = (struct hpl_loads){devices, experts, b->rows + cells};
    b->problem =
        (struct hpl_problem){.topology = &b->topology,
                             .experts = experts,
                             .owner = owner,
                             .loads = &b->before,
                             .budget = {.slots = slots, .entries = entries, .slack = SLACK}};
    return true;
}

static double over_mean(const struct bench *b, const struct hpl_loads *loads,
                        struct hpl_level level) {
    double rows = 0;
    const int64_t cells = (int64_t)loads->devices * loads->experts;
    for (int64_t i = 0; i < cells; i++) rows += loads->rows[i];
    return (double)level.num / (double)level.den * b->topology.devices / rows;
}

// The part of `after`'s rows that change node.
static double crossing(const struct bench *b) {
    const int32_t experts = b->plan.experts, size = b->shape.size;
    double rows = 0, cross = 0;
    for (int32_t e = 0; e < experts; e++) {
        int32_t k = b->plan.first[e];
        for (int32_t n = 0; n < b->shape.nodes; n++) {
            int64_t own = 0, here = 0;
            for (int32_t d = n * size; d < (n + 1) * size; d++)
                own += b->after.rows[(int64_t)d * experts + e];
            for (; k < b->plan.first[e + 1] && b->plan.holder[k] < (n + 1) * size; k++)
                here += b->share[k];
            rows += (double)own;
            cross += own > here ? (double)(own - here) : 0;
        }
    }
    return rows > 0 ? cross / rows : 0;
}

static double least(double a, double b) {
    return a < b ? a : b;
}

// Plans once. False: the planner refused.
static bool measure(struct bench *b, struct figures *s, bool again) {
    struct hpl_level own, next;
    int64_t steps = 0;
    struct hpl_work work = {.at = b->memory, .end = b->memory + b->bytes, .steps = &steps};
    const double t0 = now_us();
    if (hpl_place(hpl_policy_find("fssdp"), &b->problem, &b->plan, NULL, &work)) return false;
    const double t1 = now_us(), placed = (double)steps;
    if (hpl_share(&b->topology, &b->plan, &b->after, SLACK, b->share, &next, &work)) return false;
    const double t2 = now_us();
    if (hpl_schedule_gather(&b->topology, b->problem.owner, &b->plan, SEGMENTS, &b->schedule,
                            &work))
        return false;
    const double t3 = now_us();
    s->plan = again ? least(s->plan, t1 - t0) : t1 - t0;
    s->share = again ? least(s->share, t2 - t1) : t2 - t1;
    s->schedule = again ? least(s->schedule, t3 - t2) : t3 - t2;
    if (again) return true;
    s->steps = placed;
    s->next = over_mean(b, &b->after, next);
    s->cross = crossing(b);
    if (hpl_share_level(&b->topology, &b->plan, &b->before, SLACK, &own, NULL, &work)) return false;
    s->own = over_mean(b, &b->before, own);
    return true;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts one figure of samples from .. to - 1, given by its offset.
static const double *sorted(const struct samples *all, int32_t from, size_t offset) {
    static double values[LOADS_FAMILIES * SKEWS * SEEDS_MAX];
    const int32_t count = all->count - from;
    for (int32_t i = 0; i < count; i++)
        values[i] = *(const double *)((const char *)&all->at[from + i] + offset);
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values;
}

static double mean(const double *values, int32_t count) {
    double sum = 0;
    for (int32_t i = 0; i < count; i++) sum += values[i];
    return sum / count;
}

static void print_row(const char *name, const struct samples *all, int32_t from) {
    const int32_t count = all->count - from, high = count * 95 / 100;
    printf("%-10s |", name);
    static const size_t times[] = {offsetof(struct figures, plan), offsetof(struct figures, share),
                                   offsetof(struct figures, schedule)};
    for (int i = 0; i < 3; i++) {
        const double *values = sorted(all, from, times[i]);
        printf(" %6.0f %6.0f %6.0f |", values[count / 2], values[high], values[count - 1]);
    }
    printf(" %8.0f |", sorted(all, from, offsetof(struct figures, steps))[count - 1] / 1000);
    const double *own = sorted(all, from, offsetof(struct figures, own));
    printf(" %.4f %7.4f |", mean(own, count), own[count - 1]);
    const double *next = sorted(all, from, offsetof(struct figures, next));
    printf(" %.4f %7.4f |", mean(next, count), next[count - 1]);
    printf(" %5.2f\n", 100 * mean(sorted(all, from, offsetof(struct figures, cross)), count));
}

static bool measure_family(struct bench *b, int32_t family, int32_t seeds, struct samples *all) {
    for (int32_t i = 0; i < SKEWS * seeds; i++) {
        b->shape.skew = skews[i % SKEWS];
        b->shape.seed = (uint64_t)(i / SKEWS + 1);
        if (!loads_family_draw(family, &b->shape, b->rows, (uint32_t *)b->after.rows)) return false;
        for (int32_t k = 0; k < TRIES; k++) {
            if (!measure(b, &all->at[all->count], k > 0)) return false;
        }
        all->count++;
    }
    return true;
}

int main(int argc, char **argv) {
    if (argc < 6 || argc > 7) {
        fprintf(stderr,
                "usage: plan-families EXPERTS NODES DEVICES_PER_NODE SLOTS ENTRIES [SEEDS]\n");
        return 2;
    }
    struct bench bench = {
        .shape = {
            .experts = atoi(argv[1]), .nodes = atoi(argv[2]), .size = atoi(argv[3]), .rows = 4096}};
    const int32_t seeds = argc > 6 ? atoi(argv[6]) : 5;
    static struct samples all;
    if (seeds < 1 || seeds > SEEDS_MAX) return 2;
    if (!set_up(&bench, atoi(argv[4]), atoi(argv[5]))) return 1;
    printf("           | plan: median, 95th, most | shares               | schedule             | "
           "steps k  "
           "| level, worst   | next, worst    | cross %%\n");
    for (int32_t family = 0; family < LOADS_FAMILIES; family++) {
        const int32_t from = all.count;
        if (!measure_family(&bench, family, seeds, &all)) return 1;
        print_row(loads_family_name(family), &all, from);
    }
    print_row("all", &all, 0);
    return 0;
}
