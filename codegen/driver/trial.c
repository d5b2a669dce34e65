// A silent compilation, up to the placed module.
#include "codegen/driver/trial.h"

#include <stdlib.h>

#include "codegen/driver/compilation.h"
#include "codegen/driver/read.h"
#include "codegen/driver/run_passes.h"
#include "passes/movement.h"

// What a trial is compiled with: nothing that prints or writes.
static struct hec_options options_of(const struct hec_options *given, const char *const *more,
                                     int count, struct hec_arena *arena) {
    struct hec_options o = {
        .input = given->input,
        .defines = given->defines,
        .cluster = given->cluster,
        .target = given->target,
        .passes = given->passes,
        .profile = given->profile,
        .simulate = true,
    };
    for (int i = 0; i < given->sets.text.count; i++)
        HEC_PUSH(arena, &o.sets.text, given->sets.text.item[i]);
    for (int i = 0; i < count; i++) HEC_PUSH(arena, &o.sets.text, more[i]);
    return o;
}

static bool place(struct hec_compilation *c) {
    int status;
    if (!hec_run_front(c, &status) || !hec_make_module(c) || !hec_has_ranks(c->module))
        return false;
    if (c->options->profile)
        hec_set_attr(c->module,
                     hec_attr_string(c->context, "hecate.recorded_loads", c->options->profile));
    return hec_run_passes(c, &status);
}

bool hec_trial(const struct hec_options *given, const char *const *more, int count, int64_t steps,
               bool coarse, struct hec_step_score *score) {
    struct hec_arena arena = {0};
    const struct hec_options options = options_of(given, more, count, &arena);
    struct hec_compilation c = {.arena = &arena,
                                .options = &options,
                                .name = "model",
                                .from = STAGE_PARSE,
                                .to = STAGE_PROGRAM,
                                .started = hec_driver_now()};
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere) abort();
    c.diag.out = nowhere;
    c.reporter = (struct hec_reporter){.diag = &c.diag, .sources.arena = &arena};
    const bool sound = place(&c) && hec_simulate_score(c.module, steps, coarse, score);
    hec_diag_free(&c.diag);
    hec_pipeline_free(c.pipeline);
    if (!mlirOperationIsNull(c.module)) mlirOperationDestroy(c.module);
    if (!mlirContextIsNull(c.context)) mlirContextDestroy(c.context);
    hec_arena_free(&arena);
    fclose(nowhere);
    return sound;
}
