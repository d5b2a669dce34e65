// A context with our dialects, and its diagnostics.
#include "ir/context.h"

#include <stdio.h>
#include <stdlib.h>

#include <mlir-c/Dialect/Arith.h>
#include <mlir-c/Dialect/Func.h>
#include <mlir-c/Dialect/IRDL.h>
#include <mlir-c/Dialect/SCF.h>
#include <mlir-c/Dialect/Vector.h>

#include "lang/base/arena.h"

struct reporter {
    hec_ir_report *report;
    void *user;
};

static void append(MlirStringRef text, void *out) {
    fwrite(text.data, 1, text.length, out);
}

static MlirLogicalResult on_diagnostic(MlirDiagnostic diagnostic, void *user) {
    const struct reporter *to = user;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return mlirLogicalResultFailure();
    mlirDiagnosticPrint(diagnostic, append, out);
    fclose(out);

    struct hec_location location;
    char file[4096] = "";
    if (hec_loc_resolve(mlirDiagnosticGetLocation(diagnostic), &location)) {
        snprintf(file, sizeof file, "%.*s", (int)location.file.length, location.file.data);
    }
    to->report(to->user, file, location.line, location.column,
               mlirDiagnosticGetSeverity(diagnostic), text);
    free(text);
    for (intptr_t i = 0; i < mlirDiagnosticGetNumNotes(diagnostic); i++) {
        on_diagnostic(mlirDiagnosticGetNote(diagnostic, i), user);
    }
    return mlirLogicalResultSuccess();
}

MlirContext hec_ir_context(hec_ir_report *report, void *user) {
    hec_op_use(hec_all_traits);
    const MlirContext context = mlirContextCreateWithThreading(false);
    mlirContextSetAllowUnregisteredDialects(context, false);
    struct reporter *to = hec_checked(malloc(sizeof *to));
    *to = (struct reporter){report, user};
    mlirContextAttachDiagnosticHandler(context, on_diagnostic, to, free);

    const MlirDialectHandle handle[] = {
        mlirGetDialectHandle__func__(),  mlirGetDialectHandle__scf__(),
        mlirGetDialectHandle__arith__(), mlirGetDialectHandle__vector__(),
        mlirGetDialectHandle__irdl__(),
    };
    for (size_t i = 0; i < sizeof handle / sizeof *handle; i++) {
        mlirDialectHandleLoadDialect(handle[i], context);
    }
    char *irdl = hec_ir_irdl();
    const MlirModule definition = mlirModuleCreateParse(context, HEC_STR(irdl));
    if (mlirModuleIsNull(definition) ||
        mlirLogicalResultIsFailure(mlirLoadIRDLDialects(definition))) {
        fputs("hecatec: internal error: the dialects' definition does not load\n", stderr);
        exit(70);
    }
    mlirModuleDestroy(definition);
    free(irdl);
    return context;
}
