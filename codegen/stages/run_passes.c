// Runs the passes of a compilation, and prints and saves the module after each of them.
#include "codegen/stages/run_passes.h"

#include <assert.h>
#include <string.h>

#include "codegen/base/status.h"
#include "codegen/stages/crash.h"
#include "codegen/stages/stages.h"
#include "ir/accessors.h"
#include "passes/homes/prove.h"

static bool is_printed(const struct hec_compilation *c, const struct hec_step *step) {
    const struct hec_texts *lists = &c->options->print_after;
    for (int i = 0; i < lists->text.count; i++) {
        for (const char *word = lists->text.item[i]; word; word = strchr(word, ',')) {
            word += *word == ',';
            const size_t length = strcspn(word, ",");
            const char *const names[] = {"all", step->stage, step->pass ? step->pass->flag : ""};
            for (int k = 0; k < 3; k++) {
                if (strlen(names[k]) == length && !strncmp(names[k], word, length)) return true;
            }
        }
    }
    return false;
}

// Every word of --print-ir-after must be a stage of the pipeline.
static bool check_printed(struct hec_compilation *c) {
    const struct hec_texts *lists = &c->options->print_after;
    for (int i = 0; i < lists->text.count; i++) {
        for (const char *word = lists->text.item[i]; word; word = strchr(word, ',')) {
            word += *word == ',';
            const char *name = hec_arena_copy(c->arena, word, strcspn(word, ","));
            int stage;
            if (strcmp(name, "all") == 0) continue;
            if (!hec_find_stage(c, "--print-ir-after", name, &stage)) return false;
            if (stage >= STAGE_PASS && stage < STAGE_C) continue;
            return hec_fail("--print-ir-after: '%s' is no pass", name);
        }
    }
    return true;
}

// The module says which passes went over it: the emitted program's first lines tell.
static void note_pass(struct hec_compilation *c, const struct hec_step *step) {
    const MlirStringRef before = hec_module_passes(c->module);
    const char *text = hec_arena_format(c->arena, "%.*s%s%s", (int)before.length, before.data,
                                        before.length ? "," : "", step->text);
    hec_module_put_passes(c->module, text);
}

static void save_module(struct hec_compilation *c, const char *stage, int number) {
    if (!c->options->save_temps || c->write_failed) return;
    const char *suffix = hec_arena_format(c->arena, ".%02d.%s.mlir", number, stage);
    const char *path = hec_temps_path(c, suffix);
    c->write_failed = !path || !hec_write_text(c, path, hec_print_module);
}

static const char *pass_phrase(struct hec_compilation *c, int index) {
    return hec_arena_format(c->arena, "running pass %s",
                            hec_pipeline_step(c->pipeline, index)->stage);
}

static void after_step(void *user, const struct hec_step *step, MlirOperation module) {
    struct hec_compilation *c = user;
    assert(mlirOperationEqual(module, c->module));
    if (!step->idle) note_pass(c, step);
    if (is_printed(c, step)) {
        fprintf(stderr, "// ---- after %s\n", step->stage);
        hec_print_module(c, stderr);
    }
    const int index = hec_pipeline_find(c->pipeline, step->stage);
    save_module(c, step->stage, index + 1);
    hec_crash_after(c, step->stage);
    const bool last = index + 1 == hec_pipeline_steps(c->pipeline);
    hec_crash_progress(last ? "emitting C" : pass_phrase(c, index + 1), step->stage);
}

// A proof that fails shows a fault of hecatec, unless the IR came as text that somebody may have changed.
static bool is_text_at_fault(const struct hec_compilation *c) {
    if (c->from < STAGE_GRAPH) return false;
    hec_fail("%s: no program has this IR; if hecatec printed it, that is a bug", c->options->input);
    return true;
}

bool hec_run_passes(struct hec_compilation *c, int *status) {
    *status = HEC_EXIT_COMMAND_LINE;
    if (!hec_make_pipeline(c) || !check_printed(c)) return false;
    const int first = c->from > STAGE_GRAPH ? c->from - STAGE_PASS + 1 : 0;
    const int end = c->to < STAGE_C ? c->to - STAGE_PASS + 1 : -1;
    const char *from = c->from > STAGE_GRAPH ? c->options->compile_from : "graph";
    if (c->from <= STAGE_GRAPH) save_module(c, "graph", 0);
    const bool any = first < hec_pipeline_steps(c->pipeline);
    hec_crash_progress(any ? pass_phrase(c, first) : "emitting C", from);
    hec_crash_after(c, "graph");
    const struct hec_pipeline_hooks hooks = {.after = after_step, .user = c, .trusts = c->trial};
    const enum hec_pass_result result =
        hec_pipeline_run(c->pipeline, c->module, first, end, &hooks);
    if (c->options->time_passes) hec_pipeline_print_times(c->pipeline, stderr);
    hec_driver_lap(c, "passes, with verification");
    const bool errors = hec_driver_failed(c);
    if (result == HEC_PASS_BROKEN && !is_text_at_fault(c)) hec_crash();
    *status = HEC_EXIT_INPUT;
    return result == HEC_PASS_DONE && !errors && !c->write_failed;
}

bool hec_prove_homes(struct hec_compilation *c) {
    const int steps = hec_pipeline_steps(c->pipeline), last = STAGE_PASS + steps - 1;
    const bool placed =
        steps > 0 && c->from < last &&
        strcmp(hec_pipeline_step(c->pipeline, steps - 1)->stage, "place-buffers") == 0;
    if (c->to < STAGE_C || placed) return true;
    const bool proven = hec_homes_prove(c->module);
    hec_driver_lap(c, "prove the placement");
    if (!proven) is_text_at_fault(c);
    return proven && !hec_driver_failed(c);
}
