// CUDA twin of clip: one block. It reads a number for each tensor and expert, once a step.
#include "kernels/clip/clip_cuda.h"

#include <math.h>

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

__global__ void __launch_bounds__(WIDE_THREADS)
    clip_step(hk_clipped *clipped, const double *sums, int64_t count, const float *numbers,
              int64_t numbered, double most, int64_t skips) {
    HKC_SHARED(shared);
    double sum = 0, strange = 0;
#if HKC_FAULT == 1 // plain: the last sum is left out.
    count--;
#endif
    for (int64_t i = threadIdx.x; i < count; i += WIDE_THREADS) sum += sums[i];
#if HKC_FAULT == 2 // plain: only as many numbers as there are threads are looked at.
    numbered = numbered < WIDE_THREADS ? numbered : WIDE_THREADS;
#endif
    for (int64_t i = threadIdx.x; i < numbered; i += WIDE_THREADS) strange += !isfinite(numbers[i]);
    sum = block_sum(sum, (double *)shared);
    strange = block_sum(strange, (double *)shared + WIDE_THREADS / 32);
#if HKC_FAULT != 3 // race: all threads write what one has to.
    if (threadIdx.x != 0) return;
#endif
    const double norm = sqrt(sum);
    clipped->norm = norm;
    clipped->scale = hk_clip_scale(most, norm);
    hk_clip_decide(clipped, isfinite(norm) && strange == 0, skips);
}

} // namespace

void hkc_clip(hkc_lane *lane, hk_clipped *clipped, const double *sums, int64_t count,
              const float *numbers, int64_t numbered, double clip, int64_t skips) {
    hkc_launch(lane, clip_step, 1, WIDE_THREADS, 2 * WIDE_THREADS / 32 * sizeof(double), clipped,
               sums, count, numbers, numbered, clip, skips);
}
