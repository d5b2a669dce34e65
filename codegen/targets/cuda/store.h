// Shared by kernels of loops: their names, their pointers, and the way an element gets a number.
#ifndef HECATE_CODEGEN_TARGETS_CUDA_STORE_H
#define HECATE_CODEGEN_TARGETS_CUDA_STORE_H

#include "codegen/targets/cuda/loop.h"

// The name of the loop of `op`: its first result, or else its operation.
const char *hec_cuda_base(struct hec_emitter *e, MlirOperation op);

// Adds a pointer to a value, called like it. Returns its index.
int hec_cuda_point(struct hec_emitter *e, struct hec_device_loop *loop, MlirValue value,
                   enum hec_device_use use);

// Writes the statement that gives element 0 of the loop a number, or adds it.
void hec_cuda_store(struct hec_emitter *e, const struct hec_device_loop *loop, const char *number);

#endif
