// Devices that walk the script in virtual time.
#include "passes/timeline/timeline.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "passes/timeline/run.h"

const char *const hec_spent_names[HEC_SPENT] = {
    "computing",  "experts",   "planning",         "counts",     "rows",
    "parameters", "gradients", "dense parameters", "dense sums", "new owners",
};

// ---- devices that can go on

static void push(struct run *r, int32_t device) {
    hec_agenda_add(&r->ready, (struct hec_item){r->device[device].now, device, device});
}

// ---- layers

static void forget_waves(struct layer *l, int parity, int64_t waves) {
    for (int k = 0; k < ROWS; k++) {
        if (waves > l->room[parity]) {
            l->wave[parity][k] =
                realloc(l->wave[parity][k], (size_t)waves * sizeof *l->wave[parity][k]);
            if (!l->wave[parity][k]) abort();
        }
        for (int64_t w = 0; w < waves; w++) l->wave[parity][k][w] = -1;
    }
    if (waves > l->room[parity]) l->room[parity] = waves;
}

// The layer's traffic in the device's iteration, planned when the first device comes to it.
static struct hec_traffic *traffic_of(struct run *r, const struct device *d,
                                      const struct hec_action *a) {
    struct layer *l = &r->layer[a->set][a->layer];
    const int parity = (int)(d->iteration & 1);
    struct hec_traffic *t = &l->traffic[parity];
    if (t->iteration == d->iteration) return t;
    if (!hec_traffic_plan(&r->mover[a->set], a->layer, d->iteration, t)) r->failed = true;
    forget_waves(l, parity, t->waves);
    const int64_t step = hec_step_of(r, d);
    r->imbalance[step] += t->imbalance;
    r->replicas[step] += t->replicas;
    r->cross[step] += t->cross;
    return t;
}

// Whether the policy plans in every iteration.
static bool plans_always(const struct hpl_policy *policy) {
    return policy->collective != HPL_COLLECTIVE_NONE && !hpl_gathers_all(policy) &&
           policy->when != HPL_WHEN_PERIODIC;
}

// Planning is the host's; once for each layer and iteration.
static void plan(struct run *r, int32_t device, const struct hec_action *a) {
    struct device *d = &r->device[device];
    const int64_t layers = r->mover[a->set].cost->layers;
    int64_t *planned = &r->planned[a->set][device * layers + a->layer];
    traffic_of(r, d, a);
    if (*planned == d->iteration + 1) return;
    *planned = d->iteration + 1;
    if (plans_always(r->policy)) hec_run_pass(r, device, a, HEC_SPENT_PLAN, r->plan_us[a->set]);
}

static int64_t wave_of(const struct device *d, bool back) {
    const struct loop *waves = &d->loop[0];
    return back ? waves->count - 1 - waves->step : waves->step;
}

static int32_t wave_transfer(struct run *r, const struct device *d, const struct hec_action *a,
                             enum rows kind, int64_t wave) {
    static const char *const what[ROWS] = {"rows", "results", "gradients of results",
                                           "gradients of rows", "rows again"};
    struct layer *l = &r->layer[a->set][a->layer];
    const struct hec_traffic *t = traffic_of(r, d, a);
    int32_t *known = &l->wave[d->iteration & 1][kind][wave];
    const bool back = kind == ROWS_BACK || kind == ROWS_GRAD_BACK;
    if (*known < 0)
        *known = hec_traffic_wave(&r->mover[a->set], t, a->layer, wave, what[kind], back);
    return *known;
}

static void move_rows(struct run *r, int32_t device, const struct hec_action *a) {
    struct device *d = &r->device[device];
    const bool again = d->depth == 2, back = a->act == HEC_ACT_RETURN;
    const enum rows kind = again     ? ROWS_AGAIN
                           : a->back ? (back ? ROWS_GRAD_BACK : ROWS_GRAD_THERE)
                                     : (back ? ROWS_BACK : ROWS_THERE);
    const int32_t transfer = wave_transfer(r, d, a, kind, wave_of(d, a->back));
    hec_run_start(r, device, transfer);
    if (!back) hec_run_wait(r, device, transfer, HEC_SPENT_ROWS);
}

// The lane keeps the order: with the last wave's results all have come.
static void collect(struct run *r, int32_t device, const struct hec_action *a) {
    const struct device *d = &r->device[device];
    const int64_t last = a->back ? 0 : traffic_of(r, d, a)->waves - 1;
    hec_run_wait(r, device, wave_transfer(r, d, a, a->back ? ROWS_GRAD_BACK : ROWS_BACK, last),
                 HEC_SPENT_ROWS);
}

static void await(struct run *r, int32_t device, const struct hec_action *a) {
    const struct hec_traffic *t = traffic_of(r, &r->device[device], a);
    const int32_t transfer = a->back ? t->again : t->added >= 0 ? t->added : t->gather;
    if (transfer >= 0 && hec_transfer_begun(r->lanes, transfer, device))
        hec_run_wait(r, device, transfer, HEC_SPENT_CHUNKS);
}

static void release(struct run *r, int32_t device, const struct hec_action *a) {
    const int32_t transfer = traffic_of(r, &r->device[device], a)->reduce;
    if (transfer >= 0 && hec_transfer_begun(r->lanes, transfer, device))
        hec_run_wait(r, device, transfer, HEC_SPENT_GRADIENTS);
}

// ---- loops

// Where a loop that does not run at all ends; else the next action.
static void open_loop(struct device *d, const struct hec_action *a, int64_t count) {
    if (count <= 0) {
        d->at = a->end;
        return;
    }
    assert(d->depth < LOOPS);
    d->loop[d->depth++] = (struct loop){d->at, 0, count};
}

static void close_loop(struct device *d) {
    struct loop *l = &d->loop[d->depth - 1];
    if (++l->step < l->count) {
        d->at = l->begin;
    } else {
        d->depth--;
    }
}

// ---- the script

// AdamW on a mean device for copies that stay, each of which has states.
static double copies_us(const struct run *r, const struct device *d) {
    const struct hec_costs *costs = &r->request->setup->costs;
    double bytes = 0;
    if (!costs->count || r->policy->collective != HPL_COLLECTIVE_EXCHANGE) return 0;
    for (int i = 0; i < costs->count; i++) {
        for (int64_t l = 0; l < costs->set[i].layers; l++)
            bytes += (double)costs->set[i].grad_bytes *
                     r->layer[i][l].traffic[d->iteration & 1].replicas / hec_devices_of(r);
    }
    return hec_optimizer_us(&costs->machine, 0, bytes);
}

static void compute(struct run *r, int32_t device, const struct hec_action *a) {
    const struct device *d = &r->device[device];
    if (!d->depth) {
        hec_run_pass(r, device, a, HEC_SPENT_COMPUTE, a->us + (a->last ? copies_us(r, d) : 0));
        return;
    }
    const struct hec_action *waves = &r->script->action[d->loop[0].begin];
    const struct hec_mover *m = &r->mover[waves->set];
    const double rows =
        hec_traffic_rows(m, traffic_of(r, d, waves), device, wave_of(d, waves->back));
    hec_run_pass(r, device, a, HEC_SPENT_EXPERTS, a->us * rows / (double)m->cost->wave_rows);
}

// A device that gathers all experts has the next layer's on their way, too, while this one computes.
static void gather(struct run *r, int32_t device, const struct hec_action *a) {
    const struct device *d = &r->device[device];
    const bool ahead = hpl_gathers_all(r->policy);
    for (int32_t step = 0; step <= (int32_t)ahead; step++) {
        struct hec_action next = *a;
        next.layer += a->again ? -step : step;
        if (next.layer < 0 || next.layer >= r->mover[a->set].cost->layers) return;
        const struct hec_traffic *t = traffic_of(r, d, &next);
        hec_run_start(r, device, a->again ? t->again : t->gather);
    }
}

static void prefetch(struct run *r, int32_t device, const struct hec_action *a) {
    if (r->device[device].loop[0].step > 0) return;
    plan(r, device, a);
    hec_run_start(r, device, traffic_of(r, &r->device[device], a)->gather);
}

static void exchange(struct run *r, int32_t device, const struct hec_action *a) {
    const int32_t transfer = traffic_of(r, &r->device[device], a)->exchange;
    if (a->act == HEC_ACT_EXCHANGE)
        hec_run_start(r, device, transfer);
    else
        hec_run_wait(r, device, transfer, HEC_SPENT_COUNTS);
}

static void act(struct run *r, int32_t device, const struct hec_action *a) {
    struct device *d = &r->device[device];
    switch (a->act) {
    case HEC_ACT_COMPUTE:
        compute(r, device, a);
        return;
    case HEC_ACT_PLAN:
        plan(r, device, a);
        return;
    case HEC_ACT_GATHER:
        gather(r, device, a);
        return;
    case HEC_ACT_PREFETCH:
        prefetch(r, device, a);
        return;
    case HEC_ACT_EXCHANGE:
    case HEC_ACT_COUNTS:
        exchange(r, device, a);
        return;
    case HEC_ACT_CALIBRATE:
        hec_run_start(r, device, traffic_of(r, d, a)->added);
        return;
    case HEC_ACT_AWAIT:
        await(r, device, a);
        return;
    case HEC_ACT_WAVES:
        open_loop(d, a, traffic_of(r, d, a)->waves);
        return;
    case HEC_ACT_OVERWRITTEN:
        open_loop(d, a, wave_of(d, true) < traffic_of(r, d, a)->waves - 1);
        return;
    case HEC_ACT_END:
        close_loop(d);
        return;
    case HEC_ACT_ROWS:
    case HEC_ACT_RETURN:
        move_rows(r, device, a);
        return;
    case HEC_ACT_COLLECT:
        collect(r, device, a);
        return;
    case HEC_ACT_REDUCE:
        hec_run_start(r, device, traffic_of(r, d, a)->reduce);
        return;
    case HEC_ACT_RELEASE:
        release(r, device, a);
        return;
    case HEC_ACT_DENSE:
        hec_run_dense(r, device, a);
        return;
    case HEC_ACT_UNIT:
    case HEC_ACT_UNIT_AWAIT:
        hec_run_unit(r, device, a);
        return;
    case HEC_ACT_SUMS:
        if (d->now > r->body[hec_step_of(r, d)]) r->body[hec_step_of(r, d)] = d->now;
        hec_run_sums(r, device);
        return;
    case HEC_ACT_NORM:
    case HEC_ACT_PUBLISH:
        hec_run_meet(r, device, a);
        return;
    case HEC_ACT_RESHARD:
        hec_run_reshard(r, device, a);
        return;
    case HEC_ACTS:
        return;
    }
}

// The end of the script, which ends an iteration, a step, or all steps.
static void end_iteration(struct run *r, struct device *d) {
    const int64_t step = hec_step_of(r, d);
    if (d->now > r->ends[d->iteration]) r->ends[d->iteration] = d->now;
    d->at = 0;
    d->iteration++;
    if (hec_step_of(r, d) == step) return;
    if (d->now > r->end[step]) {
        r->end[step] = d->now;
        r->path[step] = d->path;
    }
    d->ended = step + 1 == r->request->steps;
    r->ended += d->ended;
}

// Runs the device until its time has passed on, or it waits.
static void go_on(struct run *r, int32_t device) {
    struct device *d = &r->device[device];
    const double now = d->now;
    while (!d->ended && d->waits < 0 && d->now == now && !r->failed) {
        const struct hec_action *a = &r->script->action[d->at];
        const bool first = d->iteration % r->script->iterations == 0;
        const bool last = (d->iteration + 1) % r->script->iterations == 0;
        if ((!a->first || first) && (!a->last || last)) act(r, device, a);
        d->at++;
        if (d->at >= r->script->count && d->waits < 0) end_iteration(r, d);
    }
    if (!d->ended && d->waits < 0) push(r, device);
}

// Devices whose transfers have ended.
static void wake(struct run *r, double now) {
    for (const struct hec_woken *w; (w = hec_lanes_woken(r->lanes));) {
        const int32_t i = w->device;
        struct device *d = &r->device[i];
        if (d->waits < 0 || d->waits != w->transfer) continue;
        d->waits = -1;
        d->path = w->path;
        hec_run_note(r, i, &r->script->action[d->at - 1], d->why, d->since, now);
        d->now = now;
        if (d->at >= r->script->count) end_iteration(r, d);
        if (!d->ended) push(r, i);
    }
}

static bool run_all(struct run *r) {
    for (int32_t i = 0; i < r->devices; i++) push(r, i);
    while (r->ended < r->devices && !r->failed) {
        const double next = hec_lanes_next(r->lanes);
        double now = next;
        if (r->ready.count && r->ready.item[0].at <= next) {
            const int32_t device = hec_agenda_take(&r->ready).what;
            now = r->device[device].now;
            go_on(r, device);
        } else if (isinf(next)) {
            return false; // All wait for each other: a fault of the walk, or of the module.
        } else {
            hec_lanes_pass(r->lanes, next);
        }
        wake(r, now);
    }
    return !r->failed;
}

// ---- all of it

static void tell_part(void *context, const struct hec_part *part) {
    const struct run *r = context;
    const struct hec_watcher *w = r->request->watcher;
    if (w && w->part) w->part(w->context, r->lanes, part);
}

static void tell_sent(void *context, const struct hec_sent *sent) {
    const struct run *r = context;
    const struct hec_watcher *w = r->request->watcher;
    if (w && w->sent) w->sent(w->context, r->lanes, sent);
}

// Planning of a layer takes a tenth of a millisecond and 26 ns for each expert and device (docs/planner.md, Time).
static double plan_us(const struct run *r, const struct hec_set_cost *c) {
    return 100 + 0.026 * c->experts * hec_devices_of(r);
}

// As many pieces of a chunk as make its way over several devices short: with more, times hardly differ.
enum { SEGMENTS_MOST = 8 };

static void take_set(struct run *r, int i) {
    const struct hec_setup *s = r->request->setup;
    const struct hpl_movement *movement = r->request->movement;
    const struct hec_set_cost *c = &s->costs.set[i];
    struct hec_mover *m = &r->mover[i];
    const int32_t segments = hec_slots_of(&s->costs, c, r->policy, movement).segments;
    *m = (struct hec_mover){
        .lanes = r->lanes,
        .cost = c,
        .segments = segments < SEGMENTS_MOST ? segments : SEGMENTS_MOST,
        .iterations = r->script->iterations,
        .sums = r->sums_alone,
        .begins = r->request->begins,
        .scene = hec_setup_scene(s, i),
        .movement = *movement,
    };
    m->owner = hec_arena_alloc(&r->arena, (size_t)(c->layers * c->experts), sizeof *m->owner);
    memcpy(m->owner, m->scene.owner, (size_t)(c->layers * c->experts) * sizeof *m->owner);
    m->scene.owner = m->owner;
    hec_mover_begin(m);
    if (!hec_run_place(r, i)) r->failed = true;
    r->plan_us[i] = plan_us(r, c);
    r->layer[i] = hec_arena_alloc(&r->arena, (size_t)c->layers, sizeof *r->layer[i]);
    r->planned[i] =
        hec_arena_alloc(&r->arena, (size_t)(c->layers * r->devices), sizeof *r->planned[i]);
    for (int64_t l = 0; l < c->layers; l++) {
        for (int k = 0; k < 2; k++) hec_traffic_take(m, &r->layer[i][l].traffic[k]);
    }
}

static void begin(struct run *r) {
    const struct hec_timeline_request *q = r->request;
    const struct hec_machine *m = &q->setup->costs.machine;
    const size_t steps = (size_t)q->steps;
    r->devices = (int32_t)(m->nodes * m->devices);
    r->sums_alone = q->sums || r->devices > HEC_PAIRS_MOST;
    r->lanes = hec_lanes_create(m, r->sums_alone);
    hec_lanes_observe(r->lanes, (struct hec_lanes_watcher){tell_part, tell_sent, r});
    r->device = hec_arena_alloc(&r->arena, (size_t)r->devices, sizeof *r->device);
    r->spent = hec_arena_alloc(&r->arena, steps * (size_t)r->devices * HEC_SPENT, sizeof *r->spent);
    r->end = hec_arena_alloc(&r->arena, 6 * steps, sizeof *r->end);
    r->ends = hec_arena_alloc(&r->arena, steps * (size_t)r->script->iterations, sizeof *r->ends);
    r->body = r->end + steps, r->moved = r->body + steps;
    r->imbalance = r->moved + steps, r->replicas = r->imbalance + steps;
    r->cross = r->replicas + steps;
    r->path = hec_arena_alloc(&r->arena, steps, sizeof *r->path);
    r->layer_us =
        hec_arena_alloc(&r->arena, (size_t)hec_timeline_layers(q->setup) + 1, sizeof *r->layer_us);
    for (int32_t i = 0; i < r->devices; i++) r->device[i].waits = -1;
    for (int k = 0; k < 2; k++) {
        r->of_step[k] = r->of_iteration[k] = r->change[k].step = -1;
        r->unit[k] = hec_arena_alloc(&r->arena, (size_t)r->script->units + 1, sizeof *r->unit[k]);
    }
    for (int i = 0; i < q->setup->costs.count; i++) take_set(r, i);
}

static void end(struct run *r) {
    for (int i = 0; i < r->request->setup->costs.count; i++) {
        for (int64_t l = 0; l < r->mover[i].cost->layers; l++) {
            for (int k = 0; k < 2 * ROWS; k++) free(r->layer[i][l].wave[k / ROWS][k % ROWS]);
        }
        hec_mover_free(&r->mover[i]);
    }
    for (int k = 0; k < 2; k++) free(r->sum[k]);
    free(r->ready.item);
    hec_lanes_free(r->lanes);
    hec_arena_free(&r->arena);
}

static double waited(const double *spent) {
    double us = 0;
    for (int k = HEC_SPENT_COUNTS; k < HEC_SPENT; k++) us += spent[k];
    return us;
}

static void add_path(struct hec_path *to, const struct hec_path *from, double factor) {
    for (int k = 0; k < HEC_PATH_OWN; k++) to->own[k] += factor * from->own[k];
    for (int k = 0; k < HEC_LANES; k++) to->lane[k] += factor * from->lane[k];
}

static void sum_up(const struct run *r, int64_t number, struct hec_step_time *step) {
    const double *of = r->spent + (size_t)number * (size_t)r->devices * HEC_SPENT, *least = of;
    double layers = 0;
    for (int i = 0; i < r->request->setup->costs.count; i++)
        layers += (double)(r->mover[i].cost->layers * r->script->iterations);
    const double begin = number ? r->end[number - 1] : 0;
    *step =
        (struct hec_step_time){.us = r->end[number] - begin, .body_us = r->body[number] - begin};
    for (int32_t i = 0; i < r->devices; i++, of += HEC_SPENT) {
        for (int k = 0; k < HEC_SPENT; k++) step->spent[k] += of[k] / hec_devices_of(r);
        if (waited(of) < waited(least)) least = of;
    }
    memcpy(step->slowest, least, sizeof step->slowest);
    step->moved = r->moved[number];
    add_path(&step->path, &r->path[number], 1);
    if (number) add_path(&step->path, &r->path[number - 1], -1);
    if (layers == 0) return;
    step->imbalance = r->imbalance[number] / layers;
    step->replicas = r->replicas[number] / layers;
    step->cross = r->cross[number] / layers;
    step->exposed = (step->spent[HEC_SPENT_CHUNKS] + step->spent[HEC_SPENT_GRADIENTS]) / layers;
}

int64_t hec_timeline_layers(const struct hec_setup *setup) {
    int64_t most = 0;
    for (int i = 0; i < setup->costs.count; i++) {
        if (setup->costs.set[i].layers > most) most = setup->costs.set[i].layers;
    }
    return most;
}

static void give(const struct run *r, const struct hec_timeline_result *result) {
    const int64_t steps = r->request->steps, layers = hec_timeline_layers(r->request->setup);
    const int64_t nodes = r->request->setup->costs.machine.nodes;
    const double parts = hec_devices_of(r) * (double)(steps > 1 ? steps - 1 : 1);
    for (int64_t i = 0; i < steps; i++) sum_up(r, i, &result->step[i]);
    for (int64_t l = 0; result->layer_us && l < layers; l++)
        result->layer_us[l] = r->layer_us[l] / parts;
    if (result->ends)
        memcpy(result->ends, r->ends,
               (size_t)(steps * r->script->iterations) * sizeof *result->ends);
    if (result->carried)
        memcpy(result->carried, hec_lanes_carried(r->lanes),
               (size_t)(2 * r->devices + 2 * nodes) * sizeof *result->carried);
}

const char *hec_timeline(const struct hec_timeline_request *request,
                         const struct hec_timeline_result *result) {
    static const char *const refused = "the planner refuses these experts and loads";
    const char *why = NULL;
    struct run *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->request = request;
    r->script = request->script;
    r->policy = hpl_policy_find(request->movement->policy);
    begin(r);
    if (!run_all(r))
        why = r->failed ? refused : "cannot be simulated: its devices wait for each other for ever";
    if (!why) give(r, result);
    if (!why && result->owners && !hec_run_owners(r, result->step, result->owners)) why = refused;
    end(r);
    free(r);
    return why;
}
