// nvcc, which turns the kernels in the source of a program for a GPU into an object.
#ifndef HECATE_CODEGEN_TARGETS_CUDA_NVCC_H
#define HECATE_CODEGEN_TARGETS_CUDA_NVCC_H

#include "codegen/base/build.h"

// Compiles the kernels of the source for the architecture that its target names ("cuda:sm_90a"), for all
// ("cuda:all"), or ("cuda") for the GPUs of this machine, and for all where it has none. Shows the command when the
// options say so. Sets `build->link`: the object, and the libraries of its device and, with several ranks, of its
// transport. Returns the exit status for hecatec: 0, or another one after a complaint.
int hec_nvcc_compile(struct hec_build *build);

#endif
