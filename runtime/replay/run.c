// run.c: one policy over all layer-steps.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/plan/bound.h"
#include "runtime/plan/calibrate.h"
#include "runtime/plan/reshard.h"
#include "runtime/replay/replay.h"

// Everything a run allocates, once.
struct run {
    const struct loads *loads;
    const struct setting *setting;
    const struct hpl_policy *policy;
    int32_t *owner, *owners, *next; // Of a layer; [layers][experts] of all, and after re-sharding.
    int64_t *layer_rows;            // [layers][experts]
    uint32_t *forecast, *exact;     // [devices][experts]
    uint32_t *sum;                  // [devices][experts], while a forecast is averaged
    struct hpl_plan plan, before;   // The plan, and what it was before calibration.
    struct hpl_plan *layers;        // layers[l]: the present placement of a periodic policy.
    int64_t *share;
    uint32_t *quota; // [holders]
    int64_t *load;   // [devices]
    void *memory;
    size_t memory_bytes;
};

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static bool take_plan(struct hpl_plan *plan, int32_t experts, int32_t capacity) {
    *plan = (struct hpl_plan){
        .experts = experts,
        .capacity = capacity,
        .first = calloc((size_t)experts + 1, sizeof *plan->first),
        .holder = calloc((size_t)capacity, sizeof *plan->holder),
    };
    return plan->first && plan->holder;
}

static void drop_plan(struct hpl_plan *plan) {
    free(plan->first);
    free(plan->holder);
}

static void end_run(struct run *run) {
    for (uint32_t l = 0; run->layers && l < run->loads->layers; l++) drop_plan(&run->layers[l]);
    drop_plan(&run->plan);
    drop_plan(&run->before);
    free(run->layers);
    free(run->owners);
    free(run->next);
    free(run->layer_rows);
    free(run->forecast);
    free(run->exact);
    free(run->sum);
    free(run->share);
    free(run->quota);
    free(run->load);
    free(run->memory);
}

// Even sharding: expert e with device e * D / E, or with more devices than experts on every D/E-th.
static bool begin_run(struct run *run) {
    const int32_t experts = (int32_t)run->loads->experts;
    const int32_t devices = run->setting->topology.devices;
    const size_t cells = (size_t)experts * (size_t)devices;
    const int32_t holders = experts * devices; // fsdp holds everything everywhere.
    const int32_t nodes = run->setting->topology.nodes, layers = (int32_t)run->loads->layers;
    const size_t chunks = (size_t)layers * (size_t)experts;
    run->memory_bytes = hpl_work_bytes(experts, devices, nodes, holders) +
                        hpl_reshard_work_bytes(layers, experts, devices, nodes);
    run->owners = malloc(chunks * sizeof *run->owners);
    run->next = malloc(chunks * sizeof *run->next);
    run->layer_rows = malloc(chunks * sizeof *run->layer_rows);
    run->forecast = malloc(cells * sizeof *run->forecast);
    run->exact = malloc(cells * sizeof *run->exact);
    run->sum = malloc(cells * sizeof *run->sum);
    run->share = malloc((size_t)holders * sizeof *run->share);
    run->quota = malloc((size_t)holders * sizeof *run->quota);
    run->load = malloc((size_t)devices * sizeof *run->load);
    run->memory = malloc(run->memory_bytes);
    run->layers = calloc(run->loads->layers, sizeof *run->layers);
    bool taken = run->owners && run->next && run->layer_rows && run->forecast && run->exact &&
                 run->sum && run->share && run->quota && run->load && run->memory && run->layers &&
                 take_plan(&run->plan, experts, holders) &&
                 take_plan(&run->before, experts, holders);
    for (size_t i = 0; taken && i < chunks; i++) {
        run->owners[i] = (int32_t)((int64_t)(i % (size_t)experts) * devices / experts);
    }
    run->owner = run->owners;
    for (uint32_t l = 0; taken && l < run->loads->layers; l++) {
        struct hpl_plan *present = &run->layers[l];
        taken = take_plan(present, experts, holders);
        for (int32_t e = 0; taken && e < experts; e++) {
            present->holder[e] = run->owner[e];
            present->first[e + 1] = e + 1;
        }
    }
    return taken;
}

// The mean, rounded to nearest, of the window of microbatches that ends before `end`, all
// microbatches counted from the beginning.
static void average(struct run *run, uint32_t layer, uint32_t end) {
    const uint32_t per = run->loads->microbatches;
    const uint32_t begin = end > run->setting->window ? end - run->setting->window : 0;
    const size_t cells = (size_t)run->loads->devices * run->loads->experts;
    memset(run->sum, 0, cells * sizeof *run->sum);
    for (uint32_t at = begin; at < end; at++) {
        loads_step(run->loads, at / per, layer, at % per, run->forecast);
        for (size_t i = 0; i < cells; i++) run->sum[i] += run->forecast[i];
    }
    const uint32_t count = end - begin;
    for (size_t i = 0; i < cells; i++) run->forecast[i] = (run->sum[i] + count / 2) / count;
}

// Where the forecast's window for a layer-step ends: before it, or after the last microbatch of an
// older iteration. 0 when there is no such time.
static uint32_t forecast_end(const struct run *run, uint32_t iteration, uint32_t microbatch) {
    const uint32_t age = run->setting->forecast_age, per = run->loads->microbatches;
    if (age == 0) return iteration * per + microbatch;
    return iteration < age ? 0 : (iteration - age + 1) * per;
}

// False when there is no forecast. The first microbatch of a stored iteration has none of age 0:
// what was stored before it lies many steps back.
static bool form_forecast(struct run *run, uint32_t iteration, uint32_t layer,
                          uint32_t microbatch) {
    const uint32_t end = forecast_end(run, iteration, microbatch);
    if (end == 0 || (run->setting->forecast_age == 0 && microbatch == 0)) return false;
    average(run, layer, end);
    return true;
}

static enum hpl_split split_of(const struct run *run) {
    return run->setting->dispatch < 0 ? run->policy->split : (enum hpl_split)run->setting->dispatch;
}

static bool calibrates(const struct run *run) {
    return run->setting->calibrate && run->policy->calibrates;
}

static enum hpl_status route(struct run *run, const struct hpl_loads *exact, int32_t rank,
                             struct hpl_work *work) {
    const enum hpl_split split = split_of(run);
    const struct hpl_topology *topology = &run->setting->topology;
    if (split == HPL_SPLIT_QUOTA || split == HPL_SPLIT_PLANNED) {
        return hpl_route(topology, &run->plan, exact, run->share, rank, run->quota, work);
    }
    hpl_route_even(topology, &run->plan, exact, hpl_split_even(split), rank, run->quota);
    return HPL_OK;
}

// Routes every rank and counts where rows go.
static enum hpl_status measure(struct run *run, const struct hpl_loads *exact,
                               struct sample *sample, struct hpl_work *work) {
    const struct hpl_topology *topology = &run->setting->topology;
    memset(run->load, 0, (size_t)topology->devices * sizeof *run->load);
    for (int32_t rank = 0; rank < topology->devices; rank++) {
        const enum hpl_status status = route(run, exact, rank, work);
        if (status != HPL_OK) return status;
        for (int32_t k = 0; k < run->plan.first[run->plan.experts]; k++) {
            const int32_t d = run->plan.holder[k];
            run->load[d] += run->quota[k];
            sample->rows += run->quota[k];
            if (topology->node[d] != topology->node[rank])
                sample->cross += run->quota[k];
            else if (d != rank)
                sample->intra += run->quota[k];
        }
    }
    double worst = 0, speed = 0;
    for (int32_t d = 0; d < topology->devices; d++) {
        const double load = (double)run->load[d] / topology->speed[d];
        if (load > worst) worst = load;
        speed += topology->speed[d];
    }
    sample->imbalance = sample->rows ? worst * speed / (double)sample->rows : 1.0;
    return HPL_OK;
}

// Chunks that enter nodes and devices in this iteration. What a periodic policy has placed stays,
// so only its changes move, with their states. Where chunks are cut over all devices, a device
// receives all but its own part, and a node all but those of its devices.
static void count_movement(const struct run *run, struct sample *sample) {
    const struct hpl_topology *topology = &run->setting->topology;
    const struct hpl_plan *plan = &run->plan;
    const bool from_shards = run->policy->from_shards;
    const bool stays = run->policy->when == HPL_WHEN_PERIODIC;
    int64_t outside = 0, holders = plan->first[plan->experts];
    for (int32_t e = 0; e < plan->experts; e++) {
        const int32_t home = topology->node[run->owner[e]];
        int32_t last = -1;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t n = topology->node[plan->holder[k]];
            if (n != last) {
                sample->entries += n != home;
                outside += topology->devices - (topology->first[n + 1] - topology->first[n]);
            }
            last = n;
        }
    }
    sample->replicas = holders - plan->experts;
    int64_t received = stays ? 0 : sample->replicas;
    if (from_shards) {
        received = holders * (topology->devices - 1) / topology->devices;
        sample->entries = outside / topology->devices;
    }
    if (stays) sample->entries = 0;
    if (run->policy->when == HPL_WHEN_EXACT) sample->exposed = sample->replicas;
    sample->bytes =
        run->setting->budget.chunk_bytes * (received + (1 + STATE_FACTOR) * sample->states);
}

// Plans again on the exact counts, from the plan made before the gate.
static enum hpl_status calibrate(struct run *run, struct hpl_problem problem,
                                 const struct hpl_loads *exact, struct sample *sample,
                                 struct hpl_work *work) {
    const struct hpl_plan first = run->plan;
    run->plan = run->before;
    run->before = first;
    problem.present = &run->before;
    problem.loads = exact;
    problem.budget = run->setting->budget;
    problem.budget.replica_rows = INT32_MAX; // Exposed: only what balance asks for.
    problem.budget.import_rows = INT32_MAX;
    struct hpl_calibration result;
    const enum hpl_status status =
        hpl_calibrate(&problem, run->policy, split_of(run), run->setting->calibrate_always,
                      &run->plan, run->share, &result, work);
    if (status == HPL_OK && result.taken) sample->exposed = result.added;
    return status;
}

static void copy_plan(struct hpl_plan *to, const struct hpl_plan *from) {
    const int32_t holders = from->first[from->experts];
    memcpy(to->first, from->first, ((size_t)from->experts + 1) * sizeof *to->first);
    memcpy(to->holder, from->holder, (size_t)holders * sizeof *to->holder);
}

static bool holds(const struct hpl_plan *plan, int32_t expert, int32_t device) {
    for (int32_t k = plan->first[expert]; k < plan->first[expert + 1]; k++) {
        if (plan->holder[k] == device) return true;
    }
    return false;
}

// A periodic policy keeps its placement, and changes it every so often; what is new then arrives
// with its states.
static enum hpl_status place_periodic(struct run *run, struct hpl_problem *problem,
                                      struct sample *sample, struct hpl_work *work) {
    struct hpl_plan *present = &run->layers[sample->layer];
    const uint32_t time = sample->iteration * run->loads->microbatches + sample->microbatch;
    const uint32_t first =
        run->setting->forecast_age > 0 ? run->setting->forecast_age * run->loads->microbatches : 1;
    if ((time - first) % run->setting->period == 0) {
        problem->present = present;
        const enum hpl_status status =
            hpl_place(run->policy, problem, &run->plan, run->share, work);
        if (status != HPL_OK) return status;
        for (int32_t e = 0; e < run->plan.experts; e++) {
            for (int32_t k = run->plan.first[e]; k < run->plan.first[e + 1]; k++) {
                sample->states += !holds(present, e, run->plan.holder[k]);
            }
        }
        copy_plan(present, &run->plan);
    }
    copy_plan(&run->plan, present);
    return HPL_OK;
}

// The plan of one layer-step and its shares: what is timed.
static enum hpl_status make_plan(struct run *run, const struct hpl_loads *forecast,
                                 const struct hpl_loads *exact, struct sample *sample,
                                 struct hpl_work *work) {
    const struct setting *setting = run->setting;
    const struct hpl_policy *policy = run->policy;
    struct hpl_problem problem = {
        .topology = &setting->topology,
        .experts = exact->experts,
        .owner = run->owner,
        .loads = policy->when == HPL_WHEN_EXACT ? exact : forecast,
        .budget = setting->budget,
        .costs = setting->costs,
    };
    // What balance does not need before the gate is left to calibration.
    if (calibrates(run)) {
        problem.budget.replica_rows = INT32_MAX;
        problem.budget.slots -= (int32_t)setting->reserve;
        if (problem.budget.slots < 0) problem.budget.slots = 0;
    }
    enum hpl_status status = policy->when == HPL_WHEN_PERIODIC
                                 ? place_periodic(run, &problem, sample, work)
                                 : hpl_place(policy, &problem, &run->plan, run->share, work);
    if (status == HPL_OK && calibrates(run)) {
        status = calibrate(run, problem, exact, sample, work);
    } else if (status == HPL_OK && split_of(run) == HPL_SPLIT_QUOTA) {
        struct hpl_level level;
        status = hpl_share(&setting->topology, &run->plan, exact, setting->budget.slack, run->share,
                           &level, work);
    }
    return status == HPL_OK ? route(run, exact, 0, work) : status;
}

// The lower bounds for the budget, over all plans that add to the sharding; with calibration, over
// all that add to the plan made before the gate.
static enum hpl_status find_bound(const struct run *run, const struct hpl_loads *exact,
                                  struct sample *sample, struct hpl_work *work) {
    const struct hpl_problem problem = {
        .topology = &run->setting->topology,
        .experts = exact->experts,
        .owner = run->owner,
        .present = calibrates(run) ? &run->before : NULL,
        .loads = exact,
        .budget = run->setting->budget,
    };
    int64_t speed = 0;
    for (int32_t d = 0; d < problem.topology->devices; d++) speed += problem.topology->speed[d];
    struct hpl_bound bound = {0};
    const double mean = (double)sample->rows / (double)speed;
    const int64_t level = (int64_t)(sample->imbalance * mean * 1000) + 1;
    const enum hpl_status status = hpl_bound(&problem, level, &bound, work);
    sample->bound = sample->rows ? (double)bound.load / 1000 / mean : 1;
    if (sample->bound < 1) sample->bound = 1; // Rounded down to a thousandth of a row.
    sample->cross_bound = bound.cross;
    return status;
}

// Prints the step if it is the one that was asked for.
static enum hpl_status print(struct run *run, const struct hpl_loads *exact,
                             const struct sample *sample, struct hpl_work *work) {
    const struct setting *setting = run->setting;
    if (!setting->prints || sample->iteration != setting->print_iteration ||
        sample->layer != setting->print_layer || sample->microbatch != setting->print_microbatch) {
        return HPL_OK;
    }
    const enum hpl_status status = route(run, exact, 0, work);
    if (status != HPL_OK) return status;
    const struct printed printed = {.topology = &setting->topology,
                                    .owner = run->owner,
                                    .loads = exact,
                                    .plan = &run->plan,
                                    .rows = run->quota};
    printf("# policy %s, iteration %u, layer %u, microbatch %u\n", run->policy->name,
           sample->iteration, sample->layer, sample->microbatch);
    return print_step(stdout, &printed, work) ? HPL_OK : HPL_NO_ROOM;
}

static enum hpl_status step(struct run *run, struct sample *sample) {
    const int32_t experts = (int32_t)run->loads->experts;
    const int32_t devices = run->setting->topology.devices;
    const struct hpl_loads forecast = {devices, experts, run->forecast};
    const struct hpl_loads exact = {devices, experts, run->exact};
    struct hpl_work work = {run->memory, (unsigned char *)run->memory + run->memory_bytes};
    loads_step(run->loads, sample->iteration, sample->layer, sample->microbatch, run->exact);

    const struct hpl_problem problem = {.topology = &run->setting->topology,
                                        .experts = experts,
                                        .owner = run->owner,
                                        .loads = &exact,
                                        .budget = run->setting->budget};
    if (hpl_problem_check(&problem) != HPL_OK) return HPL_BAD_ARGUMENT;
    const int64_t begin = now_ns();
    enum hpl_status status = make_plan(run, &forecast, &exact, sample, &work);
    sample->plan_ns = now_ns() - begin;
    if (status == HPL_OK) status = measure(run, &exact, sample, &work);
    if (status == HPL_OK) count_movement(run, sample);
    if (status == HPL_OK) status = print(run, &exact, sample, &work);
    if (status == HPL_OK) status = find_bound(run, &exact, sample, &work);
    return status;
}

// Algorithm 2 on the forecast of all layers, every so many microbatches. Sets `states` to how many
// chunks move with their states.
static enum hpl_status reshard(struct run *run, uint32_t iteration, uint32_t microbatch,
                               int64_t *states) {
    const struct setting *setting = run->setting;
    const uint32_t time = iteration * run->loads->microbatches + microbatch;
    const int32_t layers = (int32_t)run->loads->layers, experts = (int32_t)run->loads->experts;
    *states = 0;
    const uint32_t end = forecast_end(run, iteration, microbatch);
    if (setting->reshard == 0 || end == 0 || time % setting->reshard != 0) return HPL_OK;
    for (int32_t l = 0; l < layers; l++) {
        average(run, (uint32_t)l, end);
        for (int32_t e = 0; e < experts; e++) {
            int64_t *sum = &run->layer_rows[l * experts + e];
            *sum = 0;
            for (uint32_t d = 0; d < run->loads->devices; d++) {
                *sum += run->forecast[d * (uint32_t)experts + (uint32_t)e];
            }
        }
    }
    struct hpl_work work = {run->memory, (unsigned char *)run->memory + run->memory_bytes};
    const enum hpl_status status =
        hpl_reshard(&setting->topology, layers, experts, run->layer_rows, setting->budget.entries,
                    run->owners, run->next, &work);
    for (int32_t i = 0; status == HPL_OK && i < layers * experts; i++) {
        *states += run->owners[i] != run->next[i];
        run->owners[i] = run->next[i];
    }
    return status;
}

static bool fail(const struct run *run, uint32_t iteration, enum hpl_status status) {
    fprintf(stderr, "hecate-replay: policy %s, iteration %u: %s\n", run->policy->name, iteration,
            hpl_status_text(status));
    return false;
}

static bool run_all(struct run *run, struct series *series) {
    const struct loads *loads = run->loads;
    const int32_t devices = run->setting->topology.devices;
    int64_t states = 0;
    for (uint32_t i = 0; i < loads->iterations; i++) {
        for (uint32_t m = 0; m < loads->microbatches; m++) {
            int64_t moved = 0;
            enum hpl_status status = reshard(run, i, m, &moved);
            states += moved;
            if (status != HPL_OK) return fail(run, i, status);
            for (uint32_t l = 0; l < loads->layers; l++) {
                run->owner = run->owners + (size_t)l * loads->experts;
                if (!form_forecast(run, i, l, m)) continue;
                struct sample *sample = &series->samples[series->count++];
                *sample = (struct sample){.iteration = i, .layer = l, .microbatch = m};
                sample->states = states; // Of a re-sharding since the last sample.
                states = 0;
                status = step(run, sample);
                if (status != HPL_OK) return fail(run, i, status);
                if (l != run->setting->picture_layer) continue;
                double *at = series->picture + series->picture_count++ * devices;
                for (int32_t d = 0; d < devices; d++) {
                    at[d] = (double)run->load[d] * devices / (double)sample->rows;
                }
            }
        }
    }
    return true;
}

bool replay_run(const struct loads *loads, const struct setting *setting,
                const struct hpl_policy *policy, struct series *series) {
    assert(loads->devices == (uint32_t)setting->topology.devices);
    struct run run = {.loads = loads, .setting = setting, .policy = policy};
    const size_t steps = (size_t)loads->iterations * loads->microbatches;
    *series = (struct series){.policy = policy};
    series->samples = calloc(steps * loads->layers, sizeof *series->samples);
    series->picture = calloc(steps * loads->devices, sizeof *series->picture);
    bool done = series->samples && series->picture && begin_run(&run);
    if (!done) fprintf(stderr, "hecate-replay: out of memory\n");
    done = done && run_all(&run, series);
    end_run(&run);
    return done;
}

void series_free(struct series *series) {
    free(series->samples);
    free(series->picture);
    *series = (struct series){0};
}
