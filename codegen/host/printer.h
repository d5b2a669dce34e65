// A target's printer.
#ifndef HECATE_CODEGEN_HOST_PRINTER_H
#define HECATE_CODEGEN_HOST_PRINTER_H

#include "codegen/host/emitter.h"

// Writes the statements of one operation into the current function.
typedef void hec_emit_op(struct hec_emitter *e, MlirOperation op);

// A target's part of the emitter. Everything else of a program is the same for all targets that emit
// one (this folder).
struct hec_printer {
    const char *target;         // "cpu"
    const char *const *headers; // That its statements need; ended by NULL.
    // The struct that the program's kernels need (emitter.h, device). Not NULL: tensors, and the numbers that a call of
    // the program is given, lie in the memory of a device, and statements only ask for work.
    const char *const *device_headers;
    const char *ranks;    // Transport between ranks by default: "mpi".
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
};

// Whether tensors lie in the memory of a device.
static inline bool hec_on_device(const struct hec_emitter *e) {
    return e->printer->device_headers;
}

#endif
