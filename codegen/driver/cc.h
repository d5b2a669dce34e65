// The C compiler that turns emitted C into a program.
#ifndef HECATE_CODEGEN_DRIVER_CC_H
#define HECATE_CODEGEN_DRIVER_CC_H

#include <stdbool.h>

#include "codegen/base/build.h"

// Compiles its source to `output`: a program, or an object file when `options->object`. Headers and
// libraries are found relative to this executable: ../include and ../lib. Shows the command when
// the options say so. Programs whose ranks MPI joins are compiled by mpicc, which then calls the compiler
// of the options, unless that is an MPI wrapper itself. Returns the exit status for hecatec: 0, or 3 after a complaint.
int hec_cc_run(const struct hec_build *build, const char *output);

// The transport between ranks of the emitted C in the file `source`, as in struct hec_build; and the name of the target
// that its device is of, NULL: none.
const char *hec_cc_ranks(struct hec_arena *arena, const char *source);
const char *hec_cc_device(struct hec_arena *arena, const char *source);

#endif
