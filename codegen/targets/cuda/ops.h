// Functions of the families of operations for the table (printer.c).
#ifndef HECATE_CODEGEN_TARGETS_CUDA_OPS_H
#define HECATE_CODEGEN_TARGETS_CUDA_OPS_H

#include "codegen/host/back_end.h"

hec_emit_op hec_cuda_call, hec_cuda_elementwise, hec_cuda_fused;
hec_emit_op hec_cuda_sum, hec_cuda_copy, hec_cuda_transpose, hec_cuda_accumulate;
hec_emit_op hec_cuda_slice, hec_cuda_slice_grad, hec_cuda_concat;

extern const struct hec_memory hec_cuda_memory;

#endif
