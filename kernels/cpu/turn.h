// turn: the transpose of a square of lanes x lanes, in registers.
#ifndef HECATE_KERNELS_CPU_TURN_H
#define HECATE_KERNELS_CPU_TURN_H

#include "kernels/cpu/real.h"

// Floats: two rounds inside the 128-bit quarters of a register, which turn squares of 4 x 4, then one or two
// that move whole quarters: all single shuffles, of which the processor does two at a time, unlike
// those with an index register.
#if HK_VECTOR_BYTES == 64 && HK_BITS == 32
#define HK_LOWER 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define HK_UPPER 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define HK_LOWER_PAIRS 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define HK_UPPER_PAIRS 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define HK_EVEN_QUARTERS 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define HK_ODD_QUARTERS 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#elif HK_VECTOR_BYTES == 32 && HK_BITS == 32
#define HK_LOWER 0, 8, 1, 9, 4, 12, 5, 13
#define HK_UPPER 2, 10, 3, 11, 6, 14, 7, 15
#define HK_LOWER_PAIRS 0, 1, 8, 9, 4, 5, 12, 13
#define HK_UPPER_PAIRS 2, 3, 10, 11, 6, 7, 14, 15
#define HK_LOWER_HALVES 0, 1, 2, 3, 8, 9, 10, 11
#define HK_UPPER_HALVES 4, 5, 6, 7, 12, 13, 14, 15
#endif

#if HK_VECTOR_BYTES >= 32 && HK_BITS == 32

// Quarter q of a[i + c] becomes column 4 q + c of rows i .. i + 3, for every fourth i.
HK_INLINE void turn_fours(vec a[lanes]) {
    vec b[lanes];
    for (int i = 0; i < lanes; i += 2) {
        b[i] = __builtin_shufflevector(a[i], a[i + 1], HK_LOWER);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], HK_UPPER);
    }
    for (int i = 0; i < lanes; i += 4) {
        for (int h = 0; h < 2; h++) {
            a[i + 2 * h] = __builtin_shufflevector(b[i + h], b[i + 2 + h], HK_LOWER_PAIRS);
            a[i + 2 * h + 1] = __builtin_shufflevector(b[i + h], b[i + 2 + h], HK_UPPER_PAIRS);
        }
    }
}

#endif

#if HK_VECTOR_BYTES == 64 && HK_BITS == 32

// to[j * to_row + i] = a[i][j]; a is used up.
HK_INLINE void turn_vectors(real *to, int64_t to_row, vec a[lanes]) {
    turn_fours(a);
    for (int c = 0; c < 4; c++) {
        const vec even = __builtin_shufflevector(a[c], a[4 + c], HK_EVEN_QUARTERS);
        const vec odd = __builtin_shufflevector(a[c], a[4 + c], HK_ODD_QUARTERS);
        const vec even8 = __builtin_shufflevector(a[8 + c], a[12 + c], HK_EVEN_QUARTERS);
        const vec odd8 = __builtin_shufflevector(a[8 + c], a[12 + c], HK_ODD_QUARTERS);
        real *column = to + c * to_row;
        vec_store(column, __builtin_shufflevector(even, even8, HK_EVEN_QUARTERS));
        vec_store(column + 4 * to_row, __builtin_shufflevector(odd, odd8, HK_EVEN_QUARTERS));
        vec_store(column + 8 * to_row, __builtin_shufflevector(even, even8, HK_ODD_QUARTERS));
        vec_store(column + 12 * to_row, __builtin_shufflevector(odd, odd8, HK_ODD_QUARTERS));
    }
}

// The same with two lanes for one: to[j * to_row + 2 i .. 2 i + 1] = a[i][2 j .. 2 j + 1], for lanes / 2 i
// and j.
HK_INLINE void turn_double_lanes(real *to, int64_t to_row, const vec a[lanes / 2]) {
    for (int c = 0; c < 2; c++) {
        vec b[lanes / 4]; // Quarter q of b[i] is column 2 q + c of rows 2 i and 2 i + 1.
        for (int i = 0; i < lanes / 4; i++) {
            b[i] = c == 0 ? __builtin_shufflevector(a[2 * i], a[2 * i + 1], HK_LOWER_PAIRS)
                          : __builtin_shufflevector(a[2 * i], a[2 * i + 1], HK_UPPER_PAIRS);
        }
        const vec even = __builtin_shufflevector(b[0], b[1], HK_EVEN_QUARTERS);
        const vec odd = __builtin_shufflevector(b[0], b[1], HK_ODD_QUARTERS);
        const vec even4 = __builtin_shufflevector(b[2], b[3], HK_EVEN_QUARTERS);
        const vec odd4 = __builtin_shufflevector(b[2], b[3], HK_ODD_QUARTERS);
        real *column = to + c * to_row;
        vec_store(column, __builtin_shufflevector(even, even4, HK_EVEN_QUARTERS));
        vec_store(column + 2 * to_row, __builtin_shufflevector(odd, odd4, HK_EVEN_QUARTERS));
        vec_store(column + 4 * to_row, __builtin_shufflevector(even, even4, HK_ODD_QUARTERS));
        vec_store(column + 6 * to_row, __builtin_shufflevector(odd, odd4, HK_ODD_QUARTERS));
    }
}

#elif HK_VECTOR_BYTES == 32 && HK_BITS == 32

// to[j * to_row + i] = a[i][j]; a is used up. Rows are written in ascending order: they may overlap.
HK_INLINE void turn_vectors(real *to, int64_t to_row, vec a[lanes]) {
    turn_fours(a);
    for (int c = 0; c < 4; c++) {
        vec_store(to + c * to_row, __builtin_shufflevector(a[c], a[4 + c], HK_LOWER_HALVES));
    }
    for (int c = 0; c < 4; c++) {
        vec_store(to + (4 + c) * to_row, __builtin_shufflevector(a[c], a[4 + c], HK_UPPER_HALVES));
    }
}

#else

#if HK_VECTOR_BYTES * 8 / HK_BITS == 8
#define HK_LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define HK_UPPER 4, 12, 5, 13, 6, 14, 7, 15
#elif HK_VECTOR_BYTES * 8 / HK_BITS == 4
#define HK_LOWER 0, 4, 1, 5
#define HK_UPPER 2, 6, 3, 7
#else
#define HK_LOWER 0, 2
#define HK_UPPER 1, 3
#endif

// to[j * to_row + i] = a[i][j]: log2(lanes) perfect shuffles; a is used up. Rows are written in ascending
// order: they may overlap.
HK_INLINE void turn_vectors(real *to, int64_t to_row, vec a[lanes]) {
    vec b[lanes];
    for (int step = 1; step < lanes; step *= 2) {
        for (int i = 0; i < lanes / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + lanes / 2], HK_LOWER);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + lanes / 2], HK_UPPER);
        }
        for (int i = 0; i < lanes; i++) a[i] = b[i];
    }
    for (int i = 0; i < lanes; i++) vec_store(to + i * to_row, a[i]);
}

#endif

// Brings a line of each of `count` rows into the second-level cache. Weights are turned a square at a time, a line
// of each of its rows. Without asking ahead so few lines are on their way that memory gives half of what it can.
HK_INLINE void ask_for_rows(const void *rows, int64_t row_bytes, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        __builtin_prefetch((const char *)rows + i * row_bytes, 0, 2);
    }
}

// to[j * to_row + i] = from[i * from_row + j]
HK_INLINE void turn_square(real *to, int64_t to_row, const real *from, int64_t from_row) {
    vec a[lanes];
    for (int i = 0; i < lanes; i++) a[i] = vec_load(from + i * from_row);
    turn_vectors(to, to_row, a);
}

#endif
