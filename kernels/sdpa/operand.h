// operand: what the products of sdpa take, real numbers or (with HK_TILE_BF16) pairs of bf16. A step of
// depth is `terms` terms; everything here is as deep as `steps` of its width says.
#ifndef HECATE_KERNELS_SDPA_OPERAND_H
#define HECATE_KERNELS_SDPA_OPERAND_H

#include "kernels/cpu/pack.h"
#include "kernels/cpu/tile.h"

#ifdef HK_TILE_BF16
enum { terms = 2 };
#else
enum { terms = 1 };
#endif

HK_INLINE int64_t steps(int64_t count) {
    return (count + terms - 1) / terms;
}

// Columns of the widest rows that the scratch holds whole; of wider ones, so many at a time.
enum { width_max = 65536 / (HK_PANEL * (int)sizeof(real)) };

// Rows as left operand of a tile.
struct left {
    const operand *at;
    int64_t row;
};

#ifdef HK_TILE_BF16

// Rounded into `room` (HK_PANEL rows of width_max terms).
HK_INLINE struct left left_rows(real *room, const real *from, int64_t row, int64_t rows,
                                int64_t width) {
    for (int64_t i = 0; i < rows; i++) {
        pairs_of_row((pair *)room + i * steps(width), from + i * row, width);
    }
    return (struct left){(const pair *)room, steps(width)};
}

// panel[p, j] = terms p of row j, zeros from `rows` on.
HK_INLINE void pack_rows_turned(real *panel, const real *from, int64_t row, int64_t width,
                                int64_t rows) {
    real rounded[HK_PANEL * width_max / terms] __attribute__((aligned(64)));
    left_rows(rounded, from, row, rows, width);
    pack_turned(panel, rounded, steps(width), steps(width), rows);
}

// panel[p, j] = rows `terms` p and following, at column j: zeros from `columns` on.
HK_INLINE void pack_rows(real *panel, const real *from, int64_t row, int64_t rows,
                         int64_t columns) {
    pack_pairs((pair *)panel, from, row, rows, columns);
}

// One step of each lane from `terms` vectors.
HK_INLINE void store_steps(operand *to, const vec *term) {
    pairs_of_rows(to, (const float *)&term[0], (const float *)&term[1], lanes);
}

// The steps along a vector.
HK_INLINE void store_along(operand *to, vec v) {
#ifdef __AVX512BF16__
    const __m256bh half = _mm512_cvtneps_pbh((__m512)v);
    memcpy(to, &half, sizeof half);
#else
    pairs_of_row(to, (const float *)&v, lanes);
#endif
}

#else

HK_INLINE struct left left_rows(real *room, const real *from, int64_t row, int64_t rows,
                                int64_t width) {
    (void)room, (void)rows, (void)width; // They are read where they lie.
    return (struct left){from, row};
}

HK_INLINE void pack_rows_turned(real *panel, const real *from, int64_t row, int64_t width,
                                int64_t rows) {
    pack_turned(panel, from, row, width, rows);
}

HK_INLINE void pack_rows(real *panel, const real *from, int64_t row, int64_t rows,
                         int64_t columns) {
    pack_panel(panel, from, row, rows, columns);
}

HK_INLINE void store_steps(operand *to, const vec *term) {
    vec_store(to, term[0]);
}

HK_INLINE void store_along(operand *to, vec v) {
    (void)to, (void)v; // What store_steps wrote serves as rows, too.
}

#endif

#endif
