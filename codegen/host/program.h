// The emitter: from the IR after place-buffers to the text of a training program.
#ifndef HECATE_CODEGEN_HOST_PROGRAM_H
#define HECATE_CODEGEN_HOST_PROGRAM_H

#include "codegen/host/back_end.h"
#include "codegen/host/emit_options.h"
#include "codegen/text/writer.h"

// Appends the program to `out`, its operations as `back_end` prints them. Same module, same text. Every
// fault of the module (not placed, an operation that the target cannot do) is reported at its operation;
// false then.
bool hec_emit_program(MlirOperation module, const struct hec_back_end *back_end,
                      const struct hec_emit_options *options, struct hec_writer *out);

#endif
