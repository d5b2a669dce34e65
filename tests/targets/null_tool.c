// hec-null FILE.mlir: compiles IR of stage graph for target null, and writes the program to standard output.
// Exit code: 0, or 1 when anything was reported.
#include <stdio.h>
#include <stdlib.h>

#include "codegen/host/program.h"
#include "ir/accessors.h"
#include "lang/base/source.h"
#include "passes/pipeline.h"
#include "tests/targets/null.h"

static void report(void *user, const char *file, unsigned line, unsigned column,
                   MlirDiagnosticSeverity severity, const char *text) {
    (void)user;
    const char *word = severity == MlirDiagnosticError ? "error" : "note";
    fprintf(stderr, "%s:%u:%u: %s: %s\n", file, line, column, word, text);
}

static bool run_passes(MlirContext context, MlirOperation module) {
    char *why = NULL;
    struct hec_pipeline *pipeline = hec_pipeline_parse(context, hec_pipeline_default, &why);
    if (!pipeline) {
        fprintf(stderr, "hec-null: error: %s\n", why);
        free(why);
        return false;
    }
    const struct hec_pipeline_hooks none = {0};
    const bool done = hec_pipeline_run(pipeline, module, 0, -1, &none) == HEC_PASS_DONE;
    hec_pipeline_free(pipeline);
    return done;
}

static bool compile(MlirContext context, MlirOperation module, struct hec_writer *text) {
    if (!hec_op_is(module, HEC_OP_MODULE) || !hec_ir_verify(module)) return false;
    hec_module_put_target(module, "null");
    const struct hec_emit_options options = {.version = "null"};
    return run_passes(context, module) && hec_emit_program(module, &null_printer, &options, text);
}

int main(int argc, char **argv) {
    struct hec_arena arena = {0};
    struct hec_sources sources = {.arena = &arena};
    const char *why = NULL;
    const struct hec_source *source = argc == 2 ? hec_source_read(&sources, argv[1], &why) : NULL;
    if (!source) {
        fprintf(stderr, "hec-null: error: %s\n", why ? why : "wants one file of IR");
        return 1;
    }
    const MlirContext context = hec_ir_context(report, NULL);
    const MlirOperation module =
        mlirOperationCreateParse(context, HEC_STR(source->text), HEC_STR(argv[1]));
    struct hec_writer text = {.arena = &arena};
    const bool emitted = !mlirOperationIsNull(module) && compile(context, module, &text);
    if (emitted) fwrite(text.text, 1, text.length, stdout);
    if (!mlirOperationIsNull(module)) mlirOperationDestroy(module);
    mlirContextDestroy(context);
    hec_arena_free(&arena);
    return emitted ? 0 : 1;
}
