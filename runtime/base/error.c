// Errors as values: one sentence and an exit code.
#include "runtime/base/error.h"

#include <stdarg.h>
#include <stdio.h>

static void set(struct hrt_error *error, enum hrt_exit code, const char *format,
                va_list arguments) {
    error->code = code;
    vsnprintf(error->text, sizeof error->text, format, arguments);
}

bool hrt_fail(struct hrt_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(error, HRT_EXIT_FAILED, format, arguments);
    va_end(arguments);
    return false;
}

bool hrt_fail_usage(struct hrt_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    set(error, HRT_EXIT_USAGE, format, arguments);
    va_end(arguments);
    return false;
}

void hrt_warn(const char *program, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: warning: %s\n", program, text);
}
