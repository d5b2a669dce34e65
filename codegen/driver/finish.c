// Ends a compilation: prints a report, or writes C or a program.
#include "codegen/driver/finish.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "codegen/base/output.h"
#include "codegen/base/status.h"
#include "codegen/base/version.h"
#include "codegen/driver/cc.h"
#include "codegen/host/program.h"
#include "codegen/targets/targets.h"
#include "ir/accessors.h"

static void print_memory(struct hec_compilation *c, FILE *out) {
    hec_explain_memory(c->module, out);
}

static void print_plan(struct hec_compilation *c, FILE *out) {
    hec_explain_plan(c->module, out);
}

static void print_comm(struct hec_compilation *c, FILE *out) {
    hec_explain_comm(c->module, out);
}

void (*hec_report_of(const struct hec_compilation *c))(struct hec_compilation *c, FILE *out) {
    static const struct {
        const char *name;
        void (*print)(struct hec_compilation *c, FILE *out);
    } reports[] = {{"memory", print_memory}, {"plan", print_plan}, {"comm", print_comm}};
    for (size_t i = 0; c->options->explain && i < sizeof reports / sizeof *reports; i++) {
        if (strcmp(c->options->explain, reports[i].name) == 0) return reports[i].print;
    }
    return NULL;
}

// ---- C

// Emits the program to `path`.
static int write_c(struct hec_compilation *c, const char *path) {
    const struct hec_emit_options emit = {.version = HECATE_VERSION,
                                          .ranks = c->options->ranks,
                                          .source_line = hec_report_line,
                                          .user = &c->reporter};
    struct hec_writer text = {.arena = c->arena};
    const bool emitted = hec_emit_program(c->module, hec_back_end_of(c->module), &emit, &text);
    if (hec_driver_failed(c) || !emitted) return HEC_EXIT_INPUT;
    hec_crash_after(c, "c");
    hec_driver_lap(c, "emit C");
    if (c->options->dry_run) return HEC_EXIT_DONE;
    return hec_output_write(c->arena, path, text.text, text.length) ? HEC_EXIT_DONE
                                                                    : HEC_EXIT_INPUT;
}

int hec_finish_c(struct hec_compilation *c) {
    const bool shown = c->options->compile_to && !c->options->output;
    const char *path = shown ? "-" : hec_output_path(c, ".c");
    return path ? write_c(c, path) : HEC_EXIT_COMMAND_LINE;
}

// Where the emitted C goes on its way to the C compiler.
static const char *c_file(struct hec_compilation *c) {
    if (c->options->save_temps) return hec_temps_path(c, ".c");
    if (c->options->dry_run) return hec_arena_format(c->arena, "/tmp/%s.c", c->name);
    return hec_output_temporary(c->arena, NULL, ".c", false);
}

// Compiles `source` to `made`.
static int compile_source(struct hec_compilation *c, const char *source, const char *made) {
    struct hec_build build = {
        .arena = c->arena, .options = c->options, .name = c->name, .source = source};
    const struct hec_back_end *back_end;
    if (c->from == STAGE_C) {
        const char *device = hec_cc_device(c->arena, source);
        build.ranks = hec_cc_ranks(c->arena, source);
        back_end = hec_back_end_named(device ? device : "cpu");
        build.target = c->options->target ? c->options->target : device;
    } else {
        const MlirStringRef target = hec_module_target(c->module);
        back_end = hec_back_end_of(c->module);
        build.target = hec_arena_copy(c->arena, target.data, target.length);
        if (c->several_ranks) build.ranks = c->options->ranks ? c->options->ranks : back_end->ranks;
    }
    if (back_end && back_end->compile) {
        const int status = back_end->compile(&build);
        hec_driver_lap(c, "kernels");
        if (status != HEC_EXIT_DONE) return status;
    }
    const int status = hec_cc_run(&build, made);
    hec_driver_lap(c, "C compiler");
    return status;
}

int hec_finish_program(struct hec_compilation *c) {
    const struct hec_options *o = c->options;
    const char *source = o->input;
    if (o->output && strcmp(o->output, "-") == 0) {
        hec_fail("-o -: only text can go to standard output (-S)");
        return HEC_EXIT_COMMAND_LINE;
    }
    if (c->from == STAGE_C && access(source, R_OK) != 0) {
        hec_fail("cannot read '%s': %s", source, strerror(errno));
        return HEC_EXIT_INPUT;
    }
    const char *output = hec_output_path(c, o->object ? ".o" : "");
    if (!output) return HEC_EXIT_COMMAND_LINE;
    if (c->from < STAGE_C) {
        source = c_file(c);
        const int status = source ? write_c(c, source) : HEC_EXIT_INPUT;
        if (status != HEC_EXIT_DONE) return status;
    }
    const char *made = o->dry_run ? output : hec_output_begin(c->arena, output);
    if (!made) return HEC_EXIT_INPUT;
    const int status = compile_source(c, source, made);
    if (status != HEC_EXIT_DONE || o->dry_run) return status;
    return hec_output_commit(made, output, o->object ? 0666 : 0777) ? HEC_EXIT_DONE
                                                                    : HEC_EXIT_INPUT;
}
