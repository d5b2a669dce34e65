// clip on the host: sums in ascending order.
#include "kernels/clip/clip.h"

#include <math.h>

void hk_clip(struct hk_clipped *clipped, const double *sums, int64_t count, const float *numbers,
             int64_t numbered, double clip) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += sums[i];
    const double norm = sqrt(sum);
    clipped->norm = norm;
    clipped->scale = hk_clip_scale(clip, norm);
    if (!isfinite(norm)) clipped->stopped = 1;
    for (int64_t i = 0; i < numbered; i++) {
        if (!isfinite(numbers[i])) clipped->stopped = 1;
    }
}
