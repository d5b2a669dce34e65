// The C compiler that turns emitted C into a program.
#ifndef HECATE_CODEGEN_DRIVER_CC_H
#define HECATE_CODEGEN_DRIVER_CC_H

#include <stdbool.h>

#include "codegen/base/options.h"

// Libraries that a program needs beside the runtime and the kernels of the CPU.
struct hec_cc {
    const char *ranks; // Its transport to the others, "mpi" or "tcp"; NULL: it is the only one.
    const char *const
        *link; // Objects and libraries before the runtime's, ended by NULL; NULL: none.
};

// Compiles `source` to `output`: a program, or an object file when `options->object`. Headers and
// libraries are found relative to this executable: ../include and ../lib. Shows the command when
// the options say so. Programs whose ranks MPI joins are compiled by mpicc, which then calls the compiler
// of the options, unless that is an MPI wrapper itself. Returns the exit status for hecatec: 0, or 3 after a complaint.
int hec_cc_run(struct hec_arena *arena, const struct hec_options *options, const struct hec_cc *how,
               const char *source, const char *output);

// The transport between ranks of the emitted C in the file `source`, as in struct hec_cc; and whether it is for a GPU.
const char *hec_cc_ranks(const char *source);
bool hec_cc_needs_nvcc(const char *source);

#endif
