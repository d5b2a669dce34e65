// One compilation under way: the state that its stages share.
#include "codegen/stages/compilation.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/base/output.h"
#include "codegen/base/status.h"
#include "lang/base/clock.h"

void hec_compilation_end(struct hec_compilation *c) {
    hec_diag_free(&c->diag);
    hec_pipeline_free(c->pipeline);
    if (!mlirOperationIsNull(c->module)) mlirOperationDestroy(c->module);
    if (!mlirContextIsNull(c->context)) mlirContextDestroy(c->context);
}

void hec_driver_lap(struct hec_compilation *c, const char *what) {
    const double end = hec_now();
    if (c->options->time_passes) {
        fprintf(stderr, "%10.3f  %s\n", 1e3 * (end - c->started), what);
    }
    c->started = end;
}

bool hec_driver_failed(struct hec_compilation *c) {
    hec_diag_flush(&c->diag);
    return c->diag.errors > 0;
}

MlirContext hec_driver_context(struct hec_compilation *c) {
    if (mlirContextIsNull(c->context)) {
        c->context = hec_ir_context(hec_report_ir, &c->reporter);
    }
    return c->context;
}

bool hec_make_pipeline(struct hec_compilation *c) {
    if (c->pipeline) return true;
    const char *text = c->options->passes ? c->options->passes : hec_pipeline_default;
    char *why = NULL;
    c->pipeline = hec_pipeline_parse(hec_driver_context(c), text, &why);
    if (!c->pipeline) hec_fail("--passes: %s", why);
    free(why);
    return c->pipeline;
}

void hec_crash_after(const struct hec_compilation *c, const char *stage) {
    if (c->options->crash_after && strcmp(c->options->crash_after, stage) == 0) abort();
}

static void write_ir(MlirStringRef text, void *user) {
    fwrite(text.data, 1, text.length, user);
}

void hec_print_module(struct hec_compilation *c, FILE *out) {
    hec_ir_print(c->module, write_ir, out);
}

bool hec_write_text(struct hec_compilation *c, const char *path,
                    void (*print)(struct hec_compilation *c, FILE *out)) {
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

int hec_finish_text(struct hec_compilation *c,
                    void (*print)(struct hec_compilation *c, FILE *out)) {
    const char *path = c->options->output ? c->options->output : "-";
    return hec_write_text(c, path, print) ? HEC_EXIT_DONE : HEC_EXIT_INPUT;
}

const char *hec_temps_path(struct hec_compilation *c, const char *suffix) {
    const char *folder = c->options->save_temps_folder ? c->options->save_temps_folder : ".";
    const char *path = hec_arena_format(c->arena, "%s/%s%s", folder, c->name, suffix);
    return hec_output_note(true, "--save-temps", path) ? path : NULL;
}

const char *hec_output_path(struct hec_compilation *c, const char *suffix) {
    if (c->options->output) return c->options->output;
    const char *path = hec_arena_format(c->arena, "%s%s", c->name, suffix);
    return hec_output_note(true, "the output", path) ? path : NULL;
}
