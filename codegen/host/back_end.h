// A target's back end: printing operations, compiling and tuning programs. Its facts are struct hec_target.
#ifndef HECATE_CODEGEN_HOST_BACK_END_H
#define HECATE_CODEGEN_HOST_BACK_END_H

#include "codegen/base/build.h"
#include "codegen/host/emitter.h"
#include "codegen/host/memory.h"

// Writes the statements of one operation into the current function.
typedef void hec_emit_op(struct hec_emitter *e, MlirOperation op);

// codegen/targets/NAME/printer.c. Everything else of a program is the same for all targets (this folder).
struct hec_back_end {
    const char *name;           // "cpu"
    const char *const *headers; // Headers for its statements; ended by NULL.
    // Headers of the part that the target's own compiler reads (emitter.h, device). NULL: the C compiler reads all.
    const char *const *device_headers;
    const struct hec_memory *memory; // Holds tensors.
    const char *ranks;               // Transport between ranks by default: "mpi".
    const char *executor; // Moves tensors between the ranks' devices: "cuda". NULL: the ranks do.
    // Tells profilers which line of the source follows: the variable of a function that does, and the statement, up to
    // the line's text, its last argument. NULL: nobody is told.
    const char *lines, *line;
    // The function that prints operations of this kind; NULL: the target has nothing for them. Never asked for
    // operations that this folder prints or that have no text (calls.h).
    hec_emit_op *(*of)(enum hec_op op);
    // The epilogue of a call of a kernel as its last argument, "NULL" where the call has none. NULL: the target
    // has no epilogues.
    const char *(*epilogue)(struct hec_emitter *e, MlirOperation call);
    // Compiles the part of a program that the C compiler does not, and sets `build->link`. Returns the exit status
    // of hecatec, after a complaint where that is not 0. NULL: the C compiler compiles all.
    int (*compile)(struct hec_build *build);
    const char *tuner, *tuned_file; // The tool of --tune and the file it writes; NULL: none.
    const char *calibrator;         // The tool of --calibrate; NULL: none.
};

#endif
