// hec-null FILE.mlir: writes the program of target null for IR after place-buffers to standard output.
// Exit code: 0, or 1 when anything was reported.
#include <stdio.h>

#include "codegen/host/program.h"
#include "lang/base/source.h"
#include "tests/targets/null.h"

static void report(void *user, const char *file, unsigned line, unsigned column,
                   MlirDiagnosticSeverity severity, const char *text) {
    (void)user;
    const char *word = severity == MlirDiagnosticError ? "error" : "note";
    fprintf(stderr, "%s:%u:%u: %s: %s\n", file, line, column, word, text);
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
    const struct hec_emit_options options = {.version = "null"};
    const bool emitted = !mlirOperationIsNull(module) && hec_ir_verify(module) &&
                         hec_emit_program(module, &null_printer, &options, &text);
    if (emitted) fwrite(text.text, 1, text.length, stdout);
    if (!mlirOperationIsNull(module)) mlirOperationDestroy(module);
    mlirContextDestroy(context);
    hec_arena_free(&arena);
    return emitted ? 0 : 1;
}
