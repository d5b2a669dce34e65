// One compilation: from the command line to the file it asks for.
#ifndef HECATE_CODEGEN_DRIVER_COMPILE_H
#define HECATE_CODEGEN_DRIVER_COMPILE_H

#include "codegen/driver/options.h"

// Exit statuses.
enum {
    HEC_EXIT_DONE = 0,
    HEC_EXIT_INPUT = 1,        // Errors in the model, or a file that cannot be read or written.
    HEC_EXIT_COMMAND_LINE = 2, // Wrong options.
    HEC_EXIT_CC = 3,           // The C compiler, or hecate-tune, is missing or failed.
    HEC_EXIT_INTERNAL = 70,    // A bug of hecatec.
};

int hec_compile(struct hec_arena *arena, const struct hec_options *options);

// Lists all stages in their order, for --print-stages.
void hec_stages_print(FILE *out);

#endif
