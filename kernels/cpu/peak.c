// Multiply-adds for the three instruction sets and two precisions.
#include "kernels/cpu/peak.h"

#include <time.h>

#include "kernels/cpu/isa.h"

enum { chains = 12, steps = 1 << 19, runs = 100 }; // A run takes about a millisecond.

#ifdef __clang__
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HK_UNROLL _Pragma("GCC unroll 16")
#endif

// The factor is not known when compiling, and the result is used: nothing can be left out.
#define CHAINS(name, real, lanes, attributes)                                                      \
    typedef real name##_vec __attribute__((vector_size(lanes * sizeof(real))));                    \
    attributes static real name(real factor) {                                                     \
        name##_vec sum[chains];                                                                    \
        for (int i = 0; i < chains; i++) sum[i] = (name##_vec){0} + (real)i;                       \
        const name##_vec by = (name##_vec){0} + factor;                                            \
        for (int step = 0; step < steps; step++) {                                                 \
            HK_UNROLL for (int i = 0; i < chains; i++) sum[i] = sum[i] * by + by;                  \
        }                                                                                          \
        real total = 0;                                                                            \
        for (int i = 0; i < chains; i++) total += sum[i][0];                                       \
        return total;                                                                              \
    }

CHAINS(portable_f32, float, 4, )
CHAINS(portable_f64, double, 2, )
#if defined(__x86_64__)
#define HK_AVX2 __attribute__((target("avx2,fma")))
#define HK_AVX512 __attribute__((target("avx512f")))
CHAINS(avx2_f32, float, 8, HK_AVX2)
CHAINS(avx2_f64, double, 4, HK_AVX2)
CHAINS(avx512_f32, float, 16, HK_AVX512)
CHAINS(avx512_f64, double, 8, HK_AVX512)
#else
#define avx2_f32 portable_f32
#define avx2_f64 portable_f64
#define avx512_f32 portable_f32
#define avx512_f64 portable_f64
#endif

// Of this thread; seconds.
static double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#define PEAK(bits, real)                                                                           \
    static real run_f##bits(enum hk_isa isa, real factor) {                                        \
        if (isa >= HK_ISA_AVX512) return avx512_f##bits(factor);                                   \
        return isa == HK_ISA_AVX2 ? avx2_f##bits(factor) : portable_f##bits(factor);               \
    }                                                                                              \
                                                                                                   \
    double hk_peak_f##bits(void) {                                                                 \
        const enum hk_isa isa = hk_isa();                                                          \
        const int bytes = isa >= HK_ISA_AVX512 ? 64 : isa == HK_ISA_AVX2 ? 32 : 16;                \
        const double flops = 2.0 * bytes / (int)sizeof(real) * chains * steps;                     \
        double peak = 0;                                                                           \
        _Pragma("omp parallel reduction(+ : peak)") {                                              \
            volatile real sink = (real)0.5;                                                        \
            double best = 1e30, now = processor_time();                                            \
            for (int i = 0; i < runs; i++) {                                                       \
                const double start = now;                                                          \
                sink = run_f##bits(isa, sink) > 0 ? (real)0.5 : (real)0.25;                        \
                now = processor_time();                                                            \
                if (now - start < best) best = now - start;                                        \
            }                                                                                      \
            peak = 1e-9 * flops / best;                                                            \
        }                                                                                          \
        return peak;                                                                               \
    }

PEAK(32, float)
PEAK(64, double)
