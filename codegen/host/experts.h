// Movement of experts: calls of runtime/experts.
#ifndef HECATE_CODEGEN_HOST_EXPERTS_H
#define HECATE_CODEGEN_HOST_EXPERTS_H

#include "codegen/host/back_end.h"

hec_emit_op hec_emit_plan, hec_emit_materialize, hec_emit_prefetch, hec_emit_calibrate;
hec_emit_op hec_emit_await, hec_emit_reduce, hec_emit_release;

#endif
