// CUDA twin of runs. Runs lie in memory of the host, so each should be read a few times only. BLOCKS blocks share them,
// and each counts the numbers that runs before its own have in the window, to find where its numbers go. PIECES of them
// share a part of the runs. Bytes read over the bus for each run: BLOCKS * PIECES * 6 and 12 * PIECES.
#include "kernels/runs/runs.h"

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

constexpr int THREADS = 128, WARPS = THREADS / 32, BLOCKS = 32, PIECES = 2;

// The parts of THREADS runs in the window: their first numbers, and how many they and those before them have.
struct listed {
    int first[THREADS], end[THREADS];
    int parts[WARPS];
};

// Numbers of the first `runs` runs.
HKC_DEVICE int count_before(const hk_run *run, int runs, int64_t begin, int64_t end, int *parts) {
    int before = 0;
    for (int r = (int)threadIdx.x; r < runs; r += THREADS) {
        before += hk_run_part(run[r], begin, end).count;
    }
    return block_sum(before, parts);
}

// A thread for each of up to THREADS runs. Returns the numbers of all; the block has seen them.
HKC_DEVICE int list_parts(listed *all, const hk_run *run, int runs, int64_t begin, int64_t end) {
    const int thread = (int)threadIdx.x, lane = thread % 32;
    hk_run own = {0, 0, 0};
    if (thread < runs) own = run[thread];
    const hk_part part = hk_run_part(own, begin, end);
    int sum = part.count;
    for (int step = 1; step < 32; step *= 2) {
        const int below = __shfl_up_sync(~0u, sum, (unsigned)step);
        if (lane >= step) sum += below;
    }
    __syncthreads(); // Nobody reads those before.
    if (lane == 31) all->parts[thread / 32] = sum;
    __syncthreads();
    for (int warp = 0; warp < thread / 32; warp++) sum += all->parts[warp];
    all->first[thread] = own.from + part.skip;
    all->end[thread] = sum;
    __syncthreads();
    return all->end[THREADS - 1];
}

// The first run whose numbers end behind number i.
HKC_DEVICE int run_of(const listed *all, int i) {
    int low = 0;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (all->end[low + half - 1] <= i) low += half;
    }
    return low;
}

// `each`: runs of a block.
__global__ void __launch_bounds__(THREADS)
    list_runs(int32_t *number, int32_t *mapped, const int32_t *map, const hk_run *run, int runs,
              int each, int64_t begin, int64_t end, int64_t origin) {
    HKC_SHARED(shared);
    listed *all = (listed *)shared;
    const int first = (int)blockIdx.x * each, last = min(first + each, runs);
    int at = count_before(run, first, begin, end, all->parts);
    for (int r = first; r < last; r += THREADS) {
        const int count = list_parts(all, run + r, min(last - r, THREADS), begin, end);
        const int piece = (int)blockIdx.y;
        for (int i = piece * THREADS + (int)threadIdx.x; i < count; i += PIECES * THREADS) {
            const int of = run_of(all, i);
            const int own = all->first[of] + i - (of > 0 ? all->end[of - 1] : 0);
            number[at + i] = (int32_t)(own - origin);
            if (mapped) mapped[at + i] = map[own];
        }
        at += count;
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
    const int64_t each = (runs + BLOCKS - 1) / BLOCKS;
    hkc_launch(lane, list_runs, dim3(each ? blocks_of(runs, each) : 0, PIECES), THREADS,
               sizeof(listed), number, mapped, map, run, (int)runs, (int)each, begin, end, origin);
}

extern "C" void hkc_clip_starts(struct hkc_lane *lane, int32_t *first, const int32_t *start,
                                int64_t count, int64_t begin, int64_t end) {
    hkc_launch(lane, clip_starts, blocks_of(count, THREADS), THREADS, 0, first, start, (int)count,
               begin, end);
}
