// clip on the host: sums in ascending order.
#include "kernels/clip/clip.h"

#include <math.h>

void hk_clip(struct hk_clipped *clipped, const double *sums, int64_t count, const float *numbers,
             int64_t numbered, double clip, int64_t skips) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += sums[i];
    const double norm = sqrt(sum);
    clipped->norm = norm;
    clipped->scale = hk_clip_scale(clip, norm);
    bool finite = isfinite(norm);
    for (int64_t i = 0; i < numbered; i++) finite &= isfinite(numbers[i]) != 0;
    hk_clip_decide(clipped, finite, skips);
}
