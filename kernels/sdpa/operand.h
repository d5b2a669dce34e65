// operand: how sdpa prepares the operands of its GEMMs, beside those of cpu/operand.h.
#ifndef HECATE_KERNELS_SDPA_OPERAND_H
#define HECATE_KERNELS_SDPA_OPERAND_H

#define HK_LEFT_IN_PLACE
#include "kernels/cpu/operand.h"
#include "kernels/cpu/tile.h"

// Columns of the widest rows that the scratch holds whole; of wider ones, so many at a time.
enum { width_max = 65536 / (HK_PANEL * (int)sizeof(real)) };

#ifdef HK_PAIRS

// panel[p, j] = terms p of row j, zeros from `rows` on.
HK_INLINE void pack_rows_turned(real *panel, const real *from, int64_t row, int64_t width,
                                int64_t rows) {
    real rounded[HK_PANEL * width_max / terms] __attribute__((aligned(64)));
    left_rows(rounded, from, row, rows, width);
    pack_turned(panel, rounded, steps(width), steps(width), rows, false);
}

// One step of each lane from `terms` vectors.
HK_INLINE void store_steps(operand *to, const vec *term) {
    round_step(to, (const float *)&term[0], (const float *)&term[1], lanes);
}

// The steps along a vector.
HK_INLINE void store_along(operand *to, vec v) {
    const half_words half = avx512_round_words(v);
    memcpy(to, &half, sizeof half);
}

#else

HK_INLINE void pack_rows_turned(real *panel, const real *from, int64_t row, int64_t width,
                                int64_t rows) {
    pack_turned(panel, from, row, width, rows, false);
    round_in_place(panel, width * HK_PANEL);
}

HK_INLINE void store_steps(operand *to, const vec *term) {
    vec_store(to, vec_round(term[0]));
}

HK_INLINE void store_along(operand *to, vec v) {
    (void)to, (void)v; // The rows of store_steps serve as rows, too.
}

#endif

#endif
