// run.c: one policy over all layer-steps.
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/plan/bound.h"
#include "runtime/plan/episode.h"
#include "runtime/plan/plan.h"
#include "tools/replay/replay.h"

// Everything a run allocates, once.
struct run {
    const struct loads *loads;
    const struct setting *setting;
    const struct hpl_policy *policy;
    struct hpl_episode episode;
    uint32_t end;           // Microbatches that the forecast knows, all counted from the beginning.
    uint32_t *past;         // [window][devices][experts] counts of some of them,
    int64_t *known;         // [window] and of which: (microbatch, layer); -1: none.
    int32_t *owners, *next; // [layers][experts], and after re-sharding.
    const int32_t *owner;   // Owners of the current layer.
    uint32_t *exact;        // [devices][experts]
    struct hpl_plan plan, before; // The plan; the plan before calibration.
    struct hpl_plan *layers;      // layers[l]: the present placement of a periodic policy.
    uint32_t *quota;              // [holders]
    int64_t *load;                // [devices]
    void *memory;                 // The episode's.
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
    free(run->past);
    free(run->known);
    free(run->exact);
    free(run->quota);
    free(run->load);
    free(run->memory);
}

// The counts of a layer's experts, `back` microbatches before the end of the forecast's knowledge.
static const uint32_t *counts(void *context, int32_t layer, int32_t back) {
    struct run *run = context;
    const struct loads *loads = run->loads;
    if ((uint32_t)back > run->end) return NULL;
    const uint32_t time = run->end - (uint32_t)back, slot = time % run->setting->window;
    uint32_t *rows = run->past + (size_t)slot * loads->devices * loads->experts;
    const int64_t wanted = (int64_t)time * loads->layers + layer;
    if (run->known[slot] != wanted)
        loads_step(loads, time / loads->microbatches, (uint32_t)layer, time % loads->microbatches,
                   rows);
    run->known[slot] = wanted;
    return rows;
}

// Before the gate what balance does not need is left to calibration, and so are slots; behind it, where
// chunks are waited for, only balance may ask for some.
static void set_terms(struct run *run) {
    const struct setting *setting = run->setting;
    struct hpl_terms plan = {setting->budget, setting->costs}, late = plan;
    if (hpl_episode_calibrates(&run->episode)) {
        plan.budget.replica_rows = INT32_MAX;
        plan.budget.slots -= (int32_t)setting->reserve;
        if (plan.budget.slots < 0) plan.budget.slots = 0;
    }
    late.budget.replica_rows = late.budget.import_rows = INT32_MAX;
    for (int other = 0; other < 2; other++) {
        run->episode.plan[other] = plan;
        run->episode.late[other] = late;
    }
}

static bool begin_episode(struct run *run, int32_t holders) {
    const struct setting *setting = run->setting;
    run->episode = (struct hpl_episode){
        .topology = &setting->topology,
        .policy = run->policy,
        .split = setting->dispatch < 0 ? run->policy->split : (enum hpl_split)setting->dispatch,
        .calibrates = !setting->calibrate         ? HPL_CALIBRATES_NEVER
                      : setting->calibrate_always ? HPL_CALIBRATES_ALWAYS
                                                  : HPL_CALIBRATES_WORTH,
        .layers = (int32_t)run->loads->layers,
        .experts = (int32_t)run->loads->experts,
        .window = (int32_t)setting->window,
        .counts = counts,
        .context = run,
        .owner = run->owners,
    };
    set_terms(run);
    const size_t bytes = hpl_episode_bytes(&run->episode, holders);
    run->memory = malloc(bytes);
    const struct hpl_work work = {.at = run->memory, .end = (unsigned char *)run->memory + bytes};
    return run->memory && hpl_episode_begin(&run->episode, work, holders) == HPL_OK;
}

// Even sharding: expert e with device e * D / E, or with more devices than experts on every D/E-th.
static bool begin_run(struct run *run) {
    const int32_t experts = (int32_t)run->loads->experts;
    const int32_t devices = run->setting->topology.devices;
    const size_t cells = (size_t)experts * (size_t)devices, window = run->setting->window;
    const int32_t holders = experts * devices; // fsdp holds everything everywhere.
    const size_t chunks = (size_t)run->loads->layers * (size_t)experts;
    run->owners = malloc(chunks * sizeof *run->owners);
    run->next = malloc(chunks * sizeof *run->next);
    run->past = malloc(window * cells * sizeof *run->past);
    run->known = malloc(window * sizeof *run->known);
    run->exact = malloc(cells * sizeof *run->exact);
    run->quota = malloc((size_t)holders * sizeof *run->quota);
    run->load = malloc((size_t)devices * sizeof *run->load);
    run->layers = calloc(run->loads->layers, sizeof *run->layers);
    bool taken = run->owners && run->next && run->past && run->known && run->exact && run->quota &&
                 run->load && run->layers && take_plan(&run->plan, experts, holders) &&
                 take_plan(&run->before, experts, holders);
    for (size_t i = 0; taken && i < chunks; i++) {
        run->owners[i] = (int32_t)((int64_t)(i % (size_t)experts) * devices / experts);
    }
    for (size_t i = 0; taken && i < window; i++) run->known[i] = -1;
    for (uint32_t l = 0; taken && l < run->loads->layers; l++) {
        taken = take_plan(&run->layers[l], experts, holders) &&
                hpl_plan_of_owners(&run->layers[l], experts, run->owners) == HPL_OK;
    }
    return taken && begin_episode(run, holders);
}

// Where the forecast's window for a layer-step ends: before it, or after the last microbatch of an
// older iteration. 0 when there is no such time.
static uint32_t forecast_end(const struct run *run, uint32_t iteration, uint32_t microbatch) {
    const uint32_t age = run->setting->forecast_age, per = run->loads->microbatches;
    if (age == 0) return iteration * per + microbatch;
    return iteration < age ? 0 : (iteration - age + 1) * per;
}

// False when there is no forecast. The first microbatch of a stored iteration has none of age 0:
// the microbatch stored before it lies many steps back.
static bool find_forecast(struct run *run, uint32_t iteration, uint32_t microbatch) {
    run->end = forecast_end(run, iteration, microbatch);
    return run->end > 0 && (run->setting->forecast_age > 0 || microbatch > 0);
}

static enum hpl_status route(struct run *run, int32_t rank) {
    return hpl_episode_route(&run->episode, run->exact, &run->plan, rank, run->quota);
}

// Routes every rank and counts where rows go.
static enum hpl_status measure(struct run *run, struct sample *sample) {
    const struct hpl_topology *topology = &run->setting->topology;
    memset(run->load, 0, (size_t)topology->devices * sizeof *run->load);
    for (int32_t rank = 0; rank < topology->devices; rank++) {
        const enum hpl_status status = route(run, rank);
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

// Entries into nodes, in chunks: of holders one by one, or of nodes.
static int64_t count_entries(const struct run *run) {
    const struct hpl_topology *topology = &run->setting->topology;
    const struct hpl_plan *plan = &run->plan;
    const bool direct = run->policy->collective == HPL_COLLECTIVE_DIRECT;
    int64_t entries = 0;
    for (int32_t e = 0; e < plan->experts; e++) {
        const int32_t home = topology->node[run->owner[e]];
        int32_t last = -1;
        for (int32_t k = plan->first[e]; k < plan->first[e + 1]; k++) {
            const int32_t n = topology->node[plan->holder[k]];
            entries += n != home && (direct || n != last);
            last = n;
        }
    }
    return entries;
}

// Likewise where every chunk is cut over all devices: a node gets all parts but those of its devices, for each holder,
// or once where all devices gather all.
static int64_t count_entries_of_shards(const struct run *run) {
    const struct hpl_topology *topology = &run->setting->topology;
    int64_t outside = 0;
    if (hpl_gathers_all(run->policy)) return (int64_t)run->plan.experts * (topology->nodes - 1);
    for (int32_t k = 0; k < run->plan.first[run->plan.experts]; k++) {
        const int32_t n = topology->node[run->plan.holder[k]];
        outside += topology->devices - (topology->first[n + 1] - topology->first[n]);
    }
    return outside / topology->devices;
}

// Counts the bytes that reach devices in this iteration, by the policy's collective. Gradients of copies that stay are
// summed: to one of them and back. A new placement brings its states.
static void count_movement(const struct run *run, struct sample *sample) {
    const struct hpl_plan *plan = &run->plan;
    const int64_t devices = run->setting->topology.devices, holders = plan->first[plan->experts];
    int64_t received = holders - plan->experts, gradients = received;
    sample->replicas = received;
    if (run->policy->collective == HPL_COLLECTIVE_EXCHANGE) {
        gradients = 2 * received;
        received = 0;
    } else if (hpl_from_shards(run->policy)) {
        received = gradients = holders * (devices - 1) / devices;
        sample->entries = count_entries_of_shards(run);
    } else {
        sample->entries = count_entries(run);
    }
    if (run->policy->when == HPL_WHEN_EXACT) sample->exposed = sample->replicas;
    const int64_t bytes = run->setting->budget.chunk_bytes;
    sample->bytes = bytes * (received + (1 + STATE_FACTOR) * sample->states);
    sample->grad_bytes = bytes * gradients;
}

// A periodic policy keeps its placement, and changes it every so often; new copies then arrive
// with their states.
static enum hpl_status place_periodic(struct run *run, struct sample *sample) {
    struct hpl_plan *present = &run->layers[sample->layer];
    const uint32_t time = sample->iteration * run->loads->microbatches + sample->microbatch;
    const uint32_t first =
        run->setting->forecast_age > 0 ? run->setting->forecast_age * run->loads->microbatches : 1;
    enum hpl_status status = HPL_OK;
    if ((time - first) % run->setting->period == 0) {
        status = hpl_plan_copy(&run->before, present);
        if (status == HPL_OK)
            status = hpl_episode_place_anew(&run->episode, (int32_t)sample->layer, present);
        for (int32_t e = 0; status == HPL_OK && e < present->experts; e++) {
            for (int32_t k = present->first[e]; k < present->first[e + 1]; k++)
                sample->states += !hpl_plan_holds(&run->before, e, present->holder[k]);
        }
    }
    return status == HPL_OK ? hpl_plan_copy(&run->plan, present) : status;
}

// Makes the plan of one layer-step and its shares: this is timed.
static enum hpl_status make_plan(struct run *run, struct sample *sample) {
    struct hpl_episode *episode = &run->episode;
    const int32_t layer = (int32_t)sample->layer;
    enum hpl_status status = run->policy->when == HPL_WHEN_PERIODIC
                                 ? place_periodic(run, sample)
                                 : hpl_episode_plan(episode, layer, run->exact, &run->plan);
    if (status == HPL_OK && hpl_episode_calibrates(episode)) {
        struct hpl_calibration result;
        status = hpl_plan_copy(&run->before, &run->plan);
        if (status == HPL_OK)
            status = hpl_episode_calibrate(episode, layer, 1, run->exact, &run->plan, &result);
        if (status == HPL_OK && result.taken) sample->exposed = result.added;
    }
    if (status == HPL_OK) status = hpl_episode_divide(episode, layer, run->exact, &run->plan);
    return status == HPL_OK ? route(run, 0) : status;
}

// The lower bounds for the budget, over all plans that add to the sharding; with calibration, over
// all that add to the plan made before the gate.
static enum hpl_status find_bound(struct run *run, const struct hpl_loads *exact,
                                  struct sample *sample) {
    const struct hpl_problem problem = {
        .topology = &run->setting->topology,
        .experts = exact->experts,
        .owner = run->owner,
        .present = hpl_episode_calibrates(&run->episode) ? &run->before : NULL,
        .loads = exact,
        .budget = run->setting->budget,
    };
    int64_t speed = 0;
    for (int32_t d = 0; d < problem.topology->devices; d++) speed += problem.topology->speed[d];
    struct hpl_bound bound = {0};
    const double mean = (double)sample->rows / (double)speed;
    const int64_t level = (int64_t)(sample->imbalance * mean * 1000) + 1;
    const enum hpl_status status = hpl_bound(&problem, level, &bound, &run->episode.work);
    sample->bound = sample->rows ? (double)bound.load / 1000 / mean : 1;
    if (sample->bound < 1) sample->bound = 1; // Rounded down to a thousandth of a row.
    sample->cross_bound = bound.cross;
    return status;
}

// Prints the step if it is the one that was asked for.
static enum hpl_status print(struct run *run, const struct hpl_loads *exact,
                             const struct sample *sample) {
    const struct setting *setting = run->setting;
    if (!setting->prints || sample->iteration != setting->print_iteration ||
        sample->layer != setting->print_layer || sample->microbatch != setting->print_microbatch) {
        return HPL_OK;
    }
    const enum hpl_status status = route(run, 0);
    if (status != HPL_OK) return status;
    const struct printed printed = {.topology = &setting->topology,
                                    .owner = run->owner,
                                    .loads = exact,
                                    .plan = &run->plan,
                                    .rows = run->quota};
    printf("# policy %s, iteration %u, layer %u, microbatch %u\n", run->policy->name,
           sample->iteration, sample->layer, sample->microbatch);
    return print_step(stdout, &printed, &run->episode.work) ? HPL_OK : HPL_NO_ROOM;
}

static enum hpl_status step(struct run *run, struct sample *sample) {
    const int32_t experts = (int32_t)run->loads->experts;
    const int32_t devices = run->setting->topology.devices;
    const struct hpl_loads exact = {devices, experts, run->exact};
    loads_step(run->loads, sample->iteration, sample->layer, sample->microbatch, run->exact);

    const struct hpl_problem problem = {.topology = &run->setting->topology,
                                        .experts = experts,
                                        .owner = run->owner,
                                        .loads = &exact,
                                        .budget = run->setting->budget};
    if (hpl_problem_check(&problem) != HPL_OK) return HPL_BAD_ARGUMENT;
    const int64_t begin = now_ns();
    enum hpl_status status = make_plan(run, sample);
    sample->plan_ns = now_ns() - begin;
    if (status == HPL_OK) status = measure(run, sample);
    if (status == HPL_OK) count_movement(run, sample);
    if (status == HPL_OK) status = print(run, &exact, sample);
    if (status == HPL_OK) status = find_bound(run, &exact, sample);
    return status;
}

// New owners by the forecast of all layers, every so many microbatches. Sets `states` to how many
// chunks move with their states.
static enum hpl_status reshard(struct run *run, uint32_t iteration, uint32_t microbatch,
                               int64_t *states) {
    const struct setting *setting = run->setting;
    const uint32_t time = iteration * run->loads->microbatches + microbatch;
    const size_t chunks = (size_t)run->loads->layers * run->loads->experts;
    *states = 0;
    run->end = forecast_end(run, iteration, microbatch);
    if (setting->reshard == 0 || run->end == 0 || time % setting->reshard != 0) return HPL_OK;
    const enum hpl_status status = hpl_episode_spread(&run->episode, run->next);
    for (size_t i = 0; status == HPL_OK && i < chunks; i++) {
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
                if (!find_forecast(run, i, m)) continue;
                struct sample *sample = &series->samples[series->count++];
                *sample = (struct sample){.iteration = i, .layer = l, .microbatch = m};
                sample->states = states; // For a re-sharding since the last sample.
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
