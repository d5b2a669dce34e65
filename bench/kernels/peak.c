// The limit that the products are held against: independent multiply-adds in registers.
#include "bench/kernels/bench.h"

#include <omp.h>

#include "kernels/cpu/isa.h"

enum { chains = 12, steps = 4096 };

#ifdef __clang__
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HK_UNROLL _Pragma("GCC unroll 16")
#endif

// The factor is not known when compiling, and the result is used: nothing can be left out.
#define PEAK(name, bytes, attributes)                                                              \
    typedef float name##_vec __attribute__((vector_size(bytes)));                                  \
    attributes static float name(float factor) {                                                   \
        name##_vec sum[chains];                                                                    \
        for (int i = 0; i < chains; i++) sum[i] = (name##_vec){0} + (float)i;                      \
        const name##_vec by = (name##_vec){0} + factor;                                            \
        for (int step = 0; step < steps; step++) {                                                 \
            HK_UNROLL for (int i = 0; i < chains; i++) sum[i] = sum[i] * by + by;                  \
        }                                                                                          \
        float total = 0;                                                                           \
        for (int i = 0; i < chains; i++) total += sum[i][0];                                       \
        return total;                                                                              \
    }

PEAK(peak_portable, 16, )
#if defined(__x86_64__)
PEAK(peak_avx2, 32, __attribute__((target("avx2,fma"))))
PEAK(peak_avx512, 64, __attribute__((target("avx512f"))))
#endif

static float peak_of_isa(float factor) {
#if defined(__x86_64__)
    if (hk_isa() == HK_ISA_AVX512) return peak_avx512(factor);
    if (hk_isa() == HK_ISA_AVX2) return peak_avx2(factor);
#endif
    return peak_portable(factor);
}

static void run(void *context) {
    volatile float *sink = context;
    const float factor = *sink;
#pragma omp parallel
    {
        float total = 0;
        for (int i = 0; i < 16; i++) total += peak_of_isa(factor);
#pragma omp critical
        *sink = total - total + 0.5f;
    }
}

double bench_peak(void) {
    static double peak;
    if (peak > 0) return peak;
    const double lanes[] = {[HK_ISA_PORTABLE] = 4, [HK_ISA_AVX2] = 8, [HK_ISA_AVX512] = 16};
    float sink = 0.5f;
    const double flops = 2.0 * lanes[hk_isa()] * chains * steps * 16 * omp_get_max_threads();
    peak = flops / bench_seconds(run, &sink) / 1e9;
    return peak;
}
