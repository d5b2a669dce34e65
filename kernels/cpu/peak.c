// Multiply-adds for the three instruction sets and two precisions.
#include "kernels/cpu/peak.h"

#include <omp.h>

#include "kernels/cpu/isa.h"

enum { chains = 12, steps = 65536 };

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

// Threads add what they got to `sink`, which stays as it was: each sum is finite.
#define MULTIPLY_ADDS(bits, real)                                                                  \
    double hk_multiply_adds_f##bits(real *sink) {                                                  \
        const enum hk_isa isa = hk_isa();                                                          \
        const real factor = *sink;                                                                 \
        int threads = 0;                                                                           \
        _Pragma("omp parallel") {                                                                  \
            const real total = isa == HK_ISA_AVX512 ? avx512_f##bits(factor)                       \
                               : isa == HK_ISA_AVX2 ? avx2_f##bits(factor)                         \
                                                    : portable_f##bits(factor);                    \
            _Pragma("omp critical") {                                                              \
                *sink += total - total;                                                            \
                threads++;                                                                         \
            }                                                                                      \
        }                                                                                          \
        const int bytes = isa == HK_ISA_AVX512 ? 64 : isa == HK_ISA_AVX2 ? 32 : 16;                \
        return 2.0 * bytes / (int)sizeof(real) * chains * steps * threads;                         \
    }

MULTIPLY_ADDS(32, float)
MULTIPLY_ADDS(64, double)
