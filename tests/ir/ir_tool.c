// hec-ir-tool: the IR without the compiler around it, for text tests.
//
//   hec-ir-tool FILE.mlir              reads, verifies, prints without locations
//   hec-ir-tool --locations FILE.mlir  the same, with locations and names
//   hec-ir-tool --gradient FILE.mlir   adds the gradients of every operation of each function to its
//                                      end, by the rules of ir/ops, then verifies and prints
//   hec-ir-tool --cost FILE.mlir       prints flops and bytes of every operation
//   hec-ir-tool --build FILE.moe [-D NAME=VALUE | --set KEY=VALUE]...
//                                      builds the graph stage, verifies, prints with names
//   hec-ir-tool --irdl                 prints the definition of the dialects
//
// Exit code: 0, or 1 when anything was reported.
#include "ir/build/build.h"
#include "ir/core/gradient.h"
#include "lang/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void report(void *errors, const char *file, unsigned line, unsigned column,
                   MlirDiagnosticSeverity severity, const char *text) {
    const char *word = severity == MlirDiagnosticError ? "error" : "note";
    if (severity == MlirDiagnosticError) ++*(int *)errors;
    fprintf(stderr, "%s:%u:%u: %s: %s\n", file, line, column, word, text);
}

static char *read_file(const char *path) {
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    for (int c; out && (c = getc(in)) != EOF;) putc(c, out);
    fclose(in);
    if (out) fclose(out);
    return text;
}

static void write_text(MlirStringRef text, void *user) {
    (void)user;
    fwrite(text.data, 1, text.length, stdout);
}

// ---- a differentiator for straight lines: everything is in one function, so every value is its own
// primal, and gradients are a map

struct line {
    struct hec_gradient rules;
    struct hec_builder builder;
    struct hec_map gradient; // Pointer of a value -> pointer of its gradient.
};

static MlirValue of(struct hec_gradient *g, MlirValue v, bool or_zero) {
    struct line *line = (struct line *)g;
    const MlirValue d = {(void *)hec_map_get(&line->gradient, v.ptr)};
    if (!mlirValueIsNull(d) || !or_zero) return d;
    return hec_build_fill(&line->builder, mlirValueGetType(v), 0);
}

static MlirValue primal(struct hec_gradient *g, MlirValue v) {
    (void)g;
    return v;
}

static void add(struct hec_gradient *g, MlirValue v, MlirValue d) {
    struct line *line = (struct line *)g;
    if (!mlirTypeEqual(mlirValueGetType(v), mlirValueGetType(d))) {
        hec_ir_error(mlirOpResultGetOwner(d), "a gradient of another type than its value");
    }
    intptr_t *at = hec_map_at(&line->gradient, v.ptr);
    if (*at) {
        const MlirValue in[] = {{(void *)*at}, d};
        d = hec_result(hec_build_inferred(&line->builder, HEC_OP_add, 2, in, 0, NULL), 0);
    }
    *hec_map_at(&line->gradient, v.ptr) = (intptr_t)d.ptr;
}

// Reals have a gradient, but values called "constant" have none.
static bool wants(struct hec_gradient *g, MlirValue v) {
    (void)g;
    return hec_type_is_real(mlirValueGetType(v)) &&
           !mlirStringRefEqual(hec_value_name(v), HEC_STR("constant"));
}

// The gradients of the arguments become results of the function, after its own.
static void differentiate(MlirOperation func) {
    enum { MOST = 16 };
    const MlirBlock body = hec_func_body(func);
    const MlirOperation end = mlirBlockGetTerminator(body);
    struct line line = {{NULL, of, primal, add, wants}, hec_builder_before(end), {0}};
    line.rules.builder = &line.builder;
    struct hec_ops ops = hec_ops_in(body);
    MlirValue result[MOST];
    int results = 0;
    for (; results < mlirOperationGetNumOperands(end); results++) {
        result[results] = hec_operand(end, results);
        if (!hec_type_is_real(mlirValueGetType(result[results]))) continue;
        add(&line.rules, result[results],
            hec_build_fill(&line.builder, mlirValueGetType(result[results]), 1));
    }
    for (int i = ops.count - 1; i >= 0; i--) {
        const struct hec_traits *traits = hec_op_traits(ops.op[i]);
        bool any = false;
        for (int k = 0; k < mlirOperationGetNumResults(ops.op[i]); k++) {
            any |= !mlirValueIsNull(of(&line.rules, hec_result(ops.op[i], k), false));
        }
        if (any && traits->gradient) traits->gradient(&line.rules, ops.op[i]);
    }
    for (int i = 0; i < mlirBlockGetNumArguments(body) && results < MOST; i++) {
        const intptr_t d = hec_map_get(&line.gradient, mlirBlockGetArgument(body, i).ptr);
        if (d) result[results++] = (MlirValue){(void *)d};
    }
    mlirOperationDestroy(end);
    struct hec_builder b = hec_builder_end(body, mlirOperationGetLocation(func));
    hec_build_return(&b, func, results, result);
    free(ops.op);
    hec_map_free(&line.gradient);
}

// ---- the builder

static bool build(MlirContext context, int count, char **argument) {
    enum { MOST = 16 };
    const char *define[MOST], *set[MOST];
    struct hec_front_options options = {.path = argument[0], .defines = define, .sets = set};
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(argument[i], "-D") == 0) {
            define[options.defines_count++] = argument[i + 1];
        } else {
            set[options.sets_count++] = argument[i + 1];
        }
    }
    struct hec_arena arena = {0};
    struct hec_diag diag = {.out = stderr, .quiet = true};
    struct hec_program *program;
    bool sound = hec_front(&options, &diag, &arena, &program);
    hec_diag_flush(&diag);
    if (sound) {
        const MlirOperation module = hec_ir_build(context, program);
        sound = !mlirOperationIsNull(module) && hec_ir_verify(module);
        if (sound) hec_ir_print(module, write_text, NULL);
        if (!mlirOperationIsNull(module)) mlirOperationDestroy(module);
    }
    hec_diag_free(&diag);
    hec_arena_free(&arena);
    return sound;
}

static void print_costs(MlirOperation module) {
    struct hec_ops ops = hec_ops_below(module);
    for (int i = 0; i < ops.count; i++) {
        const enum hec_op id = hec_op_of(ops.op[i]);
        if (id >= HEC_OP_FUNC) continue;
        const struct hec_cost cost = hec_op_cost(ops.op[i]);
        printf("%s flops %.0f bytes %.0f\n", hec_op_row(id)->name, cost.flops, cost.bytes);
    }
    free(ops.op);
}

static void print_irdl(void) {
    char *text = hec_ir_irdl();
    fputs(text, stdout);
    free(text);
}

static bool run(MlirContext context, const char *mode, const char *path, const int *errors) {
    char *text = read_file(path);
    if (!text) {
        fprintf(stderr, "hec-ir-tool: cannot read %s\n", path);
        return false;
    }
    const MlirOperation module = mlirOperationCreateParse(context, HEC_STR(text), HEC_STR(path));
    free(text);
    if (mlirOperationIsNull(module)) return false;
    bool sound = hec_ir_verify(module);
    if (sound && strcmp(mode, "--gradient") == 0) {
        struct hec_ops ops = hec_ops_in(hec_module_body(module));
        for (int i = 0; i < ops.count; i++) {
            const bool func = hec_op_is(ops.op[i], HEC_OP_FUNC);
            if (func && !mlirBlockIsNull(hec_func_body(ops.op[i]))) differentiate(ops.op[i]);
        }
        free(ops.op);
        sound = hec_ir_verify(module) && *errors == 0;
    }
    if (!sound) {
        mlirOperationDestroy(module);
        return false;
    }
    if (strcmp(mode, "--cost") == 0) {
        print_costs(module);
    } else if (strcmp(mode, "--locations") == 0) {
        hec_ir_print(module, write_text, NULL);
    } else {
        mlirOperationPrint(module, write_text, NULL);
    }
    mlirOperationDestroy(module);
    return true;
}

int main(int count, char **argument) {
    if (count == 2 && strcmp(argument[1], "--irdl") == 0) {
        print_irdl();
        return 0;
    }
    const bool builds = count > 2 && strcmp(argument[1], "--build") == 0;
    if (count < 2 || (count > 3 && !builds)) {
        fputs("usage: hec-ir-tool [--gradient | --cost | --locations] FILE.mlir, "
              "--build FILE.moe [-D N=V | --set K=V]..., or --irdl\n",
              stderr);
        return 2;
    }
    int errors = 0;
    const MlirContext context = hec_ir_context(report, &errors);
    const bool sound =
        builds ? build(context, count - 2, argument + 2)
               : run(context, count == 3 ? argument[1] : "", argument[count - 1], &errors);
    mlirContextDestroy(context);
    return sound ? 0 : 1;
}
