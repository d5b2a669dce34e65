// pack: copies into blocks of panel, [depth][HK_PANEL], for the register tile.
#ifndef HECATE_KERNELS_CPU_PACK_H
#define HECATE_KERNELS_CPU_PACK_H

#include "kernels/cpu/real.h"
#include "kernels/cpu/turn.h"

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

// panel[p, j] = from[j * row + p], zeros from `columns` on: the transpose of `columns` rows. `asks`: prefetches the
// rows behind each square.
HK_INLINE void pack_turned(real *panel, const real *from, int64_t row, int64_t depth,
                           int64_t columns, bool asks) {
    const int64_t whole_columns = columns / lanes * lanes;
    const int64_t whole_depth = depth / lanes * lanes;
    for (int64_t j = 0; j < whole_columns; j += lanes) {
        for (int64_t p = 0; p < whole_depth; p += lanes) {
            const real *square = from + j * row + p;
            if (asks) ask_for_rows(square + lanes * row, row * (int64_t)sizeof *from, lanes);
            turn_square(panel + p * HK_PANEL + j, HK_PANEL, square, row);
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
