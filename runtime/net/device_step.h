// A step that is no message, run on a device: for executors.
#ifndef HECATE_RUNTIME_NET_DEVICE_STEP_H
#define HECATE_RUNTIME_NET_DEVICE_STEP_H

#include <cuda_runtime_api.h>

#include "kernels/cuda/pieces.h"
#include "kernels/cuda/terms.h"
#include "kernels/launchers.h"
#include "runtime/net/steps.h"

// Asks the lane's stream for a copy, a sum, or a conversion of a message in bf16 (enum hrt_step_kind). Sums are of floats.
// Returns the error of the request, or one that the lane has from before.
cudaError_t hrt_net_device_step(struct hkc_lane *lane, const struct hrt_step *step);

// Steps that follow one another, which are one launch: of one kind, and none reads or writes what another one writes;
// or those that bring several arrays to one place, where the first may be a copy and the others add.
struct hrt_net_batch {
    struct hkc_lane *lane;
    int count;
    bool sums; // They are of the second kind.
    struct hrt_step step[HKC_PIECES_MOST];
};

// As hrt_net_device_step, but asks for a step only with others, at the latest in hrt_net_device_flush.
cudaError_t hrt_net_device_gather(struct hrt_net_batch *batch, const struct hrt_step *step);
cudaError_t hrt_net_device_flush(struct hrt_net_batch *batch);

#endif
