// How hecatec says that it failed.
#include "codegen/base/status.h"

#include <stdarg.h>
#include <stdio.h>

bool hec_fail(const char *format, ...) {
    va_list arguments;
    fputs("hecatec: error: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return false;
}
