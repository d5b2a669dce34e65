// Describes the code that runs on a device. A file of its own: drivers that compile from PTX compile whole files.
#include "kernels/cuda/device.h"
#include "kernels/cuda/warpgroup.h"

// Each code that is compiled for has its own.
static __device__ int has_warpgroups = HKC_WARPGROUPS;

int hkc_library_code(const char **compiled_for, bool *warpgroups) {
    int value = 0;
    *compiled_for = HKC_ARCHITECTURES;
#ifdef __CUDACC__
    const int error = (int)cudaMemcpyFromSymbol(&value, has_warpgroups, sizeof value);
    if (error) cudaGetLastError(); // The next launch would report it again.
#else
    const int error = simt::code_of(NULL, HKC_ARCHITECTURES);
    value = has_warpgroups && simt::runs("sm_90a", HKC_ARCHITECTURES);
#endif
    *warpgroups = value != 0;
    return error;
}
