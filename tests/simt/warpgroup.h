// warpgroup: wgmma, the GEMMs of four warps together, as kernels/cuda/warpgroup.h documents them.
#ifndef HECATE_TESTS_SIMT_WARPGROUP_H
#define HECATE_TESTS_SIMT_WARPGROUP_H

#include <stddef.h>
#include <stdint.h>

#include "fiber.h"

namespace simt {

// One instruction, as a lane calls it.
struct wgmma_t {
    float *d;    // columns / 2
    int columns; // The result's.
    uint64_t a, b;
    bool a_turned, b_turned;          // MN-major.
    bool keep;                        // Adds to d.
    const uint32_t *registers = NULL; // The left operand, [4], which then is not in shared memory.
};

void async_fence();
void wgmma_fence(site_t site);
void wgmma_issue(const wgmma_t &mine, site_t site);
void wgmma_commit(site_t site);
void wgmma_wait(int left, site_t site);

} // namespace simt

#endif
