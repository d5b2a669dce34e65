// Our dialects: their IRDL definition is generated from ops.def, so that the op
// table and what MLIR checks cannot disagree.
#include "ir/core/op.h"
#include "ir/core/signature.h"
#include "lang/base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *constraint_of(const char *kind) {
    if (!*kind) return "irdl.base \"!builtin.tensor\"";
    if (strcmp(kind, "any") == 0) return "irdl.any";
    if (strcmp(kind, "index") == 0) return "irdl.is index";
    const struct hec_kind *found = hec_kind_of(kind);
    assert(found); // ops.def
    return found->irdl;
}

// Writes the constraint values of a list of words. A constraint used twice would mean "equal", so
// every word gets its own. A variadic word accepts any type: over one constraint all would be equal.
static void write_constraints(FILE *out, const char *words, char prefix) {
    struct hec_word word;
    for (int i = 0; (words = hec_next_word(words, &word)); i++) {
        if (prefix == 'a' && word.repeat == '?') continue;
        const char *constraint = word.repeat == '*' ? "irdl.any" : constraint_of(word.kind);
        fprintf(out, "      %%%c%d = %s\n", prefix, i, constraint);
    }
}

static void write_values(FILE *out, const char *keyword, const char *words, char prefix) {
    struct hec_word word;
    if (!hec_next_word(words, &word)) return;
    fprintf(out, "      irdl.%s(", keyword);
    for (int i = 0; (words = hec_next_word(words, &word)); i++) {
        const char *repeat = word.repeat == '*' ? "variadic " : word.repeat ? "optional " : "";
        fprintf(out, "%s%s: %s%%%c%d", i ? ", " : "", word.name, repeat, prefix, i);
    }
    fputs(")\n", out);
}

// IRDL's attributes are required; optional ones are the verifier's (ir/verify.c).
static void write_attributes(FILE *out, const char *words) {
    struct hec_word word;
    int written = 0;
    for (int i = 0; (words = hec_next_word(words, &word)); i++) {
        if (word.repeat == '?') continue;
        fprintf(out, "%s\"%s\" = %%a%d", written++ ? ", " : "      irdl.attributes {", word.name,
                i);
    }
    if (written) fputs("}\n", out);
}

// IRDL's variadic operands are all of one type, but those of moe.fused are not. So it has many groups
// of operands, each for a run of inputs of one type (ir/ops/fused.h), and hk.call, whose epilogue is
// such a region, has the same behind what its kernel reads (ir/core/kernel.h).
#define RUNS                                                                                       \
    "run0* run1* run2* run3* run4* run5* run6* run7* run8* run9* run10* run11* run12* run13* "     \
    "run14* run15* run16* run17* run18* run19* run20* run21* run22* run23*"

struct signature {
    const char *operands, *results;
    bool region;
};

static struct signature signature_of(const struct hec_op_row *row) {
    if (row == hec_op_row(HEC_OP_fused)) return (struct signature){RUNS, row->results, true};
    if (row != hec_op_row(HEC_OP_call))
        return (struct signature){row->operands, row->results, false};
    return (struct signature){
        "a0:any? a1:any? a2:any? a3:any? a4:any? a5:any? a6:any? a7:any? onto? " RUNS,
        "r0? r1? r2? r3? r4? r5? outputs*", true};
}

static void write_operation(FILE *out, const char *id, const struct hec_op_row *row) {
    const struct signature is = signature_of(row);
    fprintf(out, "    irdl.operation @%s {\n", id);
    write_constraints(out, is.operands, 'o');
    write_constraints(out, is.results, 'r');
    write_constraints(out, row->attributes, 'a');
    if (is.region) fputs("      %body = irdl.region\n", out);
    write_values(out, "operands", is.operands, 'o');
    write_values(out, "results", is.results, 'r');
    write_attributes(out, row->attributes);
    if (is.region) fputs("      irdl.regions(body: %body)\n", out);
    fputs("    }\n", out);
}

static void write_dialect(FILE *out, const char *dialect) {
    fprintf(out, "  irdl.dialect @%s {\n", dialect);
    const size_t length = strlen(dialect);
    for (int op = 0; op < HEC_OP_FUNC; op++) {
        const struct hec_op_row *row = hec_op_row(op);
        if (strncmp(row->name, dialect, length) != 0 || row->name[length] != '.') continue;
        write_operation(out, row->name + length + 1, row);
    }
    fputs("  }\n", out);
}

char *hec_ir_irdl(void) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = hec_checked(open_memstream(&text, &bytes));
    fputs("module {\n", out);
    write_dialect(out, "moe");
    write_dialect(out, "fssdp");
    write_dialect(out, "hk");
    fputs("}\n", out);
    fclose(out);
    return text;
}

bool hec_ir_error(MlirOperation op, const char *format, ...) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return false;
    const MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
    // People know no name of the module: it stands for the model.
    if (!mlirStringRefEqual(name, HEC_STR("builtin.module")))
        fprintf(out, "'%.*s': ", (int)name.length, name.data);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fclose(out);
    mlirEmitError(mlirOperationGetLocation(op), text);
    free(text);
    return false;
}

void hec_ir_print(MlirOperation op, void (*write)(MlirStringRef text, void *user), void *user) {
    const MlirOpPrintingFlags flags = mlirOpPrintingFlagsCreate();
    mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
    mlirOpPrintingFlagsPrintNameLocAsPrefix(flags);
    mlirOperationPrintWithFlags(op, flags, write, user);
    mlirOpPrintingFlagsDestroy(flags);
    write(mlirStringRefCreateFromCString("\n"), user);
}
