// The front end from scan to graph: text of a model, then flags behind NULs ("-DL=4", else --set).
//
// Promises: a refusal has a message; printed text parses to the same tree;
// a model that the language and the target accept is built or refused with a message, and never breaks the
// IR's own rules.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/build.h"
#include "lang/check.h"
#include "passes/pipeline.h"
#include "tests/fuzz/fuzz.h"

static FILE *nowhere;
static int ir_errors;

static void count_ir(void *user, const char *file, unsigned line, unsigned column,
                     MlirDiagnosticSeverity severity, const char *text) {
    (void)user, (void)file, (void)line, (void)column, (void)text;
    ir_errors += severity == MlirDiagnosticError;
}

// Contexts keep every type they ever saw: a new one now and then.
static MlirContext fresh_context(void) {
    enum { USES = 500 };
    static MlirContext context;
    static int used = USES;
    if (used++ < USES) return context;
    used = 0;
    if (!mlirContextIsNull(context)) mlirContextDestroy(context);
    return context = hec_ir_context(count_ir, NULL);
}

static void build(const struct hec_program *program) {
    const MlirContext context = fresh_context();
    ir_errors = 0;
    const MlirOperation module = hec_ir_build(context, program);
    if (mlirOperationIsNull(module)) {
        if (!ir_errors) fuzz_broken("a graph that is not built is refused with a message");
        return;
    }
    char *why = NULL;
    struct hec_pipeline *pipeline = hec_pipeline_parse(context, "check-shapes", &why);
    const struct hec_pipeline_hooks hooks = {0};
    switch (hec_pipeline_run(pipeline, module, 0, -1, &hooks)) {
    case HEC_PASS_DONE:
        break;
    case HEC_PASS_REFUSED:
        if (!ir_errors) fuzz_broken("check-shapes refuses with a message");
        break;
    case HEC_PASS_BROKEN:
        fuzz_broken("the graph keeps the IR's rules");
    }
    hec_pipeline_free(pipeline);
    mlirOperationDestroy(module);
}

// Prints the parse of `path`; NULL when there were errors. The caller frees it.
static char *print_parse(const char *path) {
    struct hec_arena arena = {0};
    struct hec_diag diag = {.out = nowhere};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    const struct hec_front_options options = {.path = path};
    const bool good = hec_front_print_parse(&options, &diag, &arena, out);
    fclose(out);
    if (!good && diag.errors == 0) fuzz_broken("a parse that fails has a message");
    hec_diag_flush(&diag);
    hec_diag_free(&diag);
    hec_arena_free(&arena);
    if (good) return text;
    free(text);
    return NULL;
}

static void print_twice(const char *path) {
    char *once = print_parse(path);
    if (!once) return;
    // Printing indents and brackets: text just below a limit may get above it.
    char *twice = print_parse(fuzz_file(1, once, strlen(once)));
    if (twice && strcmp(once, twice) != 0) fuzz_broken("printed text parses to the same tree");
    if (!twice && strlen(once) < 1000) fuzz_broken("printed text parses");
    free(once);
    free(twice);
}

static void compile(const char *path, char *const *flag, int flags) {
    const char *defines[FUZZ_WORDS_MAX], *sets[FUZZ_WORDS_MAX];
    struct hec_front_options options = {.path = path, .defines = defines, .sets = sets};
    for (int i = 0; i < flags; i++) {
        if (strncmp(flag[i], "-D", 2) == 0)
            defines[options.defines_count++] = flag[i] + 2;
        else
            sets[options.sets_count++] = flag[i];
    }
    struct hec_arena arena = {0};
    struct hec_diag diag = {.out = nowhere};
    struct hec_program *program = NULL;
    const bool sound = hec_front(&options, &diag, &arena, &program);
    if (sound != (diag.errors == 0)) fuzz_broken("a program that is refused has a message");
    if (sound) {
        hec_program_print(program, nowhere);
        const bool possible = hec_check_target(program, "cpu", &diag);
        if (possible != (diag.errors == 0)) fuzz_broken("what a target refuses has a message");
        if (possible) build(program);
    }
    hec_diag_flush(&diag);
    hec_diag_free(&diag);
    hec_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    char *word[FUZZ_WORDS_MAX];
    const uint8_t *nul = size ? memchr(data, '\0', size) : NULL;
    const size_t length = nul ? (size_t)(nul - data) : size;
    char *flags = fuzz_text(data + length, size - length);
    const int count = nul ? fuzz_words(flags + 1, size - length - 1, word) : 0;
    const char *path = fuzz_file(0, data, length);
    print_twice(path);
    compile(path, word, count);
    free(flags);
    return 0;
}
