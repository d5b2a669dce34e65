// The limit that the products are held against, timed as they are.
#include "bench/kernels/bench.h"

#include "kernels/cpu/peak.h"

struct peak {
    float sink;
    double flops;
};

static void run(void *context) {
    struct peak *peak = context;
    peak->flops = hk_multiply_adds_f32(&peak->sink);
}

double bench_peak(void) {
    static double peak;
    if (peak > 0) return peak;
    struct peak context = {.sink = 0.5f};
    const double seconds = bench_seconds(run, &context);
    peak = context.flops / seconds / 1e9;
    return peak;
}
