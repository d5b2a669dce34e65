// pack: copies into blocks of panel, [depth][HK_PANEL], for the register tile.
#ifndef HECATE_KERNELS_CPU_PACK_H
#define HECATE_KERNELS_CPU_PACK_H

#include "kernels/cpu/real.h"

// panel[p, j] = from[p * row + j], zeros from `columns` on.
HK_INLINE void pack_panel(real *panel, const real *from, int64_t row, int64_t depth,
                          int64_t columns) {
    if (columns >= HK_PANEL) {
        for (int64_t p = 0; p < depth; p++) {
            memcpy(panel + p * HK_PANEL, from + p * row, HK_PANEL * sizeof *panel);
        }
        return;
    }
    for (int64_t p = 0; p < depth; p++) {
        real *to = panel + p * HK_PANEL;
        for (int64_t j = 0; j < columns; j++) to[j] = from[p * row + j];
        for (int64_t j = columns; j < HK_PANEL; j++) to[j] = 0;
    }
}

#if HK_VECTOR_BYTES == 64 && HK_BITS == 32
#define HK_LOWER 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HK_UPPER 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif HK_VECTOR_BYTES * 8 / HK_BITS == 8
#define HK_LOWER 0, 8, 1, 9, 2, 10, 3, 11
#define HK_UPPER 4, 12, 5, 13, 6, 14, 7, 15
#elif HK_VECTOR_BYTES * 8 / HK_BITS == 4
#define HK_LOWER 0, 4, 1, 5
#define HK_UPPER 2, 6, 3, 7
#else
#define HK_LOWER 0, 2
#define HK_UPPER 1, 3
#endif

// A square of lanes x lanes, turned: log2(lanes) perfect shuffles of its rows.
HK_INLINE void turn_square(real *to, int64_t to_row, const real *from, int64_t from_row) {
    vec a[lanes], b[lanes];
    for (int i = 0; i < lanes; i++) a[i] = vec_load(from + i * from_row);
    for (int step = 1; step < lanes; step *= 2) {
        for (int i = 0; i < lanes / 2; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + lanes / 2], HK_LOWER);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + lanes / 2], HK_UPPER);
        }
        for (int i = 0; i < lanes; i++) a[i] = b[i];
    }
    for (int i = 0; i < lanes; i++) vec_store(to + i * to_row, a[i]);
}

// panel[p, j] = from[j * row + p], zeros from `columns` on: the transpose of `columns` rows.
HK_INLINE void pack_turned(real *panel, const real *from, int64_t row, int64_t depth,
                           int64_t columns) {
    const int64_t whole_columns = columns / lanes * lanes;
    const int64_t whole_depth = depth / lanes * lanes;
    for (int64_t j = 0; j < whole_columns; j += lanes) {
        for (int64_t p = 0; p < whole_depth; p += lanes) {
            turn_square(panel + p * HK_PANEL + j, HK_PANEL, from + j * row + p, row);
        }
    }
    for (int64_t p = 0; p < depth; p++) {
        real *to = panel + p * HK_PANEL;
        const int64_t done = p < whole_depth ? whole_columns : 0;
        for (int64_t j = done; j < columns; j++) to[j] = from[j * row + p];
        for (int64_t j = columns; j < HK_PANEL; j++) to[j] = 0;
    }
}

#endif
