// The C compiler that turns emitted C into a program.
#ifndef HECATE_CODEGEN_DRIVER_CC_H
#define HECATE_CODEGEN_DRIVER_CC_H

#include <stdbool.h>

#include "codegen/driver/options.h"

// Compiles `source` to `output`: a program, or an object file when `options->object`. Headers and
// libraries are found relative to this executable: ../include and ../lib. Shows the command when
// the options say so. Programs of several `ranks` are compiled by mpicc, which then calls the compiler
// of the options, unless that is an MPI wrapper itself. Returns the exit status for hecatec: 0, or 3 after a complaint.
int hec_cc_run(struct hec_arena *arena, const struct hec_options *options, bool ranks,
               const char *source, const char *output);

// Whether the emitted C in the file `source` is a program of several ranks.
bool hec_cc_needs_mpi(const char *source);

// The folder that holds bin, include and lib; NULL when the executable cannot be found.
const char *hec_prefix(struct hec_arena *arena);

#endif
