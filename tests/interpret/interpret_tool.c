// hecate-interpret: computes a module of the IR with the reference interpreter.
//
//   hecate-interpret [--seed=N] FILE          prints its numbers: loss, loads, gradients
//   hecate-interpret [--seed=N] --all FILE    prints all of them and of what goes in: a name, then numbers
//   hecate-interpret [--seed=N] --passes FILE runs the passes behind the module's stage, and after each of
//                                             them compares the numbers with those before
//   hecate-interpret [--seed=N] --serve       modules from standard input, each with what it is compared with;
//                                             see serve below
//
// Exit 0 done, 1 refused or different, 2 usage, 70 broken.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/host/program.h"
#include "codegen/targets/targets.h"
#include "passes/base/movement.h"
#include "passes/homes/prove.h"
#include "passes/pipeline.h"
#include "tests/interpret/interpret.h"

// For doubles that are sums of thousands of terms; passes may change the order of some sums.
static const double close_enough = 1e-9;
static const double step = 1e-5; // For differences, which are exact to about its square.
static const double near_enough = 1e-4;

static char first_error[512], last_name[256];

static void report(void *user, const char *file, unsigned line, unsigned column,
                   MlirDiagnosticSeverity severity, const char *text) {
    const bool *quiet = user;
    if (severity == MlirDiagnosticError && !*first_error)
        snprintf(first_error, sizeof first_error, "%u: %s", line, text);
    if (!*quiet) fprintf(stderr, "%s:%u:%u: %s\n", file, line, column, text);
}

static struct interpret_options options_of(MlirOperation module, uint64_t seed, bool shared) {
    const double world = hec_has_ranks(module) ? (double)hec_get_int(module, "hecate.world") : 1;
    return (struct interpret_options){.seed = seed, .shares = shared ? world : 1};
}

// ---- comparing

struct verdict {
    const char *name; // The first number that differs; NULL: none does.
    double a, b;
    double worst; // The largest relative difference of what does not.
    int compared;
};

static bool is_sound(const struct interpret_item *item) {
    for (int64_t i = 0; i < item->count; i++) {
        if (!isfinite(item->at[i])) return false;
    }
    return true;
}

// Names that both have. Differences are relative to the largest number of the name, or to 1e-3.
static struct verdict compare(const struct interpret_outcome *a,
                              const struct interpret_outcome *b) {
    struct verdict v = {0};
    for (int k = 0; k < a->count; k++) {
        const struct interpret_item *x = &a->item[k], *y = interpret_find(b, x->name);
        if (!y || !is_sound(x)) continue; // A number without a meaning before has none after.
        double size = 1e-3;
        for (int64_t i = 0; i < x->count; i++) size = fmax(size, fabs(x->at[i]));
        v.compared++;
        for (int64_t i = 0; i < x->count && x->count == y->count; i++) {
            const double d = fabs(x->at[i] - y->at[i]) / size;
            if (d <= close_enough) {
                v.worst = fmax(v.worst, d);
            } else {
                v.name = x->name, v.a = x->at[i], v.b = y->at[i];
                return v;
            }
        }
        if (x->count != y->count) {
            v.name = x->name;
            return v;
        }
    }
    return v;
}

// A few gradients against differences of the loss, where those of two steps agree.
static struct verdict check_differences(MlirOperation module, struct interpret_options options,
                                        const struct interpret_outcome *with) {
    struct verdict v = {0};
    static struct interpret_outcome moved[4];
    const int every = with->count / 12 + 1;
    for (int k = (int)(options.seed % (uint64_t)every); k < with->count && !v.name; k += every) {
        const struct interpret_item *g = &with->item[k];
        if (strncmp(g->name, "grad ", 5) != 0) continue;
        struct hec_arena arena = {0};
        options.nudged = g->name;
        options.element = (int64_t)(options.seed * 7 + 3) % g->count;
        double loss[4];
        bool sound = true;
        for (int i = 0; i < 4; i++) {
            options.by = (i % 2 ? -1 : 1) * (i < 2 ? step : 2 * step);
            interpret(module, &options, &arena, &moved[i]);
            const struct interpret_item *l = interpret_find(&moved[i], "loss");
            sound &= l != NULL;
            if (l) loss[i] = l->at[0];
        }
        hec_arena_free(&arena);
        if (!sound) continue;
        const double one = (loss[0] - loss[1]) / (2 * step), two = (loss[2] - loss[3]) / (4 * step);
        const double own = g->at[options.element], size = fmax(1e-1, fabs(one));
        if (!(fabs(one - two) <= 0.1 * near_enough * size)) continue;
        v.compared++;
        if (fabs(one - own) <= near_enough * size) {
            v.worst = fmax(v.worst, fabs(one - own) / size);
        } else {
            v.name = g->name, v.a = one, v.b = own;
        }
    }
    return v;
}

// ---- one module

static MlirOperation parse(MlirContext context, const char *text, const char *name) {
    const MlirOperation root = mlirOperationCreateParse(context, HEC_STR(text), HEC_STR(name));
    if (mlirOperationIsNull(root)) return root;
    if (hec_op_is(root, HEC_OP_MODULE) && hec_ir_verify(root)) return root;
    mlirOperationDestroy(root);
    return (MlirOperation){0};
}

static int print_numbers(MlirOperation module, uint64_t seed, bool shared) {
    struct hec_arena arena = {0};
    struct interpret_outcome *o = HEC_NEW(&arena, struct interpret_outcome);
    const struct interpret_options options = options_of(module, seed, shared);
    interpret(module, &options, &arena, o);
    for (int k = 0; k < o->count; k++) {
        double squares = 0;
        for (int64_t i = 0; i < o->item[k].count; i++)
            squares += o->item[k].at[i] * o->item[k].at[i];
        if (o->item[k].count == 1) {
            printf("%s %.15g\n", o->item[k].name, o->item[k].at[0]);
        } else {
            printf("%s norm %.15g\n", o->item[k].name, sqrt(squares));
        }
    }
    if (o->fault) printf("has no meaning: %s\n", o->fault);
    const int code = o->fault ? 1 : 0;
    hec_arena_free(&arena);
    return code;
}

static int print_all(MlirOperation module, uint64_t seed, bool shared) {
    struct hec_arena arena = {0};
    struct interpret_outcome *o = HEC_NEW(&arena, struct interpret_outcome);
    struct interpret_options options = options_of(module, seed, shared);
    options.inputs = true;
    interpret(module, &options, &arena, o);
    for (int k = 0; k < o->count; k++) {
        printf("%s\t", o->item[k].name);
        for (int64_t i = 0; i < o->item[k].count; i++) printf(" %.17g", o->item[k].at[i]);
        putchar('\n');
    }
    if (o->fault) fprintf(stderr, "hecate-interpret: has no meaning: %s\n", o->fault);
    const int code = o->fault ? 1 : 0;
    hec_arena_free(&arena);
    return code;
}

static struct hec_pipeline *pipeline_of(MlirContext context) {
    char *why = NULL;
    struct hec_pipeline *pipeline = hec_pipeline_parse(context, hec_pipeline_default, &why);
    if (!pipeline) fprintf(stderr, "hecate-interpret: %s\n", why);
    free(why);
    return pipeline;
}

// The step behind the module's stage.
static int first_step(const struct hec_pipeline *pipeline, MlirOperation module) {
    const MlirStringRef stage = hec_get_string(module, "hecate.stage");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)stage.length, stage.data);
    return hec_pipeline_find(pipeline, name) + 1;
}

static bool says(const char *stage, struct verdict v) {
    if (!v.name) {
        printf("%-18s %3d equal, worst %.1e\n", stage, v.compared, v.worst);
        return true;
    }
    printf("%-18s DIFFERENT: %s: %.17g and %.17g\n", stage, v.name, v.a, v.b);
    return false;
}

// Beside a kink differences are wrong: a gradient is if it fails with each of three inputs.
static struct verdict check_gradients(MlirOperation module, struct interpret_options options) {
    static struct interpret_outcome with;
    struct verdict v = {.name = "none"};
    for (int tries = 0; tries < 3 && v.name; tries++, options.seed++) {
        struct hec_arena arena = {0};
        interpret(module, &options, &arena, &with);
        v = check_differences(module, options, &with);
        if (v.name) snprintf(last_name, sizeof last_name, "%s", v.name);
        hec_arena_free(&arena);
    }
    if (v.name) v.name = last_name;
    return v;
}

// Rounding has no derivative.
static bool has_rounds(MlirOperation module) {
    const struct hec_ops ops = hec_ops_below(module);
    bool found = false;
    for (int k = 0; k < ops.count; k++) found |= hec_get_bool(ops.op[k], "rounds");
    free(ops.op);
    return found;
}

// Whether all passes from `first` on keep the numbers.
static int check_passes(struct hec_pipeline *pipeline, MlirOperation module, uint64_t seed,
                        int first) {
    static struct interpret_outcome before, after;
    const int shares = hec_pipeline_find(pipeline, "distribute-experts");
    const int differentiate = hec_pipeline_find(pipeline, "differentiate");
    struct interpret_options options = options_of(module, seed, first > shares);
    struct hec_arena arena = {0}, next = {0};
    interpret(module, &options, &arena, &before);
    bool sound = !before.fault;
    if (before.fault) printf("has no meaning: %s\n", before.fault);
    for (int i = first; sound && i < hec_pipeline_steps(pipeline); i++) {
        const struct hec_step *pass = hec_pipeline_step(pipeline, i);
        const struct hec_pipeline_hooks hooks = {0};
        if (hec_pipeline_run(pipeline, module, i, i + 1, &hooks) != HEC_PASS_DONE) {
            printf("%-18s refused\n", pass->stage);
            sound = false;
            break;
        }
        if (pass->idle) continue;
        options = options_of(module, seed, i >= shares);
        interpret(module, &options, &next, &after);
        if (after.fault) printf("%-18s has no meaning: %s\n", pass->stage, after.fault);
        sound = !after.fault;
        // Values that are rounded to bf16 are others.
        if (strcmp(pass->stage, "use-bf16") != 0)
            sound = sound && says(pass->stage, compare(&before, &after));
        if (i == differentiate && sound && !has_rounds(module))
            sound = says("  by differences", check_gradients(module, options));
        hec_arena_free(&arena);
        arena = next, next = (struct hec_arena){0};
        before = after;
    }
    hec_arena_free(&arena);
    hec_arena_free(&next);
    return sound ? 0 : 1;
}

// ---- many modules

static enum hec_pass_result run(struct hec_pipeline *pipeline, MlirOperation module, int first,
                                int end) {
    const struct hec_pipeline_hooks hooks = {0};
    return hec_pipeline_run(pipeline, module, first, end, &hooks); // Checks the form, too.
}

static bool emits(MlirOperation module, struct hec_arena *arena) {
    struct hec_writer text = {.arena = arena};
    const struct hec_emit_options options = {.version = "interpret"};
    return hec_emit_program(module, hec_back_end_of(module), &options, &text);
}

static const char *verdict_text(struct hec_arena *arena, struct verdict v) {
    if (v.name) return hec_arena_format(arena, "DIFFERENT %s: %.17g and %.17g", v.name, v.a, v.b);
    return v.compared > 0 ? "equal" : "meaningless: all numbers are undefined";
}

// The outcome for a module whose passes from `first` on are still to run: one line.
//   refused WHY       with a message
//   unproven WHY      a proof or a pass failed: the driver says that no program has this IR
//   meaningless WHY   it compiles, but does what is undefined
//   equal, DIFFERENT  it compiles; the numbers before the passes against those behind them
//   SILENT            refused without a message
static const char *try_module(struct hec_pipeline *pipeline, MlirOperation module, uint64_t seed,
                              int first, struct hec_arena *arena) {
    static struct interpret_outcome before, with_gradients, after;
    const int shares = hec_pipeline_find(pipeline, "distribute-experts");
    const int differentiate = hec_pipeline_find(pipeline, "differentiate") + 1;
    const int end = hec_pipeline_steps(pipeline);
    const int rounded = hec_pipeline_find(pipeline, "use-bf16") + 1;
    const int middle = first < differentiate ? differentiate : first;
    struct interpret_options options = options_of(module, seed, first > shares);
    interpret(module, &options, arena, &before);
    enum hec_pass_result result = HEC_PASS_DONE;
    if (first < rounded) {
        result = run(pipeline, module, first, rounded);
        if (result == HEC_PASS_DONE && has_rounds(module)) // Other values.
            interpret(module, &options, arena, &before);
        first = rounded;
    }
    if (result == HEC_PASS_DONE) result = run(pipeline, module, first, middle);
    if (result == HEC_PASS_DONE) {
        interpret(module, &options, arena, &with_gradients);
        result = run(pipeline, module, middle, end);
    }
    if (result != HEC_PASS_DONE && !*first_error) return "SILENT";
    if (result != HEC_PASS_DONE)
        return hec_arena_format(arena, "%s %s", result == HEC_PASS_BROKEN ? "unproven" : "refused",
                                first_error);
    options = options_of(module, seed, true);
    if (first == end && !hec_homes_prove(module)) // As the driver does.
        return *first_error ? hec_arena_format(arena, "unproven %s", first_error) : "SILENT";
    if (before.fault) return hec_arena_format(arena, "meaningless: %s", before.fault);
    interpret(module, &options, arena, &after);
    if (after.too_large) return "meaningless: too large";
    if (after.fault) return hec_arena_format(arena, "DIFFERENT: then %s", after.fault);
    if (!emits(module, arena))
        return *first_error ? hec_arena_format(arena, "refused %s", first_error) : "SILENT";
    const struct verdict forward = compare(&before, &after);
    if (forward.name || with_gradients.fault) return verdict_text(arena, forward);
    return verdict_text(arena, compare(&with_gradients, &after));
}

static const char *try_text(MlirContext context, struct hec_pipeline *pipeline, const char *stage,
                            const char *text, uint64_t seed, struct hec_arena *arena) {
    *first_error = 0;
    const MlirOperation module = parse(context, text, "mutant");
    if (mlirOperationIsNull(module))
        return *first_error ? hec_arena_format(arena, "refused %s", first_error) : "SILENT";
    const int first = strcmp(stage, "graph") == 0 ? 0 : hec_pipeline_find(pipeline, stage) + 1;
    const char *said = try_module(pipeline, module, seed, first, arena);
    mlirOperationDestroy(module);
    return said;
}

// Each request: the stage that the text is of, its bytes, a newline, the text. Each answer: a line.
static int serve(uint64_t seed) {
    enum {
        USES = 400,
        STAGE = 64
    }; // Contexts keep every type they ever saw: a new one now and then.
    MlirContext context = {0};
    struct hec_pipeline *pipeline = NULL;
    char stage[STAGE];
    size_t length;
    bool quiet = true;
    for (int used = 0; scanf("%63s %zu", stage, &length) == 2 && getchar() == '\n'; used++) {
        if (used % USES == 0) {
            hec_pipeline_free(pipeline);
            if (!mlirContextIsNull(context)) mlirContextDestroy(context);
            context = hec_ir_context(report, &quiet);
            pipeline = pipeline_of(context);
        }
        struct hec_arena arena = {0};
        char *text = hec_arena_alloc(&arena, length + 1, 1);
        if (fread(text, 1, length, stdin) != length) return 2;
        for (const char *c = try_text(context, pipeline, stage, text, seed, &arena); *c; c++)
            putchar(*c == '\n' ? ' ' : *c);
        putchar('\n');
        fflush(stdout);
        hec_arena_free(&arena);
    }
    hec_pipeline_free(pipeline);
    if (!mlirContextIsNull(context)) mlirContextDestroy(context);
    return 0;
}

// ---- main

static char *read_all(const char *path) {
    FILE *file = fopen(path, "rb");
    char *text = NULL, part[65536];
    size_t length = 0, got;
    if (!file) {
        perror(path);
        return NULL;
    }
    FILE *memory = open_memstream(&text, &length);
    while ((got = fread(part, 1, sizeof part, file)) > 0) fwrite(part, 1, got, memory);
    fclose(memory);
    fclose(file);
    return text;
}

enum mode { NUMBERS, ALL, PASSES, SERVE };

static int run_file(const char *path, uint64_t seed, enum mode mode) {
    bool quiet = false;
    char *text = read_all(path);
    if (!text) return 2;
    const MlirContext context = hec_ir_context(report, &quiet);
    struct hec_pipeline *pipeline = pipeline_of(context);
    const MlirOperation module = parse(context, text, path);
    int code = 1;
    if (!mlirOperationIsNull(module)) {
        const int first = first_step(pipeline, module);
        const bool shared = first > hec_pipeline_find(pipeline, "distribute-experts");
        code = mode == PASSES ? check_passes(pipeline, module, seed, first)
               : mode == ALL  ? print_all(module, seed, shared)
                              : print_numbers(module, seed, shared);
        mlirOperationDestroy(module);
    }
    hec_pipeline_free(pipeline);
    mlirContextDestroy(context);
    free(text);
    return code;
}

int main(int argc, char **argv) {
    uint64_t seed = 1;
    enum mode mode = NUMBERS;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--seed=", 7) == 0)
            seed = strtoull(argv[i] + 7, NULL, 10);
        else if (strcmp(argv[i], "--passes") == 0)
            mode = PASSES;
        else if (strcmp(argv[i], "--all") == 0)
            mode = ALL;
        else if (strcmp(argv[i], "--serve") == 0)
            mode = SERVE;
        else
            path = argv[i];
    }
    if (mode == SERVE) return serve(seed);
    if (path) return run_file(path, seed, mode);
    fputs("usage: hecate-interpret [--seed=N] [--all|--passes] FILE, or --serve\n", stderr);
    return 2;
}
