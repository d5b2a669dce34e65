// Functions of the families of operations for the table (printer.c).
#ifndef HECATE_CODEGEN_TARGETS_CPU_OPS_H
#define HECATE_CODEGEN_TARGETS_CPU_OPS_H

#include "codegen/host/back_end.h"
#include "codegen/host/dims.h"
#include "codegen/host/emitter.h"
#include "codegen/host/function.h"
#include "codegen/host/home.h"
#include "codegen/host/literal.h"
#include "codegen/host/symbols.h"

hec_emit_op hec_emit_call, hec_emit_elementwise, hec_emit_fused;
hec_emit_op hec_emit_sum, hec_emit_copy, hec_emit_transpose, hec_emit_accumulate;
hec_emit_op hec_emit_slice, hec_emit_slice_grad, hec_emit_concat;

// The loops of the call's epilogue over `block`, a part of its first `rows` dimensions and of the others.
void hec_emit_epilogue_loops(struct hec_emitter *e, MlirOperation call, int rows);

// The last argument of a GEMM: its epilogue, written as a function before the current one; "NULL"
// where the call has none.
const char *hec_epilogue(struct hec_emitter *e, MlirOperation call);

#endif
