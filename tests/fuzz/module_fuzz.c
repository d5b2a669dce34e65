// --compile-from: text of the IR, read as the driver reads it, then the passes that are left and the
// emitter. The first byte chooses where to start. MLIR's own parser is not ours; the IR that it accepts is.
//
// Promises: a refusal has a message; nothing but text that says so is emitted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/host/program.h"
#include "codegen/targets/targets.h"
#include "passes/pipeline.h"
#include "tests/fuzz/fuzz.h"

static int errors;

static void count_errors(void *user, const char *file, unsigned line, unsigned column,
                         MlirDiagnosticSeverity severity, const char *text) {
    (void)user, (void)file, (void)line, (void)column, (void)text;
    errors += severity == MlirDiagnosticError;
}

// Contexts keep every type they ever saw: a new one now and then.
static MlirContext fresh_context(void) {
    enum { USES = 200 };
    static MlirContext context;
    static int used = USES;
    if (used++ < USES) return context;
    used = 0;
    if (!mlirContextIsNull(context)) mlirContextDestroy(context);
    return context = hec_ir_context(count_errors, NULL);
}

static void emit(MlirOperation module) {
    struct hec_arena arena = {0};
    struct hec_writer out = {.arena = &arena};
    const struct hec_emit_options options = {.version = "fuzz"};
    if (!hec_emit_program(module, hec_back_end_of(module), &options, &out) && !errors) {
        fuzz_broken("the emitter refuses with a message");
    }
    hec_arena_free(&arena);
}

static void compile(MlirContext context, MlirOperation module, unsigned from) {
    char *why = NULL;
    struct hec_pipeline *pipeline = hec_pipeline_parse(context, hec_pipeline_default, &why);
    const struct hec_pipeline_hooks hooks = {0};
    const int first = (int)(from % (unsigned)(hec_pipeline_steps(pipeline) + 1));
    const enum hec_pass_result result = hec_pipeline_run(pipeline, module, first, -1, &hooks);
    if (result != HEC_PASS_DONE && !errors) fuzz_broken("a pass refuses with a message");
    if (result == HEC_PASS_DONE) emit(module);
    hec_pipeline_free(pipeline);
}

// MLIR's parser takes memory for all results up to the number in `%x:1000000000` or `%x#1000000000`.
static bool names_many_results(const uint8_t *data, size_t size) {
    size_t digits = 0;
    for (size_t i = 0; i < size; i++) {
        const bool digit = data[i] >= '0' && data[i] <= '9';
        if (data[i] == '#' || data[i] == ':')
            digits = 1;
        else
            digits = digit && digits ? digits + 1 : 0;
        if (digits > 6) return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || memchr(data + 1, '\0', size - 1))
        return 0; // Sources with a NUL are refused unread.
    if (names_many_results(data + 1, size - 1)) return 0;
    const MlirContext context = fresh_context();
    char *text = fuzz_text(data + 1, size - 1);
    errors = 0;
    const MlirOperation module =
        mlirOperationCreateParse(context, HEC_STR(text), HEC_STR("fuzz.mlir"));
    free(text);
    if (mlirOperationIsNull(module)) return 0;
    if (hec_op_is(module, HEC_OP_MODULE) && hec_ir_verify(module))
        compile(context, module, data[0]);
    mlirOperationDestroy(module);
    return 0;
}
