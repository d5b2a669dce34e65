// CUDA twin of runs. Blocks of PIECES share a run; each of them counts what the runs before it have in the window, to find
// where its own numbers go. So the runs are read twice for each of them: a thousand of them in a few microseconds.
#include "kernels/runs/runs.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

constexpr int THREADS = 128, PIECES = 2;

// Numbers of the runs before the block's own one.
HKC_DEVICE int count_before(const hk_run *run, int64_t begin, int64_t end, int *parts) {
    int before = 0;
    for (int r = (int)threadIdx.x; r < (int)blockIdx.x; r += THREADS) {
        before += hk_run_part(run[r], begin, end).count;
    }
    return block_sum(before, parts);
}

__global__ void __launch_bounds__(THREADS)
    list_runs(int32_t *number, int32_t *mapped, const int32_t *map, const hk_run *run,
              int64_t begin, int64_t end, int64_t origin) {
    HKC_SHARED(shared);
    const int at = count_before(run, begin, end, (int *)shared);
    const hk_part part = hk_run_part(run[blockIdx.x], begin, end);
    const int first = run[blockIdx.x].from + part.skip;
    const int piece = (int)blockIdx.y;
    const int count = part.count;
    for (int i = piece * THREADS + (int)threadIdx.x; i < count; i += PIECES * THREADS) {
        number[at + i] = (int32_t)(first + i - origin);
        if (mapped) mapped[at + i] = map[first + i];
    }
}

__global__ void __launch_bounds__(THREADS)
    clip_starts(int32_t *first, const int32_t *start, int count, int64_t begin, int64_t end) {
    const int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (i < count) first[i] = (int32_t)(min(max((int64_t)start[i], begin), end) - begin);
}

} // namespace

extern "C" void hkc_list_runs(struct hkc_lane *lane, int32_t *number, int32_t *mapped,
                              const int32_t *map, const struct hk_run *run, int64_t runs,
                              int64_t begin, int64_t end, int64_t origin) {
    hkc_launch(lane, list_runs, dim3((unsigned)runs, PIECES), THREADS, THREADS / 32 * sizeof(int),
               number, mapped, map, run, begin, end, origin);
}

extern "C" void hkc_clip_starts(struct hkc_lane *lane, int32_t *first, const int32_t *start,
                                int64_t count, int64_t begin, int64_t end) {
    hkc_launch(lane, clip_starts, blocks_of(count, THREADS), THREADS, 0, first, start, (int)count,
               begin, end);
}
