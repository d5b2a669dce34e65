// Pipelines: text to steps, steps in order, a verifier after each.
//
// Our passes are called directly. Upstream's (canonicalize, cse, ...) run in a pass manager of
// their own per step, so that printing, timing and verification are the same for both kinds.
#include "passes/pipeline.h"

#include <mlir-c/Pass.h>
#include <mlir-c/Transforms.h>
#include <pthread.h>
#include <string.h>

#include "ir/accessors.h"
#include "lang/base/arena.h"
#include "lang/base/clock.h"
#include "lang/base/vec.h"
#include "passes/form.h"

struct hec_pipeline {
    struct hec_arena arena;
    MlirContext context;
    HEC_VEC(struct hec_step) steps;
};

// ---- parsing

struct reader {
    struct hec_pipeline *pipeline;
    const char *at;
    char *why; // In the arena.
};

static bool complain(struct reader *r, const char *format, const char *first, size_t length,
                     const char *second) {
    r->why = hec_arena_format(&r->pipeline->arena, format, (int)length, first, second);
    return false;
}

static size_t name_length(const char *at) {
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
}

// Bytes up to the comma or end that closes an upstream step, brackets balanced.
static size_t upstream_length(const char *at) {
    int depth = 0;
    size_t length = 0;
    for (; at[length] && (depth > 0 || at[length] != ','); length++) {
        depth += strchr("({<", at[length]) != NULL;
        depth -= strchr(")}>", at[length]) != NULL;
    }
    return length;
}

static bool is_one_of(const char *words, const char *word, size_t length) {
    for (const char *at = words; *at; at += *at == '|') {
        const size_t own = strcspn(at, "|");
        if (own == length && memcmp(at, word, length) == 0) return true;
        at += own;
    }
    return false;
}

// One `key=value`; `r->at` moves behind it.
static bool read_option(struct reader *r, struct hec_step *step) {
    const size_t key = name_length(r->at);
    const struct hec_pass_option *option = step->pass->code->option;
    while (option && option->key &&
           (strlen(option->key) != key || memcmp(option->key, r->at, key) != 0)) {
        option++;
    }
    if (key == 0 || !option || !option->key)
        return complain(r, "unknown option '%.*s' of pass '%s'", r->at, key, step->pass->flag);
    if (r->at[key] != '=') return complain(r, "option '%.*s' has no value%s", r->at, key, "");
    const char *value = r->at + key + 1;
    const size_t length = name_length(value);
    if (!is_one_of(option->values, value, length)) {
        return complain(r, "'%.*s' is no value here; there are %s", value, length, option->values);
    }
    if (step->options.count == HEC_PASS_OPTIONS_MAX)
        return complain(r, "too many options, at '%.*s' of pass '%s'", r->at, key,
                        step->pass->flag);
    step->options.key[step->options.count] = option->key;
    step->options.value[step->options.count++] = hec_arena_copy(&r->pipeline->arena, value, length);
    r->at = value + length;
    return true;
}

static bool read_options(struct reader *r, struct hec_step *step) {
    if (*r->at != '(') return true;
    do {
        r->at++;
        if (*r->at == ')' && r->at[-1] == '(') break;
        if (!read_option(r, step)) return false;
    } while (*r->at == ',');
    if (*r->at != ')')
        return complain(r, "expected , or ) in the options of '%.*s'%s", step->pass->flag,
                        strlen(step->pass->flag), "");
    r->at++;
    return true;
}

static void keep_text(MlirStringRef text, void *reader) {
    struct reader *r = reader;
    const char *old = r->why ? r->why : "";
    r->why = hec_arena_format(&r->pipeline->arena, "%s%.*s", old, (int)text.length, text.data);
}

static bool add_upstream(MlirPassManager manager, const char *text, struct reader *r) {
    return mlirLogicalResultIsSuccess(mlirOpPassManagerAddPipeline(
        mlirPassManagerGetAsOpPassManager(manager), HEC_STR(text), keep_text, r));
}

static MlirPassManager create_manager(MlirContext context) {
    return mlirPassManagerCreateOnOperation(context, HEC_STR("builtin.module"));
}

static bool read_step(struct reader *r) {
    struct hec_arena *arena = &r->pipeline->arena;
    const char *start = r->at;
    const size_t name = name_length(r->at);
    if (name == 0) return complain(r, "expected the name of a pass at '%.*s'%s", start, 20, "");
    struct hec_step step = {.pass = hec_pass_find(r->at, name)};
    if (step.pass) {
        r->at += name;
        if (!read_options(r, &step)) return false;
        step.text = hec_arena_copy(arena, start, (size_t)(r->at - start));
    } else {
        r->at += upstream_length(r->at);
        step.text = hec_arena_copy(arena, start, (size_t)(r->at - start));
        const MlirPassManager manager = create_manager(r->pipeline->context);
        const bool known = add_upstream(manager, step.text, r);
        mlirPassManagerDestroy(manager);
        if (!known) return complain(r, "unknown pass '%.*s'%s", start, name, "");
    }
    int uses = 1;
    for (int i = 0; i < r->pipeline->steps.count; i++) {
        const char *other = r->pipeline->steps.item[i].text;
        uses += name_length(other) == name && memcmp(other, start, name) == 0;
    }
    step.stage = uses == 1 ? hec_arena_copy(arena, start, name)
                           : hec_arena_format(arena, "%.*s-%d", (int)name, start, uses);
    HEC_PUSH(arena, &r->pipeline->steps, step);
    return true;
}

static void register_upstream(void) {
    mlirRegisterTransformsPasses();
}

struct hec_pipeline *hec_pipeline_parse(MlirContext context, const char *text, char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_upstream);
    struct hec_arena arena = {0};
    struct hec_pipeline *pipeline = HEC_NEW(&arena, struct hec_pipeline);
    pipeline->arena = arena;
    pipeline->context = context;
    struct reader r = {.pipeline = pipeline, .at = text};
    bool sound = true;
    while (sound && *r.at) {
        sound = read_step(&r);
        if (sound && *r.at == ',' && r.at[1]) {
            r.at++;
        } else if (sound && *r.at) {
            sound = complain(&r, "expected , and a pass at '%.*s'%s", r.at, 20, "");
        }
    }
    if (sound) return pipeline;
    *why = strdup(r.why);
    hec_pipeline_free(pipeline);
    return NULL;
}

void hec_pipeline_free(struct hec_pipeline *pipeline) {
    if (!pipeline) return;
    struct hec_arena arena = pipeline->arena; // The pipeline lies in its own arena.
    hec_arena_free(&arena);
}

int hec_pipeline_steps(const struct hec_pipeline *pipeline) {
    return pipeline->steps.count;
}

const struct hec_step *hec_pipeline_step(const struct hec_pipeline *pipeline, int index) {
    return &pipeline->steps.item[index];
}

int hec_pipeline_find(const struct hec_pipeline *pipeline, const char *stage) {
    for (int i = 0; i < pipeline->steps.count; i++) {
        if (strcmp(pipeline->steps.item[i].stage, stage) == 0) return i;
    }
    return -1;
}

// ---- running

static enum hec_pass_result run_upstream(struct hec_pipeline *pipeline, const char *text,
                                         MlirOperation module) {
    struct reader r = {.pipeline = pipeline};
    const MlirPassManager manager = create_manager(pipeline->context);
    mlirPassManagerEnableVerifier(manager, false); // Ours follows.
    const bool done = add_upstream(manager, text, &r) &&
                      mlirLogicalResultIsSuccess(mlirPassManagerRunOnOp(manager, module));
    mlirPassManagerDestroy(manager);
    return done && hec_check_form(module) ? HEC_PASS_DONE : HEC_PASS_REFUSED;
}

static bool is_idle(const struct hec_step *step, MlirOperation module) {
    return step->pass && step->pass->code->applies && !step->pass->code->applies(module);
}

static enum hec_pass_result run_rest(const struct hec_pass_options *options, MlirOperation module);

static enum hec_pass_result run_pass(struct hec_pipeline *pipeline, int number,
                                     MlirOperation module) {
    const struct hec_step *step = &pipeline->steps.item[number];
    struct hec_pass_options options = step->options;
    options.rest = run_rest;
    options.pipeline = pipeline;
    options.step = number;
    return step->pass ? step->pass->code->run(module, &options)
                      : run_upstream(pipeline, step->text, module);
}

static enum hec_pass_result run_rest(const struct hec_pass_options *options, MlirOperation module) {
    struct hec_pipeline *pipeline = options->pipeline;
    for (int i = options->step + 1; i < pipeline->steps.count; i++) {
        if (is_idle(&pipeline->steps.item[i], module)) continue;
        const enum hec_pass_result result = run_pass(pipeline, i, module);
        if (result != HEC_PASS_DONE) return result;
    }
    return HEC_PASS_DONE;
}

static enum hec_pass_result run_step(struct hec_pipeline *pipeline, int number,
                                     MlirOperation module, const struct hec_pipeline_hooks *hooks) {
    struct hec_step *step = &pipeline->steps.item[number];
    step->idle = is_idle(step, module);
    if (!step->idle) {
        const double start = hec_now();
        const enum hec_pass_result result = run_pass(pipeline, number, module);
        step->seconds = hec_now() - start;
        if (result != HEC_PASS_DONE) return result;
    }
    hec_module_put_stage(module, step->stage);
    const bool sound = step->idle || (hooks && hooks->trusts) || hec_ir_verify(module);
    if (hooks && hooks->after) hooks->after(hooks->user, step, module);
    if (sound) return HEC_PASS_DONE;
    hec_ir_error(module, "pass %s left a module that does not verify", step->stage);
    return HEC_PASS_BROKEN;
}

enum hec_pass_result hec_pipeline_run(struct hec_pipeline *pipeline, MlirOperation module,
                                      int first, int end, const struct hec_pipeline_hooks *hooks) {
    if (end < 0 || end > pipeline->steps.count) end = pipeline->steps.count;
    for (int i = 0; i < pipeline->steps.count; i++) pipeline->steps.item[i].seconds = 0;
    if (!hec_check_form(module)) return HEC_PASS_REFUSED;
    for (int i = first; i < end; i++) {
        const enum hec_pass_result result = run_step(pipeline, i, module, hooks);
        if (result != HEC_PASS_DONE) return result;
    }
    return HEC_PASS_DONE;
}

void hec_pipeline_print_times(const struct hec_pipeline *pipeline, FILE *out) {
    double sum = 0;
    for (int i = 0; i < pipeline->steps.count; i++) sum += pipeline->steps.item[i].seconds;
    fprintf(out, "%10s  %6s  pass\n", "ms", "share");
    for (int i = 0; i < pipeline->steps.count; i++) {
        const struct hec_step *step = &pipeline->steps.item[i];
        fprintf(out, "%10.3f  %5.1f%%  %s\n", 1e3 * step->seconds,
                sum > 0 ? 100 * step->seconds / sum : 0, step->text);
    }
    fprintf(out, "%10.3f  100.0%%  all, without verification\n", 1e3 * sum);
}
