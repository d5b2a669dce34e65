// The command line of simulations.
#include "codegen/driver/simulate.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "codegen/base/output.h"
#include "codegen/base/status.h"
#include "passes/timeline/report.h"

// 0: not a number of steps, or none at all.
static long steps_of(const struct hec_options *o) {
    char *end;
    if (!o->simulate_steps) return 0;
    errno = 0;
    const long steps = strtol(o->simulate_steps, &end, 10);
    const bool sound = !errno && !*end && steps >= 1 && steps <= HEC_SIMULATE_STEPS_MAX;
    return sound ? steps : 0;
}

bool hec_check_simulation(struct hec_compilation *c) {
    const struct hec_options *o = c->options;
    if (!o->simulate) {
        if (o->trace) return hec_fail("--trace is of a simulation: add --simulate");
        return !o->json || hec_fail("--json is of a simulation: add --simulate");
    }
    if (o->simulate_steps && !steps_of(o))
        return hec_fail("--simulate needs a number of steps from 1 to %d, got '%s'",
                        HEC_SIMULATE_STEPS_MAX, o->simulate_steps);
    if (o->explain) return hec_fail("--simulate and --explain are two reports; ask for one");
    if (c->from == STAGE_C) return hec_fail("--simulate needs the model or its IR, not its C");
    if (c->to < STAGE_C)
        return hec_fail(
            "--simulate needs all passes: it does not go with --compile-to or -fsyntax-only");
    return true;
}

int hec_finish_simulation(struct hec_compilation *c) {
    const struct hec_options *o = c->options;
    char *text[2] = {NULL};
    size_t length[2] = {0};
    FILE *report = open_memstream(&text[0], &length[0]);
    FILE *trace = o->trace ? open_memstream(&text[1], &length[1]) : NULL;
    assert(report && (trace || !o->trace));
    bool sound = hec_simulate_report(c->module, steps_of(o), o->json, report, trace);
    fclose(report);
    if (trace) fclose(trace);
    hec_driver_lap(c, "simulate");
    if (sound && o->trace) sound = hec_output_write(c->arena, o->trace, text[1], length[1]);
    if (sound) sound = hec_output_write(c->arena, o->output ? o->output : "-", text[0], length[0]);
    free(text[0]);
    free(text[1]);
    return sound && !hec_driver_failed(c) ? HEC_EXIT_DONE : HEC_EXIT_INPUT;
}
