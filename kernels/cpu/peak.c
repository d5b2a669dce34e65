// Multiply-adds for the three instruction sets and two precisions, and the bf16 ones.
#include "kernels/cpu/peak.h"

#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/bf16.h"
#include "kernels/cpu/isa.h"

enum { chains = 12, steps = 1 << 19, runs = 100 }; // A run takes about a millisecond.

// bf16 multiply-adds take longer, so more of them are under way; AVX-512 has the registers.
enum { bf16_chains = 24, bf16_steps = steps / 2 };

#ifdef __clang__
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HK_UNROLL _Pragma("GCC unroll 24")
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

__attribute__((target("avx512f,avx512bf16"))) static float avx512bf16(float factor) {
    __m512 sum[bf16_chains];
    const __m512bh by = (__m512bh)_mm512_castps_si512(_mm512_set1_ps(factor));
    for (int i = 0; i < bf16_chains; i++) sum[i] = _mm512_set1_ps((float)i);
    for (int step = 0; step < bf16_steps; step++) {
        HK_UNROLL for (int i = 0; i < bf16_chains; i++) sum[i] = _mm512_dpbf16_ps(sum[i], by, by);
    }
    float total = 0;
    for (int i = 0; i < bf16_chains; i++) total += sum[i][0];
    return total;
}
#else
#define avx512bf16 portable_f32
#define avx2_f32 portable_f32
#define avx2_f64 portable_f64
#define avx512_f32 portable_f32
#define avx512_f64 portable_f64
#endif

// This thread's; seconds.
static double processor_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The rate that all threads together reach: `run` counts `flops` each time.
static double peak_of(double (*run)(double factor), double flops) {
    double peak = 0;
#pragma omp parallel reduction(+ : peak)
    {
        volatile double sink = 0.5;
        double seconds[runs], now = processor_time();
        for (int i = 0; i < runs; i++) {
            const double start = now;
            sink = run(sink) > 0 ? 0.5 : 0.25;
            now = processor_time();
            seconds[i] = now - start;
        }
        qsort(seconds, runs, sizeof *seconds, ascending);
        peak = 1e-9 * flops / seconds[runs / 10];
    }
    return peak;
}

// The measured form: vectors of AVX-512 that are made of AVX2's (cpu/avx512.h) reach its peak.
static enum hk_isa measured(void) {
#ifdef HK_WIDE
    if (hk_isa() > HK_ISA_AVX2) return HK_ISA_AVX2;
#endif
    return hk_isa();
}

static double run_f32(double factor) {
    const enum hk_isa isa = measured();
    if (isa >= HK_ISA_AVX512) return (double)avx512_f32((float)factor);
    return (double)(isa == HK_ISA_AVX2 ? avx2_f32((float)factor) : portable_f32((float)factor));
}

static double run_f64(double factor) {
    const enum hk_isa isa = measured();
    if (isa >= HK_ISA_AVX512) return avx512_f64(factor);
    return isa == HK_ISA_AVX2 ? avx2_f64(factor) : portable_f64(factor);
}

static double run_bf16(double factor) {
    return (double)avx512bf16((float)factor);
}

static double flops_of(int element_bytes) {
    const enum hk_isa isa = measured();
    const int bytes = isa >= HK_ISA_AVX512 ? 64 : isa == HK_ISA_AVX2 ? 32 : 16;
    return 2.0 * bytes / element_bytes * chains * steps;
}

double hk_peak_f32(void) {
    return peak_of(run_f32, flops_of(sizeof(float)));
}

double hk_peak_f64(void) {
    return peak_of(run_f64, flops_of(sizeof(double)));
}

double hk_peak_bf16(void) {
    if (measured() < HK_ISA_AVX512BF16) return hk_peak_f32();
    return peak_of(run_bf16, 2.0 * 64 / sizeof(hk_bf16) * bf16_chains * bf16_steps);
}
