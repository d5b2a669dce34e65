// print.c: one layer-step in the planner's text forms.
#include <stdlib.h>

#include "runtime/plan/text.h"
#include "tools/replay/replay.h"

enum { SEGMENTS = 8 };

// The forms of one step, by number, so that one loop measures and prints them all.
enum form { FORM_TOPOLOGY, FORM_LOADS, FORM_PLAN, FORM_ROUTE, FORM_SCHEDULE, FORMS };

static size_t print_form(const struct printed *p, const struct hpl_schedule *schedule,
                         enum form form, char *out, size_t room) {
    switch (form) {
    case FORM_TOPOLOGY:
        return hpl_print_topology(p->topology, out, room);
    case FORM_LOADS:
        return hpl_print_loads(p->loads, out, room);
    case FORM_PLAN:
        return hpl_print_plan(p->plan, out, room);
    case FORM_ROUTE:
        return hpl_print_route(p->plan, 0, p->rows, out, room);
    default:
        return hpl_print_schedule(schedule, out, room);
    }
}

static bool print_forms(FILE *file, const struct printed *p, const struct hpl_schedule *schedule) {
    for (enum form form = 0; form < FORMS; form++) {
        if (form == FORM_SCHEDULE && schedule->count < 0) continue;
        const size_t length = print_form(p, schedule, form, NULL, 0);
        char *text = malloc(length + 1);
        if (!text) return false;
        print_form(p, schedule, form, text, length + 1);
        fprintf(file, "%s\n", text);
        free(text);
    }
    return true;
}

bool print_step(FILE *file, const struct printed *p, struct hpl_work *work) {
    const int32_t holders = p->plan->first[p->plan->experts];
    struct hpl_schedule schedule = {.capacity = SEGMENTS * holders};
    schedule.transfer = malloc((size_t)schedule.capacity * sizeof *schedule.transfer);
    if (!schedule.transfer) return false;
    // A policy that gathers from shards everywhere has no owners to gather from.
    if (hpl_schedule_gather(p->topology, p->owner, p->plan, SEGMENTS, &schedule, work) != HPL_OK) {
        schedule.count = -1;
    }
    const bool printed = print_forms(file, p, &schedule);
    free(schedule.transfer);
    return printed;
}
