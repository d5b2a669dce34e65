// scan: running sums of whole numbers over the lanes of a warp and the threads of a block.
#ifndef HECATE_KERNELS_CUDA_SCAN_H
#define HECATE_KERNELS_CUDA_SCAN_H

#include "kernels/cuda/device.h"

// The sum of the values of the lanes up to this one, which all take part.
HKC_DEVICE int warp_sum_up_to(int value) {
    const int lane = threadIdx.x % 32;
    for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, value, step);
        value += lane >= step ? below : 0;
    }
    return value;
}

// The sum of the values of the threads before this one, and of all of them in *total, over a block of whole warps.
// `parts` is shared memory, a number for each warp, that nobody else uses; the function may be called again at once.
HKC_DEVICE int block_sum_before(int value, int32_t *parts, int *total) {
    const unsigned warp = threadIdx.x / 32;
    const int sum = warp_sum_up_to(value);
    __syncthreads(); // The parts of an earlier call have been read.
    if (threadIdx.x % 32 == 31) parts[warp] = sum;
    __syncthreads();
    int before = sum - value;
    *total = 0;
    for (unsigned i = 0; i < blockDim.x / 32; i++) {
        if (i < warp) before += parts[i];
        *total += parts[i];
    }
    return before;
}

#endif
