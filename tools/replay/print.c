// print.c: one layer-step as text. A form is a head line, then a line "key: items" per node, device, expert or
// transfer:
//
//   topology nodes=2 devices=3      plan experts=2          loads devices=2 experts=3
//   0: 1 1                          0: 0 2                  0: 10 0 7
//   1: 2                            1: 1                    1: 3 4 5
//   (speeds of the node's devices)  (holders of an expert)  (rows of each expert)
//
//   route rank=1 experts=2          schedule segments=2 transfers=2
//   0: 0=10 2=5                     0: 3.0 0>4 1
//   1: 1=7                          1: 3.0 4>5 2
//   (rows for each holder)          (expert.segment sender>receiver round)
#include <inttypes.h>
#include <stdlib.h>

#include "tools/replay/replay.h"

enum { SEGMENTS = 8 };

// Row `key` of `count` numbers.
static void print_row(FILE *file, int32_t key, const int32_t *number, int32_t count) {
    fprintf(file, "\n%" PRId32 ":", key);
    for (int32_t i = 0; i < count; i++) fprintf(file, " %" PRId32, number[i]);
}

static void print_topology(FILE *file, const struct hpl_topology *t) {
    fprintf(file, "topology nodes=%" PRId32 " devices=%" PRId32, t->nodes, t->devices);
    for (int32_t n = 0; n < t->nodes; n++) {
        print_row(file, n, t->speed + t->first[n], t->first[n + 1] - t->first[n]);
    }
}

static void print_loads(FILE *file, const struct hpl_loads *loads) {
    fprintf(file, "\n\nloads devices=%" PRId32 " experts=%" PRId32, loads->devices, loads->experts);
    for (int32_t d = 0; d < loads->devices; d++) {
        fprintf(file, "\n%" PRId32 ":", d);
        for (int32_t e = 0; e < loads->experts; e++) {
            fprintf(file, " %" PRIu32, loads->rows[(int64_t)d * loads->experts + e]);
        }
    }
}

static void print_plan(FILE *file, const struct hpl_plan *plan) {
    fprintf(file, "\n\nplan experts=%" PRId32, plan->experts);
    for (int32_t e = 0; e < plan->experts; e++) {
        print_row(file, e, plan->holder + plan->first[e], plan->first[e + 1] - plan->first[e]);
    }
}

static void print_route(FILE *file, const struct hpl_plan *plan, const uint32_t *rows) {
    fprintf(file, "\n\nroute rank=0 experts=%" PRId32, plan->experts);
    for (int32_t e = 0; e < plan->experts; e++) {
        fprintf(file, "\n%" PRId32 ":", e);
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            fprintf(file, " %" PRId32 "=%" PRIu32, plan->holder[k], rows[k]);
        }
    }
}

static void print_schedule(FILE *file, const struct hpl_schedule *s) {
    fprintf(file, "\n\nschedule segments=%" PRId32 " transfers=%" PRId32, s->segments, s->count);
    for (int32_t i = 0; i < s->count; i++) {
        const struct hpl_transfer *t = &s->transfer[i];
        fprintf(file, "\n%" PRId32 ": %" PRId32 ".%" PRId32 " %" PRId32 ">%" PRId32 " %" PRId32, i,
                t->expert, t->segment, t->from, t->to, t->round);
    }
}

bool print_step(FILE *file, const struct printed *p, struct hpl_work *work) {
    const int32_t holders = p->plan->first[p->plan->experts];
    struct hpl_schedule schedule = {.capacity = SEGMENTS * holders};
    schedule.transfer = malloc((size_t)schedule.capacity * sizeof *schedule.transfer);
    if (!schedule.transfer) return false;
    print_topology(file, p->topology);
    print_loads(file, p->loads);
    print_plan(file, p->plan);
    print_route(file, p->plan, p->rows);
    // A policy that gathers from shards everywhere has no owners to gather from.
    if (hpl_schedule_gather(p->topology, p->owner, p->plan, SEGMENTS, &schedule, work) == HPL_OK) {
        print_schedule(file, &schedule);
    }
    fputs("\n\n", file);
    free(schedule.transfer);
    return true;
}
