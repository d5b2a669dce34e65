// Operations that are the same in every target: calls of the runtime, and those without text.
#ifndef HECATE_CODEGEN_HOST_CALLS_H
#define HECATE_CODEGEN_HOST_CALLS_H

#include "codegen/host/back_end.h"

// The printer of operations of this kind; NULL: the target's printer prints them.
hec_emit_op *hec_host_op(enum hec_op op);

// Prints nothing: symbols and values that have their memory already.
hec_emit_op hec_emit_nothing;

#endif
