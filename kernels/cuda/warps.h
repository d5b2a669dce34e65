// warps: how many warps a block gets where each needs shared memory of its own.
#ifndef HECATE_KERNELS_CUDA_WARPS_H
#define HECATE_KERNELS_CUDA_WARPS_H

#include <stdint.h>

// As many as fit into the 48 KiB that every kernel may use, from 1 to `most`: `bytes` for each of them, `common` bytes
// for the block. A single warp may need more than that.
static inline int hkc_warps(int64_t bytes, int64_t common, int most) {
    const int64_t warps = bytes > 0 ? ((48 << 10) - common) / bytes : most;
    return warps < 1 ? 1 : warps > most ? most : (int)warps;
}

#endif
