// Loops over elements as kernels: what the kernels of emitted programs include (codegen/cuda).
#ifndef HECATE_KERNELS_CUDA_LOOP_H
#define HECATE_KERNELS_CUDA_LOOP_H

#include "kernels/cuda/device.h"
#include "kernels/scalar.h"

// The body runs once for each `i` from 0 to `count` - 1, shared among all threads of the grid. No iteration may
// depend on another one.
#define HKC_FOR(i, count)                                                                          \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                  \
         i += (int64_t)gridDim.x * blockDim.x)

// Launches `kernel`, whose body is such a loop, with as many threads as have something to do or as the device has
// room for. Its arguments follow. No element tells whose thread computed it, so the device may be asked.
#define hkc_launch_loop(lane, kernel, count, ...)                                                  \
    hkc_launch(lane, kernel, hkc_loop_blocks(lane, count), HKC_LOOP_THREADS, 0, __VA_ARGS__)

enum { HKC_LOOP_THREADS = 256, HKC_LOOP_BLOCKS = 16 }; // A block; blocks on each multiprocessor.

inline unsigned hkc_loop_blocks(const struct hkc_lane *lane, int64_t count) {
    const int64_t most =
        (int64_t)(lane->multiprocessors > 0 ? lane->multiprocessors : 1) * HKC_LOOP_BLOCKS;
    const int64_t blocks = (count + HKC_LOOP_THREADS - 1) / HKC_LOOP_THREADS;
    return (unsigned)(blocks < most ? blocks : most);
}

#endif
