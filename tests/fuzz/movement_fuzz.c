// Plan files (--plan=FILE) of a program whose experts move: the passes that begin with reading one.
//
// Promise: a refusal has a message.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/build/build.h"
#include "lang/check.h"
#include "passes/pipeline.h"
#include "passes/plan_file.h"
#include "passes/plan_origin.h"
#include "tests/fuzz/fuzz.h"

static const char model[] = "dim V = 8, T = 4, D = 4, E = 4, F = 4, H = 2, A = 2\n"
                            "block ffn(x[T, D]) -> [T, D] {\n"
                            "  param w1[D, F], w2[F, D]\n"
                            "  return relu(x @ w1) @ w2\n"
                            "}\n"
                            "block attention(x[T, D]) -> [T, D] {\n"
                            "  param wq[D, H, A], wo[H, A, D]\n"
                            "  q = x @ wq\n"
                            "  return sdpa(q, q, q, causal = true) @ wo\n"
                            "}\n"
                            "moe sparse(x[T, D]) -> [T, D] { experts = E * ffn }\n"
                            "model m(ids[T]) -> [T, V] {\n"
                            "  param embed[V, D]\n"
                            "  x = embed[ids]\n"
                            "  repeat i < 2 { x = x + sparse(rmsnorm(x + attention(x))) }\n"
                            "  return x @ embed\n"
                            "}\n"
                            "train { tokens = 16 }\n"
                            "cluster { devices = 2 }\n"
                            "parallel { experts = fssdp, microbatch = 1 }\n";

static struct program {
    MlirContext context;
    MlirOperation module; // As shard finds it.
    struct hec_pipeline *pipeline;
    int shard; // The step.
} program;

static int errors;

static void count_errors(void *user, const char *file, unsigned line, unsigned column,
                         MlirDiagnosticSeverity severity, const char *text) {
    (void)user, (void)file, (void)line, (void)column, (void)text;
    errors += severity == MlirDiagnosticError;
}

static MlirOperation build(MlirContext context) {
    struct hec_arena arena = {0};
    struct hec_diag diag = {.out = stderr};
    const struct hec_front_options options = {.path = fuzz_file(1, model, sizeof model - 1)};
    struct hec_program *checked = NULL;
    if (!hec_front(&options, &diag, &arena, &checked)) fuzz_broken("the model is sound");
    const MlirOperation module = hec_ir_build(context, checked);
    hec_diag_free(&diag);
    hec_arena_free(&arena);
    return module;
}

static enum hec_pass_result run(MlirOperation module, int first, int end) {
    const struct hec_pipeline_hooks hooks = {0};
    return hec_pipeline_run(program.pipeline, module, first, end, &hooks);
}

// Contexts keep every type and attribute they ever saw: a new one now and then.
static void refresh(void) {
    enum { USES = 500 };
    static int used = USES;
    if (used++ < USES) return;
    used = 0;
    if (program.pipeline) {
        hec_pipeline_free(program.pipeline);
        mlirOperationDestroy(program.module);
        mlirContextDestroy(program.context);
    }
    char *why = NULL;
    program.context = hec_ir_context(count_errors, NULL);
    program.pipeline = hec_pipeline_parse(program.context, hec_pipeline_default, &why);
    program.shard = hec_pipeline_find(program.pipeline, "shard");
    program.module = build(program.context);
    if (run(program.module, 0, program.shard) != HEC_PASS_DONE) fuzz_broken("the model compiles");
}

// Before the model is compiled its settings are read.
static void read_settings(const char *path) {
    struct hec_arena arena = {0};
    const struct hec_plan_settings settings = hec_plan_settings(path, &arena);
    for (int i = 0; i < settings.count; i++) {
        if (!strchr(settings.set[i], '=')) fuzz_broken("a setting has a value");
    }
    hec_arena_free(&arena);
}

static void ignore(void *context, const char *text) {
    (void)context, (void)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    refresh();
    const MlirOperation module = mlirOperationClone(program.module);
    const char *path = fuzz_file(0, data, size);
    read_settings(path);
    hec_set_attr(module, hec_attr_string(program.context, "hecate.plan", path));
    hec_plan_compare_origin(module, path, ignore, NULL);
    errors = 0;
    if (run(module, program.shard, -1) != HEC_PASS_DONE && !errors)
        fuzz_broken("a plan is refused with a message");
    mlirOperationDestroy(module);
    return 0;
}
