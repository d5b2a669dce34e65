// New owners between steps, and placements anew: every so many iterations, when the optimizer is done.
#include <math.h>

#include "passes/timeline/owners.h"
#include "passes/timeline/run.h"

// Iterations between two changes; 0: there are none.
static int64_t interval(const struct run *r) {
    const struct hpl_policy *p = r->policy;
    const bool changes = p && (p->calibrates || p->when == HPL_WHEN_PERIODIC);
    return changes && r->devices > 1 ? r->request->movement->reshard_every : 0;
}

static bool is_due(const struct run *r, int64_t iterations) {
    const int64_t every = interval(r);
    return every > 0 && iterations - r->changed >= every;
}

// The first device to come decides for all; those behind it have planned what they still compute.
static void begin_change(struct run *r, struct change *c, int64_t step, int64_t iterations) {
    *c = (struct change){.step = step, .due = is_due(r, iterations)};
    if (!c->due) return;
    r->changed = iterations;
    r->changes++;
    for (int i = 0; i < r->request->setup->costs.count; i++) {
        struct hec_mover *m = &r->mover[i];
        double chunks;
        if (!hec_owners_change(m, hec_time_of(m, iterations - 1) + 1, &chunks)) r->failed = true;
        c->transfer[i] = hec_owners_transfer(m);
        r->moved[step] += chunks;
    }
}

void hec_run_reshard(struct run *r, int32_t device, const struct hec_action *a) {
    struct device *d = &r->device[device];
    const int64_t step = hec_step_of(r, d);
    struct change *c = &r->change[step & 1];
    int32_t last = -1;
    if (c->step != step) begin_change(r, c, step, d->iteration + 1);
    if (!c->due) return;
    for (int i = 0; i < r->request->setup->costs.count; i++) {
        hec_run_pass(r, device, a, HEC_SPENT_PLAN,
                     r->plan_us[i] * (double)r->mover[i].cost->layers);
        hec_run_start(r, device, c->transfer[i]);
        if (c->transfer[i] >= 0) last = c->transfer[i];
    }
    if (last >= 0) hec_run_wait(r, device, last, HEC_SPENT_STATES); // The lane keeps the order.
}

// When the forecast is full.
static int64_t first_time(const struct hec_mover *m) {
    const int64_t last = (int64_t)m->scene.loads->iterations * m->scene.loads->microbatches - 1;
    const int64_t first = m->movement.window > 1 ? m->movement.window : 1;
    return first < last ? first : last;
}

bool hec_run_place(struct run *r, int i) {
    struct hec_mover *m = &r->mover[i];
    const int64_t first = first_time(m), made = m->begins - interval(r) / 2;
    double chunks;
    if (!hec_owners_begin(m, made > first ? made : first)) return false;
    if (m->begins > 0) r->changed = -interval(r) / 2;
    const bool ages = m->stage.episode.policy->calibrates && interval(r) > 0 && made >= first;
    return !ages || hec_owners_change(m, made, &chunks);
}

// ---- what a change takes where none has come

static double last_of(const struct run *r) {
    double now = 0;
    for (int32_t d = 0; d < r->devices; d++) now = r->device[d].now > now ? r->device[d].now : now;
    return now;
}

static double run_out(struct run *r, double now) {
    for (double next; !isinf(next = hec_lanes_next(r->lanes)); now = next)
        hec_lanes_pass(r->lanes, next);
    return now;
}

// Two changes, an interval apart, or as far as loads go, the later one at their end: that one counts.
static bool estimate(struct run *r, struct hec_owners *owners) {
    static const struct hec_path none;
    const double begin = run_out(r, last_of(r));
    double end = begin, chunks;
    hec_lanes_observe(r->lanes, (struct hec_lanes_watcher){0});
    for (int i = 0; i < r->request->setup->costs.count; i++) {
        struct hec_mover *m = &r->mover[i];
        const int64_t last = (int64_t)m->scene.loads->iterations * m->scene.loads->microbatches - 1;
        const int64_t first = first_time(m), before = last - owners->every;
        if (before < first) owners->loads_are_short = true;
        if (!hec_owners_change(m, before < first ? first : before, &chunks) ||
            !hec_owners_change(m, last, &chunks))
            return false;
        owners->chunks += chunks;
        const int32_t transfer = hec_owners_transfer(m);
        for (int32_t d = 0; d < r->devices && transfer >= 0; d++)
            hec_transfer_start(r->lanes, transfer, d, end, &none);
        end = run_out(r, end);
        end += r->plan_us[i] * (double)m->cost->layers;
    }
    owners->us = end - begin;
    return true;
}

static bool find_change(struct run *r, const struct hec_step_time *step,
                        struct hec_owners *owners) {
    if (r->changes == 0) return estimate(r, owners);
    for (int64_t i = 0; i < r->request->steps; i++) {
        owners->us += step[i].spent[HEC_SPENT_STATES] / (double)r->changes;
        owners->chunks += step[i].moved / (double)r->changes;
    }
    return true;
}

bool hec_run_owners(struct run *r, const struct hec_step_time *step, struct hec_owners *owners) {
    const int64_t iterations = r->script->iterations;
    *owners = (struct hec_owners){.every = interval(r), .changes = r->changes};
    if (owners->every == 0) return true;
    if (!find_change(r, step, owners)) return false;
    owners->us_of_a_step = owners->us / (double)((owners->every + iterations - 1) / iterations);
    return true;
}
