// CUDA twin of documents: a block for each sequence, as many positions at a time as it has threads. The document of a
// position begins at the last position up to it that follows an end.
#include "kernels/documents/documents.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

// The largest of the values, at least 0, of the threads up to this one, and of all of them in *highest. `parts` is shared
// memory, a number for each warp; the function may be called again at once.
HKC_DEVICE int max_up_to(int value, int32_t *parts, int *highest) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value = max(value, below);
    }
    __syncthreads();
    if (lane == 31) parts[warp] = value;
    __syncthreads();
    *highest = 0;
    for (int i = 0; i < WIDE_THREADS / 32; i++) {
        if (i < warp) value = max(value, parts[i]);
        *highest = max(*highest, parts[i]);
    }
    return value;
}

__global__ void __launch_bounds__(WIDE_THREADS)
    documents(int32_t *begins, const int32_t *ids, int64_t positions, int32_t end) {
    HKC_SHARED(shared);
    begins += blockIdx.x * positions;
    ids += blockIdx.x * positions;
    int before = 0;
    for (int64_t first = 0; first < positions; first += WIDE_THREADS) {
        const int64_t t = first + threadIdx.x;
        const bool follows = t > 0 && t < positions && ids[t - 1] == end;
        int highest;
        const int begin = max_up_to(follows ? (int)t : 0, (int32_t *)shared, &highest);
        if (t < positions) begins[t] = max(begin, before);
        before = max(before, highest);
    }
}

} // namespace

extern "C" void hkc_documents(struct hkc_lane *lane, int32_t *begins, const int32_t *ids,
                              int64_t sequences, int64_t positions, int64_t end, int64_t before) {
    assert(before == 0);
    hkc_launch(lane, documents, (unsigned)sequences, WIDE_THREADS,
               WIDE_THREADS / 32 * sizeof(int32_t), begins, ids, positions, (int32_t)end);
}
