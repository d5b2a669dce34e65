// A step that is no message, run on a device: for executors.
#ifndef HECATE_RUNTIME_NET_DEVICE_STEP_H
#define HECATE_RUNTIME_NET_DEVICE_STEP_H

#include <cuda_runtime_api.h>

#include "kernels/launchers.h"
#include "runtime/net/steps.h"

// Asks the lane's stream for a copy, a sum, or a conversion of a message in bf16 (enum hrt_step_kind). Sums are of floats.
// Returns the error of the request, or one that the lane has from before.
cudaError_t hrt_net_device_step(struct hkc_lane *lane, const struct hrt_step *step);

#endif
