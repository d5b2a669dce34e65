// pair: two bf16 side by side, the operand of bf16 products; and what turns floats and weights into
// pairs. The lower half is the earlier term.
#ifndef HECATE_KERNELS_CPU_PAIR_H
#define HECATE_KERNELS_CPU_PAIR_H

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include "kernels/cpu/real.h"
#include "kernels/cpu/turn.h"

// Arrays of pairs are read as arrays of hk_bf16, and the other way round.
typedef int32_t pair __attribute__((may_alias));
typedef int32_t pairs __attribute__((vector_size(HK_VECTOR_BYTES)));

// Every other one of 64, 32 or 16 bytes of words, and of as many of pairs.
#if HK_VECTOR_BYTES == 64
#define HK_EVEN_LANES 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define HK_ODD_LANES 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define HK_EVEN_WORDS HK_EVEN_LANES, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62
#define HK_ODD_WORDS HK_ODD_LANES, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63
#elif HK_VECTOR_BYTES == 32
#define HK_EVEN_LANES 0, 2, 4, 6, 8, 10, 12, 14
#define HK_ODD_LANES 1, 3, 5, 7, 9, 11, 13, 15
#define HK_EVEN_WORDS HK_EVEN_LANES, 16, 18, 20, 22, 24, 26, 28, 30
#define HK_ODD_WORDS HK_ODD_LANES, 17, 19, 21, 23, 25, 27, 29, 31
#else
#define HK_EVEN_LANES 0, 2, 4, 6
#define HK_ODD_LANES 1, 3, 5, 7
#define HK_EVEN_WORDS HK_EVEN_LANES, 8, 10, 12, 14
#define HK_ODD_WORDS HK_ODD_LANES, 9, 11, 13, 15
#endif

#ifdef __AVX512BF16__

// The processor's own: it rounds after each of the two products or after both, that is its choice.
HK_INLINE vec pairs_multiply_add(vec sum, pair x, pairs y) {
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)_mm512_set1_epi32(x), (__m512bh)y);
}

#else

// Pairs are multiplied part by part: the lower halves, then the upper ones.
#define HK_PAIRS_IN_PARTS

HK_INLINE pairs pairs_part(pairs y, int part) {
    return part == 0 ? y << 16 : y & (int32_t)0xffff0000;
}

// In all lanes. Taken apart as a vector: scalars would have to come back.
HK_INLINE pairs pair_part(pair x, int part) {
    pairs both = (pairs){0} + x;
#ifdef HK_X86
    __asm__ volatile("" : "+v"(both));
#endif
    return pairs_part(both, part);
}

typedef uint32_t bits_of_vec __attribute__((vector_size(HK_VECTOR_BYTES)));

// hk_bf16_round in the upper halves, zeros in the lower ones.
HK_INLINE bits_of_vec vec_round(const float *from) {
    bits_of_vec bits;
    memcpy(&bits, from, sizeof bits);
    const pairs magnitude = (pairs)(bits & 0x7fffffff);
    const bits_of_vec nan = (bits_of_vec)(magnitude > 0x7f800000);
    const bits_of_vec tiny = (bits_of_vec)(magnitude < 0x00800000);
    const bits_of_vec nearest = bits + 0x7fff + (bits >> 16 & 1);
    const bits_of_vec rounded = (nearest & ~nan) | ((bits | 0x00400000) & nan);
    return ((rounded & ~tiny) | (bits & 0x80000000 & tiny)) & 0xffff0000;
}

#endif

HK_INLINE pair pair_of(float low, float high) {
    return (pair)(hk_bf16_round(low).bits | (uint32_t)hk_bf16_round(high).bits << 16);
}

// to[i] = (from[2 i], from[2 i + 1]); behind an odd last one comes zero.
HK_INLINE void pairs_of_row(pair *to, const float *from, int64_t count) {
    int64_t i = 0;
#ifdef __AVX512BF16__
    for (; i + 32 <= count; i += 32) {
        const __m512 low = _mm512_loadu_ps(from + i), high = _mm512_loadu_ps(from + i + 16);
        const __m512bh both = _mm512_cvtne2ps_pbh(high, low);
        memcpy(to + i / 2, &both, sizeof both);
    }
#else
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        const bits_of_vec a = vec_round(from + i), b = vec_round(from + i + lanes);
        const bits_of_vec both = __builtin_shufflevector(a, b, HK_EVEN_LANES) >> 16 |
                                 __builtin_shufflevector(a, b, HK_ODD_LANES);
        memcpy(to + i / 2, &both, sizeof both);
    }
#endif
    for (; i + 2 <= count; i += 2) to[i / 2] = pair_of(from[i], from[i + 1]);
    if (i < count) to[i / 2] = pair_of(from[i], 0);
}

// to[j] = (low[j], high[j])
HK_INLINE void pairs_of_rows(pair *to, const float *low, const float *high, int64_t count) {
    int64_t j = 0;
#ifdef __AVX512BF16__
    // The instruction puts one half behind the other.
    static const int16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i interleave = _mm512_loadu_si512(order);
    for (; j + 16 <= count; j += 16) {
        const __m512bh both =
            _mm512_cvtne2ps_pbh(_mm512_loadu_ps(high + j), _mm512_loadu_ps(low + j));
        _mm512_storeu_si512(to + j, _mm512_permutexvar_epi16(interleave, (__m512i)both));
    }
#else
    for (; j + lanes <= count; j += lanes) {
        const bits_of_vec both = vec_round(low + j) >> 16 | vec_round(high + j);
        memcpy(to + j, &both, sizeof both);
    }
#endif
    for (; j < count; j++) to[j] = pair_of(low[j], high[j]);
}

// panel[i, j] = (from[2 i, j], from[2 i + 1, j]) for `depth` rows, zeros from `columns` on.
HK_INLINE void pack_pairs(pair *panel, const float *from, int64_t row, int64_t depth,
                          int64_t columns) {
    static const float zeros[HK_PANEL];
    const int64_t count = columns < HK_PANEL ? columns : HK_PANEL;
    for (int64_t i = 0; i < depth; i += 2) {
        pair *to = panel + i / 2 * HK_PANEL;
        pairs_of_rows(to, from + i * row, i + 1 < depth ? from + (i + 1) * row : zeros, count);
        for (int64_t j = count; j < HK_PANEL; j++) to[j] = 0;
    }
}

HK_INLINE pair pair_of_weights(hk_bf16 low, hk_bf16 high) {
    return (pair)(low.bits | (uint32_t)high.bits << 16);
}

// The same from a row-major matrix of weights.
HK_INLINE void pack_weights(pair *panel, const hk_bf16 *from, int64_t row, int64_t depth,
                            int64_t columns) {
    const int64_t count = columns < HK_PANEL ? columns : HK_PANEL;
    for (int64_t i = 0; i < depth; i += 2) {
        pair *to = panel + i / 2 * HK_PANEL;
        const hk_bf16 *low = from + i * row, *high = low + row;
        for (int64_t j = 0; j < count; j++) {
            to[j] = pair_of_weights(low[j], i + 1 < depth ? high[j] : (hk_bf16){0});
        }
        for (int64_t j = count; j < HK_PANEL; j++) to[j] = 0;
    }
}

// What follows turns weights: pairs of neighbouring rows become pairs of neighbouring columns.

typedef int16_t words __attribute__((vector_size(HK_VECTOR_BYTES)));

// to[j * to_row + i] = columns 2 j and 2 j + 1 of row i, for `lanes` i and j. Rows lie in pairs: of
// rows 2 i and 2 i + 1 at from + i * from_row.
HK_INLINE void turn_paired_rows(pair *to, int64_t to_row, const pair *from, int64_t from_row) {
    vec rows[lanes];
    for (int i = 0; i < lanes / 2; i++) {
        words left, right;
        memcpy(&left, from + i * from_row, sizeof left);
        memcpy(&right, from + i * from_row + lanes, sizeof right);
        rows[2 * i] = (vec)__builtin_shufflevector(left, right, HK_EVEN_WORDS);
        rows[2 * i + 1] = (vec)__builtin_shufflevector(left, right, HK_ODD_WORDS);
    }
    turn_vectors((float *)to, to_row, rows);
}

// The same from a row-major matrix.
HK_INLINE void turn_rows(pair *to, int64_t to_row, const hk_bf16 *from, int64_t from_row) {
    vec rows[lanes];
    for (int i = 0; i < lanes; i++) memcpy(&rows[i], from + i * from_row, sizeof rows[i]);
    turn_vectors((float *)to, to_row, rows);
}

#endif
