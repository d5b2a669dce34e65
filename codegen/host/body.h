// Functions of the emitted program: forward and backward, and those that they call.
#ifndef HECATE_CODEGEN_HOST_BODY_H
#define HECATE_CODEGEN_HOST_BODY_H

#include "codegen/host/emitter.h"

// Writes them to `functions` of the emitter, callees first.
void hec_emit_functions(struct hec_emitter *e);

#endif
