// hecate-opt: runs passes over .mlir text, for the text tests of this folder.
//
//   hecate-opt [--passes=TEXT] [--print-ir-after=STAGE|all] [--locations] [--time-passes]
//              [--explain=memory] [--print-passes] [FILE]
//
// Prints the module, without locations unless asked; the text may come from standard input. Faults
// go to standard error as FILE:LINE:COLUMN: error: TEXT. Exit 0 done, 1 refused, 2 usage, 70
// broken.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/pipeline.h"

struct options {
    const char *passes, *print_after, *file;
    bool locations, times, explain, quiet;
};

static void report(void *user, const char *file, unsigned line, unsigned column,
                   MlirDiagnosticSeverity severity, const char *text) {
    (void)user;
    static const char *const word[] = {"error", "warning", "note", "remark"};
    fprintf(stderr, "%s:%u:%u: %s: %s\n", file, line, column, word[severity], text);
}

static void write_text(MlirStringRef text, void *out) {
    fwrite(text.data, 1, text.length, out);
}

static void print(MlirOperation module, bool locations) {
    if (locations) {
        hec_ir_print(module, write_text, stdout);
        return;
    }
    const MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
    mlirOpPrintingFlagsPrintNameLocAsPrefix(flags);
    mlirOperationPrintWithFlags(module, flags, write_text, stdout);
    mlirOpPrintingFlagsDestroy(flags);
    putchar('\n');
}

static void after(void *user, const struct hec_step *step, MlirOperation module) {
    const struct options *options = user;
    if (!options->print_after) return;
    if (strcmp(options->print_after, "all") != 0 && strcmp(options->print_after, step->stage) != 0)
        return;
    printf("// after %s\n", step->stage);
    print(module, options->locations);
}

static char *read_all(const char *path) {
    FILE *in = path ? fopen(path, "rb") : stdin;
    if (!in) {
        perror(path);
        exit(2);
    }
    char *text = NULL;
    size_t size = 0, used = 0;
    do {
        text = realloc(text, size = size ? 2 * size : 65536);
        if (!text) exit(70);
        used += fread(text + used, 1, size - used - 1, in);
    } while (used == size - 1);
    text[used] = 0;
    if (path) fclose(in);
    return text;
}

static bool starts(const char *text, const char *with, const char **rest) {
    const size_t length = strlen(with);
    *rest = text + length;
    return strncmp(text, with, length) == 0;
}

static void read_options(int argc, char **argv, struct options *options) {
    *options = (struct options){.passes = ""};
    for (int i = 1; i < argc; i++) {
        const char *rest;
        if (starts(argv[i], "--passes=", &rest)) {
            options->passes = rest;
        } else if (starts(argv[i], "--print-ir-after=", &rest)) {
            options->print_after = rest;
        } else if (strcmp(argv[i], "--locations") == 0) {
            options->locations = true;
        } else if (strcmp(argv[i], "--time-passes") == 0) {
            options->times = true;
        } else if (strcmp(argv[i], "--explain=memory") == 0) {
            options->explain = true;
        } else if (strcmp(argv[i], "--print-passes") == 0) {
            hec_passes_print(stdout);
            exit(0);
        } else if (argv[i][0] == '-') {
            fprintf(stderr, "hecate-opt: unknown option %s\n", argv[i]);
            exit(2);
        } else {
            options->file = argv[i];
        }
    }
}

static int run(MlirContext context, MlirOperation module, struct options *options) {
    static const int code[] = {[HEC_PASS_DONE] = 0, [HEC_PASS_REFUSED] = 1, [HEC_PASS_BROKEN] = 70};
    char *why = NULL;
    struct hec_pipeline *pipeline = hec_pipeline_parse(context, options->passes, &why);
    if (!pipeline) {
        fprintf(stderr, "hecate-opt: %s\n", why);
        free(why);
        return 2;
    }
    const struct hec_pipeline_hooks hooks = {.after = after, .user = options};
    const enum hec_pass_result result = hec_pipeline_run(pipeline, module, 0, -1, &hooks);
    if (options->times) hec_pipeline_print_times(pipeline, stderr);
    hec_pipeline_free(pipeline);
    if (result != HEC_PASS_DONE) return code[result];
    if (options->explain) return hec_explain_memory(module, stdout) ? 0 : 1;
    if (!options->print_after) print(module, options->locations);
    return 0;
}

// The parser takes a single operation for the root; passes want it in a module.
static MlirOperation parse(MlirContext context, const char *text, const char *name) {
    const MlirOperation root = mlirOperationCreateParse(context, HEC_STR(text), HEC_STR(name));
    if (mlirOperationIsNull(root) || hec_op_is(root, HEC_OP_MODULE)) return root;
    const MlirModule module = mlirModuleCreateEmpty(mlirOperationGetLocation(root));
    mlirBlockAppendOwnedOperation(mlirModuleGetBody(module), root);
    return mlirModuleGetOperation(module);
}

int main(int argc, char **argv) {
    struct options options;
    read_options(argc, argv, &options);
    char *text = read_all(options.file);
    const MlirContext context = hec_ir_context(report, NULL);
    const MlirOperation module = parse(context, text, options.file ? options.file : "<stdin>");
    int code = 1;
    if (!mlirOperationIsNull(module)) {
        if (hec_ir_verify(module)) code = run(context, module, &options);
        mlirOperationDestroy(module);
    }
    mlirContextDestroy(context);
    free(text);
    return code;
}
