// The state of the emitter.
#include "codegen/host/emitter.h"

#include <stdarg.h>
#include <stdio.h>

void hec_emit_fault(struct hec_emitter *e, MlirOperation op, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char text[512];
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    hec_ir_error(mlirOperationIsNull(op) ? e->module : op, "%s", text);
    e->failed = true;
}
