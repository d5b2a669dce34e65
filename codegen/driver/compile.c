// One compilation: stage after stage, until the one that the command line asks for.
#include "codegen/driver/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codegen/base/output.h"
#include "codegen/base/status.h"
#include "codegen/driver/finish.h"
#include "codegen/driver/simulate.h"
#include "codegen/stages/read.h"
#include "codegen/stages/run_passes.h"
#include "codegen/stages/stages.h"
#include "codegen/tune/autotune.h"
#include "codegen/tune/fit.h"
#include "codegen/tune/policy.h"
#include "ir/core/setting.h"
#include "lang/base/clock.h"
#include "passes/base/movement.h"
#include "passes/plan_file.h"
#include "passes/plan_origin.h"

// Notes the files that the command line names.
static bool note_files(const struct hec_options *o) {
    return hec_output_note(false, "the input", o->input) &&
           hec_output_note(false, "--cluster", o->cluster) &&
           hec_output_note(false, "--plan", o->plan) &&
           hec_output_note(false, "--profile", o->profile) &&
           hec_output_note(true, "-o", o->output) &&
           hec_output_note(true, "--emit-plan", o->emit_plan) &&
           hec_output_note(true, "--trace", o->trace);
}

static bool make_temps_folder(struct hec_compilation *c) {
    const char *folder = c->options->save_temps_folder;
    if (!folder || mkdir(folder, 0777) == 0 || errno == EEXIST) return true;
    return hec_fail("cannot make '%s': %s", folder, strerror(errno));
}

// ---- how experts move

// The passes read files of their own: the module says which.
static bool name_files(struct hec_compilation *c) {
    const struct hec_options *o = c->options;
    const char *const file[] = {o->profile, o->plan, o->emit_plan};
    const char *const flag[] = {"--profile", "--plan", "--emit-plan"};
    const char *const key[] = {"hecate.recorded_loads", "hecate.plan", NULL};
    for (int i = 0; i < 3; i++) {
        if (!file[i]) continue;
        // Loads are also what is simulated where experts stay, as may have been chosen by them.
        const bool simulated = (o->simulate || c->again) && i == 0 && hec_has_ranks(c->module);
        if (!hec_moves_experts(c->module) && !simulated)
            return hec_fail("%s: no experts move in this program", flag[i]);
        if (key[i]) hec_set_attr(c->module, hec_attr_string(c->context, key[i], file[i]));
    }
    return true;
}

// The files of measurements that settings name.
static bool note_measurements(struct hec_compilation *c) {
    static const enum hec_key key[] = {HEC_KEY_cluster_device_measured,
                                       HEC_KEY_cluster_link_measured};
    bool sound = true;
    for (int i = 0; i < 2 && sound; i++) {
        const MlirStringRef path = hec_setting_text(c->module, key[i]);
        if (path.length)
            sound = hec_output_note(false, hec_setting_rows[key[i]].key,
                                    hec_arena_copy(c->arena, path.data, path.length));
    }
    return sound;
}

static void print_plan_file(struct hec_compilation *c, FILE *out) {
    hec_plan_write(c->module, c->tuned, out);
}

// A check needs no homes: it ends before place-buffers.
static bool stop_early(struct hec_compilation *c) {
    if (!c->options->syntax_only) return true;
    if (!hec_make_pipeline(c)) return false;
    const int last = hec_pipeline_find(c->pipeline, "verify-movement");
    if (last >= 0 && STAGE_PASS + last < c->to) c->to = STAGE_PASS + last;
    return true;
}

// A plan's settings stand before those of the command line, which count more.
static void take_settings_of_plan(struct hec_compilation *c) {
    const struct hec_plan_settings plan = hec_plan_settings(c->options->plan, c->arena);
    struct hec_options *o = HEC_NEW(c->arena, struct hec_options);
    *o = *c->options;
    o->sets = (struct hec_texts){0};
    for (int i = 0; i < plan.count; i++) HEC_PUSH(c->arena, &o->sets.text, plan.set[i]);
    for (int i = 0; i < c->options->sets.text.count; i++)
        HEC_PUSH(c->arena, &o->sets.text, c->options->sets.text.item[i]);
    c->options = o;
}

static void warn_of_plan(void *context, const char *text) {
    struct hec_compilation *c = context;
    hec_diag_report(&c->diag, HEC_WARNING, HEC_NOWHERE, "%s", text);
}

static int run(struct hec_compilation *c);

// Compiles once more, with other options. Warnings were printed.
static int run_again(struct hec_compilation *c, const struct hec_options *options) {
    struct hec_compilation again = {.arena = c->arena,
                                    .options = options,
                                    .tuned = c->tuned,
                                    .fit = c->fit,
                                    .again = true,
                                    .started = hec_now()};
    again.diag = (struct hec_diag){.out = c->diag.out,
                                   .colour = c->diag.colour,
                                   .error_limit = c->diag.error_limit,
                                   .quiet = true};
    again.reporter = (struct hec_reporter){.diag = &again.diag, .sources.arena = c->arena};
    const int status = run(&again);
    hec_diag_flush(&again.diag);
    hec_compilation_end(&again);
    return status;
}

static int run(struct hec_compilation *c) {
    int status;
    if ((!c->again && !note_files(c->options)) || !hec_choose_stages(c) ||
        !hec_check_simulation(c) || !hec_check_autotune(c))
        return HEC_EXIT_COMMAND_LINE;
    if (c->options->save_temps && !make_temps_folder(c)) return HEC_EXIT_INPUT;
    c->name = "model";
    if (c->from == STAGE_C) return c->to == STAGE_C ? HEC_EXIT_DONE : hec_finish_program(c);
    if (c->options->autotune && (status = hec_autotune(c)) != HEC_EXIT_DONE) return status;
    if (c->options->plan) take_settings_of_plan(c);
    if (c->from < STAGE_GRAPH && !hec_run_front(c, &status)) return status;
    if (!hec_make_module(c)) return HEC_EXIT_INPUT;
    if (c->options->autotune && !c->several_ranks && !c->options->no_warnings)
        fprintf(stderr, "hecatec: warning: --autotune: one process has nothing to choose\n");
    if (c->to == STAGE_GRAPH) return hec_finish_text(c, hec_print_module);
    if (!note_measurements(c) || !name_files(c) || !stop_early(c)) return HEC_EXIT_COMMAND_LINE;
    const struct hec_options *placing = c->again ? NULL : hec_choose_policy(c);
    if (placing) return run_again(c, placing);
    if (!hec_run_passes(c, &status)) return status;
    if (!hec_prove_homes(c)) return HEC_EXIT_INPUT;
    const struct hec_options *fitting = hec_fit(c);
    if (fitting) return run_again(c, fitting);
    hec_fit_note(c);
    if (c->options->plan) hec_plan_compare_origin(c->module, c->options->plan, warn_of_plan, c);
    if (hec_driver_failed(c)) return HEC_EXIT_INPUT;
    if (c->options->emit_plan && !hec_write_text(c, c->options->emit_plan, print_plan_file))
        return HEC_EXIT_INPUT;
    if (c->options->syntax_only) return HEC_EXIT_DONE; // It was for the plan.
    if (c->options->simulate) return hec_finish_simulation(c);
    if (hec_report_of(c)) return hec_finish_text(c, hec_report_of(c));
    if (c->to < STAGE_C) return hec_finish_text(c, hec_print_module);
    return c->to == STAGE_C ? hec_finish_c(c) : hec_finish_program(c);
}

static bool read_number(const char *text, uint32_t *number) {
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || value > UINT32_MAX)
        return hec_fail("--error-limit needs a whole number, got '%s'", text);
    *number = (uint32_t)value;
    return true;
}

int hec_compile(struct hec_arena *arena, const struct hec_options *options) {
    struct hec_compilation c = {.arena = arena, .options = options, .started = hec_now()};
    c.diag.out = stderr;
    c.diag.colour = strcmp(options->color, "always") == 0  ? HEC_COLOUR_ALWAYS
                    : strcmp(options->color, "never") == 0 ? HEC_COLOUR_NEVER
                                                           : HEC_COLOUR_AUTO;
    c.diag.quiet = options->no_warnings;
    c.diag.strict = options->warnings_are_errors;
    c.reporter = (struct hec_reporter){.diag = &c.diag, .sources.arena = arena};
    if (!read_number(options->error_limit, &c.diag.error_limit)) return HEC_EXIT_COMMAND_LINE;

    const int status = run(&c);
    hec_diag_flush(&c.diag);
    hec_compilation_end(&c);
    return status;
}
