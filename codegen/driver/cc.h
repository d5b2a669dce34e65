// The C compiler that turns emitted C into a program.
#ifndef HECATE_CODEGEN_DRIVER_CC_H
#define HECATE_CODEGEN_DRIVER_CC_H

#include <stdbool.h>

#include "codegen/driver/options.h"

// What a program needs beside the runtime and the kernels of the CPU.
struct hec_cc {
    bool ranks; // It is one of several ranks.
    const char *const
        *link; // Objects and libraries before the runtime's, ended by NULL; NULL: none.
};

// Compiles `source` to `output`: a program, or an object file when `options->object`. Headers and
// libraries are found relative to this executable: ../include and ../lib. Shows the command when
// the options say so. Programs of several ranks are compiled by mpicc, which then calls the compiler
// of the options, unless that is an MPI wrapper itself. Returns the exit status for hecatec: 0, or 3 after a complaint.
int hec_cc_run(struct hec_arena *arena, const struct hec_options *options, const struct hec_cc *how,
               const char *source, const char *output);

// Whether the emitted C in the file `source` is a program of several ranks, or for a GPU.
bool hec_cc_needs_mpi(const char *source);
bool hec_cc_needs_nvcc(const char *source);

// Whether the runtime's headers are where they belong; complains where they are not.
bool hec_have_headers(struct hec_arena *arena);

// The folder that holds bin, include and lib; NULL when the executable cannot be found.
const char *hec_prefix(struct hec_arena *arena);

#endif
