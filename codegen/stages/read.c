// From the input to the IR.
#include "codegen/stages/read.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/base/output.h"
#include "codegen/base/prefix.h"
#include "codegen/base/status.h"
#include "codegen/import/hf_names.h"
#include "codegen/stages/crash.h"
#include "ir/accessors.h"
#include "ir/build/build.h"
#include "lang/check.h"
#include "passes/base/movement.h"

static bool note_imports(const struct hec_sources *sources) {
    for (int i = 0; i < sources->all.count; i++) {
        if (!hec_output_note(false, "the import", sources->all.item[i]->path)) return false;
    }
    return true;
}

static struct hec_front_options front_options(struct hec_compilation *c) {
    const struct hec_options *o = c->options;
    const char *prefix = hec_prefix(c->arena);
    return (struct hec_front_options){
        .path = o->input,
        .defines = o->defines.text.item,
        .defines_count = o->defines.text.count,
        .sets = o->sets.text.item,
        .sets_count = o->sets.text.count,
        .cluster = o->cluster,
        .library = prefix ? hec_arena_format(c->arena, "%s/share/hecate/moe", prefix) : NULL,
    };
}

static void print_check(struct hec_compilation *c, FILE *out) {
    hec_program_print(c->program, out);
}

static const char *asked_target(const struct hec_compilation *c) {
    return c->options->target ? c->options->target : "cpu";
}

bool hec_run_front(struct hec_compilation *c, int *status) {
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
        if (!hec_driver_failed(c) && read && hec_output_write(c->arena, path, text, length)) {
            *status = HEC_EXIT_DONE;
        }
        free(text);
        return false;
    }
    const bool sound = hec_front(&front, &c->diag, c->arena, &c->program) &&
                       hec_check_target(c->program, asked_target(c), &c->diag) &&
                       hec_check_names(c->program, &c->diag);
    if (hec_driver_failed(c) || !sound) return false;
    if (!note_imports(&c->program->sources)) return *status = HEC_EXIT_COMMAND_LINE, false;
    c->name = c->program->name;
    hec_driver_lap(c, "parse and check");
    const char *explain = c->options->explain;
    if (c->options->syntax_only && !c->options->emit_plan) return *status = HEC_EXIT_DONE, false;
    if (c->to == STAGE_CHECK || (explain && strcmp(explain, "shapes") == 0)) {
        return *status = hec_finish_text(c, print_check), false;
    }
    return true;
}

// ---- the IR

static bool read_module(struct hec_compilation *c) {
    const char *why = NULL, *path = c->options->input;
    const struct hec_source *source = hec_source_read(&c->reporter.sources, path, &why);
    if (!source) return hec_fail("cannot read '%s': %s", path, why);
    c->module =
        mlirOperationCreateParse(hec_driver_context(c), HEC_STR(source->text), HEC_STR(path));
    if (mlirOperationIsNull(c->module)) return false;
    if (!hec_op_is(c->module, HEC_OP_MODULE))
        return hec_ir_error(c->module, "is not a module: this is no IR of hecatec");
    const MlirStringRef name = hec_get_string(c->module, "sym_name");
    c->name = name.length ? hec_arena_copy(c->arena, name.data, name.length) : "model";
    return hec_ir_verify(c->module);
}

// Text is for the target that it names: passes before have asked that one.
static bool is_for_asked_target(const struct hec_compilation *c) {
    const MlirStringRef own =
        hec_module_has_target(c->module) ? hec_module_target(c->module) : HEC_STR("cpu");
    if (!c->options->target || mlirStringRefEqual(own, HEC_STR(c->options->target))) return true;
    return hec_fail("--target=%s: '%s' is for target %.*s", c->options->target, c->options->input,
                    (int)own.length, own.data);
}

bool hec_make_module(struct hec_compilation *c) {
    hec_crash_progress("building the IR", NULL);
    if (c->from >= STAGE_GRAPH) {
        if (!read_module(c) || hec_driver_failed(c) || !is_for_asked_target(c)) return false;
    } else {
        c->module = hec_ir_build(hec_driver_context(c), c->program);
        if (hec_driver_failed(c) || mlirOperationIsNull(c->module)) return false;
        hec_module_put_target(c->module, asked_target(c));
        hec_driver_lap(c, "build the graph");
    }
    c->several_ranks = hec_has_ranks(c->module);
    return true;
}
