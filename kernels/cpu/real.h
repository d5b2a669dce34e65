// real: the types and names that let one source be built for float and double and for each instruction set. Only
// *_cpu.c files include it. The build defines HK_BITS (32 or 64) and HK_ISA_NAME (portable, avx2,
// avx512). Products are built once more, as hk_<name>_bf16, with HK_BITS 32 and HK_OPERAND_BF16: their
// operands are rounded (operand.h); for avx512bf16, too.
#ifndef HECATE_KERNELS_CPU_REAL_H
#define HECATE_KERNELS_CPU_REAL_H

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/observe.h"
#include "kernels/cpu/pretend.h"
#include "kernels/scalar.h"
#include "kernels/types.h"

#if HK_BITS == 32
typedef float real;
#define HK_REAL(name) hk_##name##_f32
#elif HK_BITS == 64
typedef double real;
#define HK_REAL(name) hk_##name##_f64
#else
#error "HK_BITS must be 32 or 64"
#endif

// The widest vector of the instruction set, as a GCC vector type: + - * / work lane by lane. Test builds
// define HK_WIDE and HK_WIDE_BF16 for those of AVX-512 and compile them for AVX2 (cpu/avx512.h).
#if defined(__AVX512F__) || defined(HK_WIDE)
enum { hk_vector_bytes = 64 };
#define HK_VECTOR_BYTES 64
#elif defined(__AVX2__)
enum { hk_vector_bytes = 32 };
#define HK_VECTOR_BYTES 32
#else
enum { hk_vector_bytes = 16 };
#define HK_VECTOR_BYTES 16
#endif

// Whether there are instructions for pairs of bf16 (cpu/pair.h).
#if defined(__AVX512BF16__) || defined(HK_WIDE_BF16)
#define HK_HAS_PAIRS
#endif

typedef real vec __attribute__((vector_size(HK_VECTOR_BYTES)));
enum { lanes = HK_VECTOR_BYTES / sizeof(real) };

#define HK_INLINE static inline __attribute__((always_inline))

HK_INLINE vec vec_load(const real *from) {
    vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

HK_INLINE void vec_store(real *to, vec v) {
    memcpy(to, &v, sizeof v);
}

// One fixed order: the compiler's, for a loop whose length and place it knows.
HK_INLINE real vec_sum(vec v) {
    real part[lanes] __attribute__((aligned(64)));
    real sum = 0;
    memcpy(part, &v, sizeof v);
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < lanes; i++) sum += part[i];
    return sum;
}

// Elements moved by a write of `count` of them: adding reads them first.
#define HK_WRITTEN(count, write) ((count) * ((write) == HK_ADD ? 2 : 1))

// A kernel's public name in this build, the name an observer sees, and the best variant that it has.
#ifdef HK_OPERAND_BF16
#define HK_PUBLIC(name) hk_##name##_bf16
#define HK_LABEL(name) #name "_bf16"
#define HK_BEST(function) function##_avx512bf16
#else
#define HK_PUBLIC(name) HK_REAL(name)
#define HK_LABEL(name) #name
#define HK_BEST(function) function##_avx512
#endif

#define HK_PASTE_(a, b) a##_##b
#define HK_PASTE(a, b) HK_PASTE_(a, b)
#define HK_VARIANT(name) HK_PASTE(HK_PUBLIC(name), HK_ISA_NAME)

// HK_KERNEL(type, name, (parameters), (arguments), work) { body } defines this variant of a kernel.
// Its type is checked against the public declaration. The portable build also defines the public
// function, which calls the variant that hk_isa chose and reports the call to an observer: `work`, by
// the macros of observe.h, says what it does.
#define HK_KERNEL(type, name, parameters, arguments, work)                                         \
    HK_DECLARE_VARIANTS(HK_PUBLIC(name))                                                           \
    HK_DISPATCH(type, HK_LABEL(name), HK_PUBLIC(name), parameters, arguments, work)                \
    type HK_VARIANT(name) parameters

#define HK_DECLARE_VARIANTS(public) HK_DECLARE_VARIANTS_(public)
#define HK_DECLARE_VARIANTS_(public)                                                               \
    extern __typeof__(public) public##_portable, public##_avx2, public##_avx512,                   \
        public##_avx512bf16;

#ifndef HK_DEFINES_PUBLIC
#define HK_DISPATCH(type, label, public, parameters, arguments, work)
#else
#define HK_DISPATCH(type, label, public, parameters, arguments, work)                              \
    HK_DISPATCH_(type, label, public, parameters, arguments, work)
#ifdef HK_X86
#define HK_DISPATCH_(type, label, public, parameters, arguments, work)                             \
    type public parameters {                                                                       \
        HK_OBSERVE(label, work)                                                                    \
        if (HK_PRETENDED(label, work)) return (type)0;                                             \
        switch (hk_isa()) {                                                                        \
        case HK_ISA_AVX512BF16:                                                                    \
            return HK_BEST(public) arguments;                                                      \
        case HK_ISA_AVX512:                                                                        \
            return public##_avx512 arguments;                                                      \
        case HK_ISA_AVX2:                                                                          \
            return public##_avx2 arguments;                                                        \
        default:                                                                                   \
            return public##_portable arguments;                                                    \
        }                                                                                          \
    }
#else
#define HK_DISPATCH_(type, label, public, parameters, arguments, work)                             \
    type public parameters {                                                                       \
        HK_OBSERVE(label, work)                                                                    \
        if (HK_PRETENDED(label, work)) return (type)0;                                             \
        return public##_portable arguments;                                                        \
    }
#endif
#endif

#endif
