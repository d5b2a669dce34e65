// Exit statuses of hecatec, and errors that have no place in the model.
#ifndef HECATE_CODEGEN_BASE_STATUS_H
#define HECATE_CODEGEN_BASE_STATUS_H

#include <stdbool.h>

enum {
    HEC_EXIT_DONE = 0,
    HEC_EXIT_INPUT = 1,        // Errors in the model, or a file that cannot be read or written.
    HEC_EXIT_COMMAND_LINE = 2, // Wrong options.
    HEC_EXIT_CC =
        3, // The C compiler, hecate-tune, or a program of --measure, is missing or failed.
    HEC_EXIT_INTERNAL = 70, // A bug of hecatec.
};

// Prints "hecatec: error: " and the sentence, a line. Returns false, so that a function can end with
// `return hec_fail(...)`.
bool hec_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
