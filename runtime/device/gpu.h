// Which GPU a process takes.
#ifndef HECATE_RUNTIME_DEVICE_GPU_H
#define HECATE_RUNTIME_DEVICE_GPU_H

#include <cuda_runtime_api.h>

#include "runtime/base/error.h"

// The GPU of the calling process, by CUDA's numbers of those that it sees (CUDA_VISIBLE_DEVICES): HECATE_DEVICE, where
// that is set, else the one for its rank on its machine, as the launcher numbers it or, where it does not, `local`. If
// there are fewer GPUs than ranks several ranks take one. Makes it the current one. False: there is none, none that can
// be used, or HECATE_DEVICE is not the number of one; the error names the missing part.
bool hrt_device_gpu_choose(int local, int *number, struct hrt_error *error);

// Fails with "this program is for a GPU (target cuda), and `what`: ..".
bool hrt_device_gpu_refuse(struct hrt_error *error, const char *what, cudaError_t status);

#endif
