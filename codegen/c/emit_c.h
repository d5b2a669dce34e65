// Target cpu: C that calls the kernels of this machine.
#ifndef HECATE_CODEGEN_C_EMIT_C_H
#define HECATE_CODEGEN_C_EMIT_C_H

#include "codegen/host/emit_options.h"
#include "codegen/text/writer.h"
#include "ir/op.h"

// Appends the program's C to `out`. Same module, same text. Every fault of the module (not placed,
// an operation this target cannot do) is reported at its operation; false then.
bool hec_emit_c(MlirOperation module, const struct hec_emit_options *options,
                struct hec_writer *out);

#endif
