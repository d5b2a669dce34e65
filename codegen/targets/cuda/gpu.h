// The GPUs of this machine.
#ifndef HECATE_CODEGEN_TARGETS_CUDA_GPU_H
#define HECATE_CODEGEN_TARGETS_CUDA_GPU_H

#include "lang/base/arena.h"

// Their architectures, each once, as the driver (libcuda.so.1) says: "sm_89|sm_120", those that CUDA_VISIBLE_DEVICES
// leaves. NULL: there is none, or no driver.
const char *hec_gpus_here(struct hec_arena *arena);

#endif
