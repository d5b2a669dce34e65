// Facts of an emitted program's own kernels: the devices they were compiled for, and whether this one is among them.
#ifndef HECATE_KERNELS_CUDA_PROGRAM_H
#define HECATE_KERNELS_CUDA_PROGRAM_H

#include "kernels/cuda/device.h"

static __global__ void __launch_bounds__(32) hkc_nothing() {
}

// hkc_program_code of lane.h.
extern "C" int hkc_program_code(const char **compiled_for) {
    *compiled_for = HKC_ARCHITECTURES;
    return hkc_code_of(hkc_nothing);
}

#endif
