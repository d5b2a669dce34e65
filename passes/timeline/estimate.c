// Steps, their median, and the speed of a run.
#include "passes/timeline/estimate.h"

#include <stdlib.h>
#include <string.h>

#include "ir/accessors.h"
#include "ir/core/setting.h"
#include "ir/target/target.h"
#include "passes/cost/explain.h"
#include "passes/cost/memory.h"
#include "passes/cost/recorded.h"
#include "passes/timeline/search.h"

// ---- time

// Steps of many iterations say as much in fewer: the first one, which has no forecast, and one more do.
static int64_t enough(int64_t iterations) {
    enum { STEPS = 6, ITERATIONS = 8, LEAST = 2 };
    const int64_t most = ITERATIONS / iterations > LEAST ? ITERATIONS / iterations : LEAST;
    return STEPS < most ? STEPS : most;
}

static int by_us(const void *left, const void *right) {
    const struct hec_step_time *a = left, *b = right;
    return (a->us > b->us) - (a->us < b->us);
}

// The first one knows no loads yet, and does not count.
static struct hec_step_time median_of(const struct hec_step_time *step, int64_t steps) {
    const int64_t cold = steps > 1, warm = steps - cold;
    struct hec_step_time *all = malloc((size_t)warm * sizeof *all);
    if (!all) abort(); // As the arenas of the compiler do.
    memcpy(all, step + cold, (size_t)warm * sizeof *all);
    // The time of changes of owners is divided over the steps of their interval; one of these is not the median.
    for (int64_t i = 0; i < warm; i++) all[i].us -= all[i].spent[HEC_SPENT_STATES];
    qsort(all, (size_t)warm, sizeof *all, by_us);
    const struct hec_step_time middle = all[warm / 2];
    free(all);
    return middle;
}

static void take_result(struct hec_estimate *e, struct hec_arena *arena) {
    const struct hec_machine *m = &e->request.setup->costs.machine;
    const size_t steps = (size_t)e->request.steps;
    const size_t layers = (size_t)hec_timeline_layers(e->request.setup) + 1;
    const size_t ports = (size_t)(2 * m->nodes * (m->devices + 1));
    e->result = (struct hec_timeline_result){
        .step = hec_arena_alloc(arena, steps, sizeof *e->result.step),
        .carried = hec_arena_alloc(arena, ports, sizeof *e->result.carried),
        .layer_us = hec_arena_alloc(arena, layers, sizeof *e->result.layer_us),
        .owners = &e->owners,
    };
}

bool hec_estimate(const struct hec_estimate_request *r, struct hec_arena *arena,
                  struct hec_estimate *e) {
    *e = (struct hec_estimate){0};
    if (!hec_script_of(r->module, &r->setup->costs, 0, arena, &e->script)) return false;
    const int64_t iterations = e->script.iterations;
    const int64_t steps = r->steps ? r->steps : enough(iterations);
    const int64_t begins = r->setup->recorded_times - steps * iterations;
    e->request = (struct hec_timeline_request){.setup = r->setup,
                                               .script = &e->script,
                                               .movement = &r->setup->movement,
                                               .watcher = r->watcher,
                                               .steps = steps,
                                               .begins = begins > 0 ? begins : 0,
                                               .sums = r->sums};
    take_result(e, arena);
    const char *why = hec_timeline(&e->request, &e->result);
    if (why) return hec_ir_error(r->module, "%s", why);
    e->median = median_of(e->result.step, steps);
    // Loads that end before an interval has passed say neither what a change takes nor what it gives.
    e->us = e->median.us + (e->owners.loads_are_short ? 0 : e->owners.us_of_a_step);
    return true;
}

// ---- a run

struct hec_speed hec_speed_of(MlirOperation module, const struct hec_machine *m, double us) {
    const double devices = (double)(m->nodes * m->devices);
    struct hec_speed s = {
        .us = us,
        .tokens = devices * (double)(hec_step_iterations(module, m) * hec_module_batch(module) *
                                     hec_module_positions(module)),
        .steps = (double)hec_setting_count(module, HEC_KEY_train_steps, 0),
    };
    if (hec_module_has_flops_per_token(module) && m->flops > 0)
        s.mfu = hec_module_flops_per_token(module) * s.tokens / (1e-6 * us * devices * m->flops);
    return s;
}

struct hec_speed_text hec_speed_text(const struct hec_speed *s) {
    struct hec_speed_text to;
    const double seconds = 1e-6 * s->us * s->steps;
    size_t at = (size_t)snprintf(to.text, sizeof to.text, "%s: %s/s", hec_text_us(s->us).text,
                                 hec_text_rate(s->tokens / (1e-6 * s->us), "tokens").text);
    if (s->mfu > 0)
        at += (size_t)snprintf(to.text + at, sizeof to.text - at, ", MFU %.1f %%", 100 * s->mfu);
    if (s->steps > 0)
        snprintf(to.text + at, sizeof to.text - at, ";\n  the run's %s take %s",
                 hec_text_rate(s->tokens * s->steps, "tokens").text, hec_text_long(seconds).text);
    return to;
}

// ---- for comparing

bool hec_estimate_memory(MlirOperation module, struct hec_step_score *score) {
    struct hec_memory memory;
    if (!hec_memory_of(module, &memory))
        return hec_ir_error(module, "has no homes: place-buffers did not run");
    *score = (struct hec_step_score){.bytes = (double)memory.all,
                                     .memory = (double)memory.device,
                                     .replicas = (double)memory.item[HEC_MEMORY_REPLICAS]};
    return true;
}

bool hec_estimate_brief(MlirOperation module, struct hec_step_score *score) {
    struct hec_arena arena = {0};
    struct hec_setup *setup = HEC_NEW(&arena, struct hec_setup);
    struct hec_script script;
    double us;
    const bool sound = hec_setup_read(module, &arena, setup) &&
                       hec_script_of(module, &setup->costs, HEC_SEARCH_LAYERS, &arena, &script) &&
                       hec_search_us(setup, &script, &setup->movement, HEC_DETAIL_SUMS, &us) &&
                       hec_estimate_memory(module, score);
    if (sound) score->speed = hec_speed_of(module, &setup->costs.machine, us);
    hec_recorded_free(setup);
    hec_arena_free(&arena);
    return sound;
}

static bool score_of(MlirOperation module, const struct hec_estimate_request *request,
                     struct hec_arena *arena, struct hec_step_score *score) {
    const struct hec_setup *setup = request->setup;
    const struct hec_costs *costs = &setup->costs;
    struct hec_estimate e;
    if (!hec_estimate(request, arena, &e)) return false;
    const double devices = (double)(costs->machine.nodes * costs->machine.devices);
    struct hec_step_score memory;
    if (!hec_estimate_memory(module, &memory)) return false;
    *score = (struct hec_step_score){
        .speed = hec_speed_of(module, &costs->machine, e.us),
        .bytes = memory.bytes,
        .replicas = memory.replicas,
        .apart = hec_target_of(module)->apart,
        .memory = costs->machine.memory,
        .actions = devices * (double)(e.script.count * e.script.iterations * e.request.steps),
        .overlap = setup->movement.overlap,
        .slots = setup->movement.slots,
        .wave_rows = costs->count ? costs->set[0].wave_rows : 0,
        .nodes = costs->machine.nodes,
        .ranks = hec_module_has_world(module) ? hec_module_world(module) : 1,
        .positions = hec_module_positions(module),
        .vocabulary = hec_module_has_vocabulary(module) ? hec_module_vocabulary(module) : 0,
    };
    return true;
}

bool hec_estimate_score(MlirOperation module, int64_t steps, bool sums,
                        struct hec_step_score *score) {
    struct hec_arena arena = {0};
    struct hec_setup *setup = HEC_NEW(&arena, struct hec_setup);
    const struct hec_estimate_request request = {
        .module = module, .setup = setup, .steps = steps, .sums = sums};
    const bool sound =
        hec_setup_read(module, &arena, setup) && score_of(module, &request, &arena, score);
    hec_recorded_free(setup);
    hec_arena_free(&arena);
    return sound;
}
