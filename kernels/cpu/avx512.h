// avx512: the instructions of AVX-512 beyond arithmetic on vector types: each function is one of them.
//
// In test builds with HECATE_WIDE it is plain C that computes as the instruction's documentation
// says (HK_WIDE): the AVX-512 variants are then compiled for AVX2, their vectors still 64 bytes wide,
// so that their logic runs, and under sanitizers, on processors without AVX-512.
#ifndef HECATE_KERNELS_CPU_AVX512_H
#define HECATE_KERNELS_CPU_AVX512_H

#include "kernels/bf16.h"
#include "kernels/cpu/real.h"

#if HK_VECTOR_BYTES == 64 && HK_BITS == 32

#ifdef HK_WIDE

typedef int32_t wide_bits __attribute__((vector_size(64)));

// a where `where` is all ones, b where it is 0.
HK_INLINE vec wide_select(wide_bits where, vec a, vec b) {
    return (vec)((where & (wide_bits)a) | (~where & (wide_bits)b));
}

// The larger one; b where either is NaN, or both are zeros.
HK_INLINE vec avx512_max(vec a, vec b) {
    return wide_select(a > b, a, b);
}

// The nearest integer, ties to even.
HK_INLINE vec avx512_round(vec x) {
    for (int i = 0; i < lanes; i++) x[i] = __builtin_roundevenf(x[i]);
    return x;
}

// x 2^floor(power), rounded once. NaN where either is, and no power is infinite.
HK_INLINE vec avx512_scale(vec x, vec power) {
    for (int i = 0; i < lanes; i++) {
        const float within = fminf(fmaxf(power[i], -1000), 1000); // Beyond every exponent.
        x[i] = power[i] != power[i] ? power[i] : ldexpf(x[i], (int)floorf(within));
    }
    return x;
}

#else

#include <immintrin.h>

HK_INLINE vec avx512_max(vec a, vec b) {
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
}

HK_INLINE vec avx512_round(vec x) {
    return (vec)_mm512_roundscale_ps((__m512)x, 0);
}

HK_INLINE vec avx512_scale(vec x, vec power) {
    return (vec)_mm512_scalef_ps((__m512)x, (__m512)power);
}

#endif

#ifdef HK_HAS_PAIRS

typedef int32_t wide_pairs __attribute__((vector_size(64)));
typedef int16_t wide_words __attribute__((vector_size(64)));
typedef int16_t half_words __attribute__((vector_size(32)));

#ifdef HK_WIDE

HK_INLINE vec avx512_load(const float *from) {
    return vec_load(from);
}

HK_INLINE wide_words avx512_load_words(const int16_t *from) {
    wide_words words;
    memcpy(&words, from, sizeof words);
    return words;
}

HK_INLINE void avx512_store_words(void *to, wide_words words) {
    memcpy(to, &words, sizeof words);
}

// Denormal numbers become 0 with their sign.
HK_INLINE vec wide_flush(vec x) {
    const wide_bits bits = (wide_bits)x, tiny = (bits & 0x7f800000) == 0;
    return (vec)(bits & (~tiny | INT32_MIN));
}

HK_INLINE vec wide_multiply_add(vec sum, wide_pairs x, wide_pairs y) {
    // Fused, as -march says; the product alone would be exact but at the ends of the range.
    return wide_flush(wide_flush(sum) + wide_flush((vec)x) * wide_flush((vec)y));
}

// sum + upper x upper y, then + lower x lower y.
HK_INLINE vec avx512_dot_pairs(vec sum, wide_pairs x, wide_pairs y) {
    sum = wide_multiply_add(sum, x & (int32_t)0xffff0000, y & (int32_t)0xffff0000);
    return wide_multiply_add(sum, x << 16, y << 16);
}

// The bits of x, rounded to bf16 as hk_bf16_round does.
HK_INLINE half_words avx512_round_words(vec x) {
    half_words rounded;
    for (int i = 0; i < lanes; i++) rounded[i] = (int16_t)hk_bf16_round(x[i]).bits;
    return rounded;
}

// Those of `low`, then those of `high`.
HK_INLINE wide_words avx512_round_two(vec low, vec high) {
    const half_words half[2] = {avx512_round_words(low), avx512_round_words(high)};
    wide_words both;
    memcpy(&both, half, sizeof both);
    return both;
}

// Lane i is lane order[i] of x.
HK_INLINE wide_words avx512_permute(wide_words x, wide_words order) {
    wide_words permuted;
    for (int i = 0; i < 2 * lanes; i++) permuted[i] = x[order[i] & (2 * lanes - 1)];
    return permuted;
}

#else

// As memcpy, but gcc then allocates other registers around it.
HK_INLINE vec avx512_load(const float *from) {
    return (vec)_mm512_loadu_ps(from);
}

HK_INLINE wide_words avx512_load_words(const int16_t *from) {
    return (wide_words)_mm512_loadu_si512(from);
}

HK_INLINE void avx512_store_words(void *to, wide_words words) {
    _mm512_storeu_si512(to, (__m512i)words);
}

HK_INLINE vec avx512_dot_pairs(vec sum, wide_pairs x, wide_pairs y) {
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
}

HK_INLINE half_words avx512_round_words(vec x) {
    return (half_words)_mm512_cvtneps_pbh((__m512)x);
}

HK_INLINE wide_words avx512_round_two(vec low, vec high) {
    return (wide_words)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

HK_INLINE wide_words avx512_permute(wide_words x, wide_words order) {
    return (wide_words)_mm512_permutexvar_epi16((__m512i)order, (__m512i)x);
}

#endif

#endif

#endif

#endif
