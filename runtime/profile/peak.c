// The peak: short runs of multiply-adds, of which the fastest counts: all else that the machine does
// only slows them down.
#include "runtime/profile/own.h"

#include "kernels/cpu/peak.h"

double hrt_profile_peak(enum hrt_precision precision) {
    float single = 0.5f;
    double twice = 0.5, best = 0;
    const int64_t begin = hk_clock();
    for (int64_t now = begin; now < begin + 200000000;) {
        const int64_t start = now;
        const double flops =
            precision == HRT_FP64 ? hk_multiply_adds_f64(&twice) : hk_multiply_adds_f32(&single);
        now = hk_clock();
        const double rate = flops / (double)(now > start ? now - start : 1);
        if (rate > best) best = rate;
    }
    return best;
}
