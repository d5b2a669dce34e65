// How a function of the runtime says that it failed: it returns false and fills in one sentence and
// the exit code that the program shall end with. Only hrt_cli_main prints it.
#ifndef HECATE_RUNTIME_BASE_ERROR_H
#define HECATE_RUNTIME_BASE_ERROR_H

#include <stdbool.h>

// Exit codes of every training program. A signal that stops training adds 128 to its number.
enum hrt_exit {
    HRT_EXIT_DONE = 0,
    HRT_EXIT_FAILED = 1, // Data, a file or the run itself.
    HRT_EXIT_USAGE = 2,  // The command line.
};

struct hrt_error {
    enum hrt_exit code;
    char text[1024]; // No newline at its end. Empty: no error.
    bool shared;     // All ranks know of it (runtime/train/ranks.h); one of them has the text.
};

// Fills in `error` with HRT_EXIT_FAILED and the formatted sentence. Returns false, so that a
// function can end with `return hrt_fail(error, ...)`.
bool hrt_fail(struct hrt_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The same with HRT_EXIT_USAGE.
bool hrt_fail_usage(struct hrt_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Prints "PROGRAM: warning: " and the formatted sentence to standard error: for faults that do not end the run.
void hrt_warn(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
