// The limit that the products are held against.
#include "bench/kernels/bench.h"

#include "kernels/cpu/peak.h"

double bench_peak(void) {
    static double peak;
    if (peak == 0) peak = hk_peak_f32();
    return peak;
}

double bench_peak_bf16(void) {
    static double peak;
    if (peak == 0) peak = hk_peak_bf16();
    return peak;
}
