// CUDA twin of clip: one block. It reads a number for each tensor and expert, once a step.
#include "kernels/clip/clip.h"

#include <math.h>

#include "kernels/cuda/rows.h"

namespace {

using namespace hkc;

__global__ void __launch_bounds__(WIDE_THREADS)
    clip_step(hk_clipped *clipped, const double *sums, int64_t count, const float *numbers,
              int64_t numbered, double most, int64_t skips) {
    HKC_SHARED(shared);
    double sum = 0, strange = 0;
    for (int64_t i = threadIdx.x; i < count; i += WIDE_THREADS) sum += sums[i];
    for (int64_t i = threadIdx.x; i < numbered; i += WIDE_THREADS) strange += !isfinite(numbers[i]);
    sum = block_sum(sum, (double *)shared);
    strange = block_sum(strange, (double *)shared + WIDE_THREADS / 32);
    if (threadIdx.x != 0) return;
    const double norm = sqrt(sum);
    clipped->norm = norm;
    clipped->scale = hk_clip_scale(most, norm);
    hk_clip_decide(clipped, isfinite(norm) && strange == 0, skips);
}

} // namespace

extern "C" void hkc_clip(struct hkc_lane *lane, struct hk_clipped *clipped, const double *sums,
                         int64_t count, const float *numbers, int64_t numbered, double clip,
                         int64_t skips) {
    hkc_launch(lane, clip_step, 1, WIDE_THREADS, 2 * WIDE_THREADS / 32 * sizeof(double), clipped,
               sums, count, numbers, numbered, clip, skips);
}
