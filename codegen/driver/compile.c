// One compilation: stage after stage, until the one that the command line asks for.
#include "codegen/driver/compile.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codegen/c/emit_c.h"
#include "codegen/driver/cc.h"
#include "codegen/driver/crash.h"
#include "codegen/driver/output.h"
#include "codegen/driver/report.h"
#include "codegen/driver/version.h"
#include "ir/build/build.h"
#include "lang/base/str.h"
#include "lang/check.h"
#include "lang/settings.h"
#include "passes/movement.h"
#include "passes/pipeline.h"
#include "passes/place/prove.h"
#include "passes/plan_file.h"

// Stages in their order. Those of passes have the passes' names and lie between graph and c: stage
// STAGE_PASS + i is what step i of the pipeline leaves.
enum stage { STAGE_PARSE, STAGE_CHECK, STAGE_GRAPH, STAGE_PASS, STAGE_C = 1000, STAGE_PROGRAM };

static const struct {
    const char *name;
    enum stage stage;
    const char *text;
} fixed_stages[] = {
    {"parse", STAGE_PARSE, "the model as it was read; .moe text"},
    {"check", STAGE_CHECK, "names, dimensions and settings resolved; for people"},
    {"graph", STAGE_GRAPH, "the IR before any pass"},
    {"c", STAGE_C, "the program's C"},
};
enum { FIXED_STAGES = sizeof fixed_stages / sizeof *fixed_stages };

struct compilation {
    struct hec_arena *arena;
    const struct hec_options *options;
    struct hec_diag diag;
    struct hec_reporter reporter;
    MlirContext context;
    struct hec_pipeline *pipeline;
    bool several_ranks; // Known from the IR on.
    MlirOperation module;
    struct hec_program *program;
    int from, to;      // Stages.
    const char *name;  // Of the model.
    bool write_failed; // A file of --save-temps could not be written; complained of.
    double started;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Says how long what just ended took, when asked.
static void lap(struct compilation *c, const char *what) {
    const double end = now();
    if (c->options->time_passes) {
        fprintf(stderr, "%10.3f  %s\n", 1e3 * (end - c->started), what);
    }
    c->started = end;
}

static bool has_errors(struct compilation *c) {
    hec_diag_flush(&c->diag);
    return c->diag.errors > 0;
}

// ---- stages by name

void hec_stages_print(FILE *out) {
    for (int i = 0; i < FIXED_STAGES; i++) {
        if (fixed_stages[i].stage == STAGE_C) {
            fprintf(out, "and after each pass, by its name, the second use of one as NAME-2:\n  ");
            fprintf(out, "%s\n", HEC_PIPELINE_DEFAULT);
        }
        fprintf(out, "%-8s %s\n", fixed_stages[i].name, fixed_stages[i].text);
    }
}

static MlirContext context_of(struct compilation *c) {
    if (mlirContextIsNull(c->context)) {
        c->context = hec_ir_context(hec_report_ir, &c->reporter);
    }
    return c->context;
}

static bool make_pipeline(struct compilation *c) {
    if (c->pipeline) return true;
    const char *text = c->options->passes ? c->options->passes : HEC_PIPELINE_DEFAULT;
    char *why = NULL;
    c->pipeline = hec_pipeline_parse(context_of(c), text, &why);
    if (!c->pipeline) fprintf(stderr, "hecatec: error: --passes: %s\n", why);
    free(why);
    return c->pipeline;
}

static bool find_stage(struct compilation *c, const char *flag, const char *name, int *stage) {
    for (int i = 0; i < FIXED_STAGES; i++) {
        if (strcmp(fixed_stages[i].name, name) == 0) return *stage = fixed_stages[i].stage, true;
    }
    if (!make_pipeline(c)) return false;
    const int step = hec_pipeline_find(c->pipeline, name);
    if (step >= 0) return *stage = STAGE_PASS + step, true;

    const int steps = hec_pipeline_steps(c->pipeline);
    const char **names = hec_arena_alloc(c->arena, (size_t)(steps + FIXED_STAGES), sizeof *names);
    for (int i = 0; i < FIXED_STAGES; i++) names[i] = fixed_stages[i].name;
    for (int i = 0; i < steps; i++) {
        names[FIXED_STAGES + i] = hec_pipeline_step(c->pipeline, i)->stage;
    }
    const char *close = hec_closest(name, names, FIXED_STAGES + steps);
    fprintf(stderr, "hecatec: error: %s: there is no stage '%s'", flag, name);
    if (close) fprintf(stderr, "; did you mean '%s'?", close);
    fprintf(stderr, "%s\n", close ? "" : " (see --print-stages)");
    return false;
}

// What the options ask for: the first stage to compute and the last one.
static bool choose_stages(struct compilation *c) {
    const struct hec_options *o = c->options;
    c->from = STAGE_PARSE;
    c->to = STAGE_PROGRAM;
    if (o->emit_c) c->to = STAGE_C;
    if (o->syntax_only) c->to = STAGE_CHECK;
    int stage;
    if (o->compile_to) {
        if (!find_stage(c, "--compile-to", o->compile_to, &stage)) return false;
        if (stage < c->to) c->to = stage;
    }
    if (o->compile_from) {
        if (!find_stage(c, "--compile-from", o->compile_from, &c->from)) return false;
        if (c->from == STAGE_CHECK) {
            fprintf(stderr, "hecatec: error: --compile-from=check: that stage is for people and "
                            "cannot be read back; parse and graph can\n");
            return false;
        }
        if (c->from > c->to) {
            fprintf(stderr,
                    "hecatec: error: --compile-from=%s comes after the stage to compile "
                    "to\n",
                    o->compile_from);
            return false;
        }
    }
    if (o->passes && !make_pipeline(c)) return false;
    return true;
}

// ---- printing

static void write_ir(MlirStringRef text, void *user) {
    fwrite(text.data, 1, text.length, user);
}

static void print_module(struct compilation *c, FILE *out) {
    hec_ir_print(c->module, write_ir, out);
}

// Calls `print` and writes its text to `path`.
static bool write_text(struct compilation *c, const char *path,
                       void (*print)(struct compilation *c, FILE *out)) {
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert(out);
    print(c, out);
    fclose(out);
    const bool written = hec_output_write(c->arena, path, text, length);
    free(text);
    return written;
}

static int finish_text(struct compilation *c, void (*print)(struct compilation *c, FILE *out)) {
    const char *path = c->options->output ? c->options->output : "-";
    return write_text(c, path, print) ? HEC_EXIT_DONE : HEC_EXIT_INPUT;
}

// NULL after a complaint.
static const char *temps_path(struct compilation *c, const char *suffix) {
    const char *folder = c->options->save_temps_folder ? c->options->save_temps_folder : ".";
    const char *path = hec_arena_format(c->arena, "%s/%s%s", folder, c->name, suffix);
    return hec_output_note(true, "--save-temps", path) ? path : NULL;
}

// Where the program or its C goes: -o, or the model's name and `suffix`. NULL after a complaint.
static const char *output_path(struct compilation *c, const char *suffix) {
    if (c->options->output) return c->options->output;
    const char *path = hec_arena_format(c->arena, "%s%s", c->name, suffix);
    return hec_output_note(true, "the output", path) ? path : NULL;
}

// What the command line names.
static bool note_files(const struct hec_options *o) {
    return hec_output_note(false, "the input", o->input) &&
           hec_output_note(false, "--plan", o->plan) &&
           hec_output_note(false, "--profile", o->profile) &&
           hec_output_note(true, "-o", o->output) &&
           hec_output_note(true, "--emit-plan", o->emit_plan);
}

static bool note_imports(const struct hec_sources *sources) {
    for (int i = 0; i < sources->all.count; i++) {
        if (!hec_output_note(false, "the import", sources->all.item[i]->path)) return false;
    }
    return true;
}

static bool make_temps_folder(struct compilation *c) {
    const char *folder = c->options->save_temps_folder;
    if (!folder || mkdir(folder, 0777) == 0 || errno == EEXIST) return true;
    fprintf(stderr, "hecatec: error: cannot make '%s': %s\n", folder, strerror(errno));
    return false;
}

// ---- parse and check

static struct hec_front_options front_options(struct compilation *c) {
    const struct hec_options *o = c->options;
    const char *prefix = hec_prefix(c->arena);
    return (struct hec_front_options){
        .path = o->input,
        .defines = o->defines.text.item,
        .defines_count = o->defines.text.count,
        .sets = o->sets.text.item,
        .sets_count = o->sets.text.count,
        .library = prefix ? hec_arena_format(c->arena, "%s/share/hecate/moe", prefix) : NULL,
    };
}

static void print_check(struct compilation *c, FILE *out) {
    hec_program_print(c->program, out);
}

// Runs lang/. Returns whether the compilation goes on; else sets the exit status.
static bool run_front(struct compilation *c, int *status) {
    const struct hec_front_options front = front_options(c);
    hec_crash_progress("reading the model", NULL);
    *status = HEC_EXIT_INPUT;
    if (c->to == STAGE_PARSE) {
        char *text = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&text, &length);
        assert(out);
        const bool read = hec_front_print_parse(&front, &c->diag, c->arena, out);
        fclose(out);
        const char *path = c->options->output ? c->options->output : "-";
        if (!has_errors(c) && read && hec_output_write(c->arena, path, text, length)) {
            *status = HEC_EXIT_DONE;
        }
        free(text);
        return false;
    }
    const bool sound = hec_front(&front, &c->diag, c->arena, &c->program) &&
                       hec_check_target(c->program, c->options->target, &c->diag);
    if (has_errors(c) || !sound) return false;
    if (!note_imports(&c->program->sources)) return *status = HEC_EXIT_COMMAND_LINE, false;
    c->name = c->program->name;
    lap(c, "parse and check");
    const char *explain = c->options->explain;
    if (c->options->syntax_only) return *status = HEC_EXIT_DONE, false;
    if (c->to == STAGE_CHECK || (explain && strcmp(explain, "shapes") == 0)) {
        return *status = finish_text(c, print_check), false;
    }
    return true;
}

// ---- the IR

static bool read_module(struct compilation *c) {
    const char *why = NULL, *path = c->options->input;
    const struct hec_source *source = hec_source_read(&c->reporter.sources, path, &why);
    if (!source) {
        fprintf(stderr, "hecatec: error: cannot read '%s': %s\n", path, why);
        return false;
    }
    c->module = mlirOperationCreateParse(context_of(c), HEC_STR(source->text), HEC_STR(path));
    if (mlirOperationIsNull(c->module)) return false;
    if (!hec_op_is(c->module, HEC_OP_MODULE)) {
        hec_ir_error(c->module, "is not a module: this is no IR of hecatec");
        return false;
    }
    const MlirStringRef name = hec_get_string(c->module, "sym_name");
    c->name = name.length ? hec_arena_copy(c->arena, name.data, name.length) : "model";
    return hec_ir_verify(c->module);
}

static bool make_module(struct compilation *c) {
    hec_crash_progress("building the IR", NULL);
    if (c->from >= STAGE_GRAPH) {
        if (!read_module(c) || has_errors(c)) return false;
    } else {
        c->module = hec_ir_build(context_of(c), c->program);
        if (has_errors(c) || mlirOperationIsNull(c->module)) return false;
        lap(c, "build the graph");
    }
    c->several_ranks = hec_has_ranks(c->module);
    return true;
}

static bool is_printed(const struct compilation *c, const struct hec_step *step) {
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
static bool check_printed(struct compilation *c) {
    const struct hec_texts *lists = &c->options->print_after;
    for (int i = 0; i < lists->text.count; i++) {
        for (const char *word = lists->text.item[i]; word; word = strchr(word, ',')) {
            word += *word == ',';
            const char *name = hec_arena_copy(c->arena, word, strcspn(word, ","));
            int stage;
            if (strcmp(name, "all") == 0) continue;
            if (!find_stage(c, "--print-ir-after", name, &stage)) return false;
            if (stage >= STAGE_PASS && stage < STAGE_C) continue;
            fprintf(stderr, "hecatec: error: --print-ir-after: '%s' is no pass\n", name);
            return false;
        }
    }
    return true;
}

// The module says which passes went over it: the emitted program's first lines tell.
static void note_pass(struct compilation *c, const struct hec_step *step) {
    const MlirStringRef before = hec_get_string(c->module, "hecate.passes");
    const char *text = hec_arena_format(c->arena, "%.*s%s%s", (int)before.length, before.data,
                                        before.length ? "," : "", step->text);
    hec_set_attr(c->module, hec_attr_string(c->context, "hecate.passes", text));
}

static void save_module(struct compilation *c, const char *stage, int number) {
    if (!c->options->save_temps || c->write_failed) return;
    const char *suffix = hec_arena_format(c->arena, ".%02d.%s.mlir", number, stage);
    const char *path = temps_path(c, suffix);
    c->write_failed = !path || !write_text(c, path, print_module);
}

static void crash_on_purpose(const struct compilation *c, const char *stage) {
    if (c->options->crash_after && strcmp(c->options->crash_after, stage) == 0) abort();
}

static const char *pass_phrase(struct compilation *c, int index) {
    return hec_arena_format(c->arena, "running pass %s",
                            hec_pipeline_step(c->pipeline, index)->stage);
}

static void after_step(void *user, const struct hec_step *step, MlirOperation module) {
    struct compilation *c = user;
    assert(mlirOperationEqual(module, c->module));
    if (!step->idle) note_pass(c, step);
    if (is_printed(c, step)) {
        fprintf(stderr, "// ---- after %s\n", step->stage);
        print_module(c, stderr);
    }
    const int index = hec_pipeline_find(c->pipeline, step->stage);
    save_module(c, step->stage, index + 1);
    crash_on_purpose(c, step->stage);
    const bool last = index + 1 == hec_pipeline_steps(c->pipeline);
    hec_crash_progress(last ? "emitting C" : pass_phrase(c, index + 1), step->stage);
}

// A proof that fails shows a fault of hecatec, unless the IR came as text that somebody may have changed.
static bool is_text_at_fault(const struct compilation *c) {
    if (c->from < STAGE_GRAPH) return false;
    fprintf(stderr,
            "hecatec: error: %s: no program has this IR; if hecatec printed it, that is a bug\n",
            c->options->input);
    return true;
}

static bool run_passes(struct compilation *c, int *status) {
    *status = HEC_EXIT_COMMAND_LINE;
    if (!make_pipeline(c) || !check_printed(c)) return false;
    const int first = c->from > STAGE_GRAPH ? c->from - STAGE_PASS + 1 : 0;
    const int end = c->to < STAGE_C ? c->to - STAGE_PASS + 1 : -1;
    const char *from = c->from > STAGE_GRAPH ? c->options->compile_from : "graph";
    if (c->from <= STAGE_GRAPH) save_module(c, "graph", 0);
    const bool any = first < hec_pipeline_steps(c->pipeline);
    hec_crash_progress(any ? pass_phrase(c, first) : "emitting C", from);
    crash_on_purpose(c, "graph");
    const struct hec_pipeline_hooks hooks = {.after = after_step, .user = c};
    const enum hec_pass_result result =
        hec_pipeline_run(c->pipeline, c->module, first, end, &hooks);
    if (c->options->time_passes) hec_pipeline_print_times(c->pipeline, stderr);
    lap(c, "passes, with verification");
    const bool errors = has_errors(c);
    if (result == HEC_PASS_BROKEN && !is_text_at_fault(c)) hec_crash();
    *status = HEC_EXIT_INPUT;
    return result == HEC_PASS_DONE && !errors && !c->write_failed;
}

// Homes that place-buffers has not just given are proven before anything is made of them.
static bool prove_homes(struct compilation *c) {
    const int steps = hec_pipeline_steps(c->pipeline), last = STAGE_PASS + steps - 1;
    const bool placed =
        steps > 0 && c->from < last &&
        strcmp(hec_pipeline_step(c->pipeline, steps - 1)->stage, "place-buffers") == 0;
    if (c->to < STAGE_C || placed) return true;
    const bool proven = hec_prove_placement(c->module);
    lap(c, "prove the placement");
    if (!proven) is_text_at_fault(c);
    return proven && !has_errors(c);
}

// ---- how experts move

// The passes read files of their own: the module says which.
static bool name_files(struct compilation *c) {
    const struct hec_options *o = c->options;
    const char *const file[] = {o->profile, o->plan, o->emit_plan};
    const char *const flag[] = {"--profile", "--plan", "--emit-plan"};
    const char *const key[] = {"hecate.recorded_loads", "hecate.plan", NULL};
    for (int i = 0; i < 3; i++) {
        if (!file[i]) continue;
        if (!hec_moves_experts(c->module)) {
            fprintf(stderr, "hecatec: error: %s: no experts move in this program\n", flag[i]);
            return false;
        }
        if (key[i]) hec_set_attr(c->module, hec_attr_string(c->context, key[i], file[i]));
    }
    return true;
}

static void print_plan_file(struct compilation *c, FILE *out) {
    hec_plan_write(c->module, out);
}

// Reports that need no homes end before place-buffers: what it adds would cost time, too.
static bool stop_early(struct compilation *c) {
    const char *explain = c->options->explain;
    if (!explain || (strcmp(explain, "plan") != 0 && strcmp(explain, "comm") != 0)) return true;
    if (!make_pipeline(c)) return false;
    const int last = hec_pipeline_find(c->pipeline, "verify-movement");
    if (last >= 0 && STAGE_PASS + last < c->to) c->to = STAGE_PASS + last;
    return true;
}

static void print_memory(struct compilation *c, FILE *out) {
    hec_explain_memory(c->module, out);
}

static void print_plan(struct compilation *c, FILE *out) {
    hec_explain_plan(c->module, out);
}

static void print_comm(struct compilation *c, FILE *out) {
    hec_explain_comm(c->module, out);
}

// The report that was asked for; NULL: none, or one that came earlier.
static void (*report_of(const struct compilation *c))(struct compilation *c, FILE *out) {
    static const struct {
        const char *name;
        void (*print)(struct compilation *c, FILE *out);
    } reports[] = {{"memory", print_memory}, {"plan", print_plan}, {"comm", print_comm}};
    for (size_t i = 0; c->options->explain && i < sizeof reports / sizeof *reports; i++) {
        if (strcmp(c->options->explain, reports[i].name) == 0) return reports[i].print;
    }
    return NULL;
}

// ---- C

// Emits the program to `path`.
static int write_c(struct compilation *c, const char *path) {
    const struct hec_emit_options emit = {
        .version = HECATE_VERSION, .source_line = hec_report_line, .user = &c->reporter};
    struct hec_writer text = {.arena = c->arena};
    const bool emitted = hec_emit_c(c->module, &emit, &text);
    if (has_errors(c) || !emitted) return HEC_EXIT_INPUT;
    crash_on_purpose(c, "c");
    lap(c, "emit C");
    if (c->options->dry_run) return HEC_EXIT_DONE;
    return hec_output_write(c->arena, path, text.text, text.length) ? HEC_EXIT_DONE
                                                                    : HEC_EXIT_INPUT;
}

static int finish_c(struct compilation *c) {
    const bool shown = c->options->compile_to && !c->options->output;
    const char *path = shown ? "-" : output_path(c, ".c");
    return path ? write_c(c, path) : HEC_EXIT_COMMAND_LINE;
}

// Where the emitted C goes on its way to the C compiler.
static const char *c_file(struct compilation *c) {
    if (c->options->save_temps) return temps_path(c, ".c");
    if (c->options->dry_run) return hec_arena_format(c->arena, "/tmp/%s.c", c->name);
    return hec_output_temporary(c->arena, ".c", false);
}

static int finish_program(struct compilation *c) {
    const struct hec_options *o = c->options;
    const char *source = o->input;
    if (o->output && strcmp(o->output, "-") == 0) {
        fprintf(stderr, "hecatec: error: -o -: only text can go to standard output (-S)\n");
        return HEC_EXIT_COMMAND_LINE;
    }
    if (c->from == STAGE_C && access(source, R_OK) != 0) {
        fprintf(stderr, "hecatec: error: cannot read '%s': %s\n", source, strerror(errno));
        return HEC_EXIT_INPUT;
    }
    const char *output = output_path(c, o->object ? ".o" : "");
    if (!output) return HEC_EXIT_COMMAND_LINE;
    if (c->from < STAGE_C) {
        source = c_file(c);
        const int status = source ? write_c(c, source) : HEC_EXIT_INPUT;
        if (status != HEC_EXIT_DONE) return status;
    }
    const char *made = o->dry_run ? output : hec_output_begin(c->arena, output);
    if (!made) return HEC_EXIT_INPUT;
    const bool ranks = c->from == STAGE_C ? hec_cc_needs_mpi(source) : c->several_ranks;
    const int status = hec_cc_run(c->arena, o, ranks, source, made);
    lap(c, "C compiler");
    if (status != HEC_EXIT_DONE || o->dry_run) return status;
    return hec_output_commit(made, output, o->object ? 0666 : 0777) ? HEC_EXIT_DONE
                                                                    : HEC_EXIT_INPUT;
}

static int run(struct compilation *c) {
    int status;
    if (!note_files(c->options) || !choose_stages(c)) return HEC_EXIT_COMMAND_LINE;
    if (c->options->save_temps && !make_temps_folder(c)) return HEC_EXIT_INPUT;
    c->name = "model";
    if (c->from == STAGE_C) return c->to == STAGE_C ? HEC_EXIT_DONE : finish_program(c);
    if (c->from < STAGE_GRAPH && !run_front(c, &status)) return status;
    if (!make_module(c)) return HEC_EXIT_INPUT;
    if (c->to == STAGE_GRAPH) return finish_text(c, print_module);
    if (!name_files(c) || !stop_early(c)) return HEC_EXIT_COMMAND_LINE;
    if (!run_passes(c, &status)) return status;
    if (!prove_homes(c)) return HEC_EXIT_INPUT;
    if (c->options->emit_plan && !write_text(c, c->options->emit_plan, print_plan_file))
        return HEC_EXIT_INPUT;
    if (report_of(c)) return finish_text(c, report_of(c));
    if (c->to < STAGE_C) return finish_text(c, print_module);
    return c->to == STAGE_C ? finish_c(c) : finish_program(c);
}

static bool read_number(const char *text, uint32_t *number) {
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno || *end || *text < '0' || *text > '9' || value > UINT32_MAX) {
        fprintf(stderr, "hecatec: error: --error-limit needs a whole number, got '%s'\n", text);
        return false;
    }
    *number = (uint32_t)value;
    return true;
}

int hec_compile(struct hec_arena *arena, const struct hec_options *options) {
    struct compilation c = {.arena = arena, .options = options, .started = now()};
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
    hec_diag_free(&c.diag);
    hec_pipeline_free(c.pipeline);
    if (!mlirOperationIsNull(c.module)) mlirOperationDestroy(c.module);
    if (!mlirContextIsNull(c.context)) mlirContextDestroy(c.context);
    return status;
}
