// tile: the register tile under every matrix product, and what prepares its right operand.
//
// A tile is up to 6 rows by tile_columns of a result, held in registers while the depth passes.
// The right operand is a block of panel: [depth][HK_PANEL], read with unit stride. With AVX-512
// and float a tile is 6 x 64, a whole panel; narrower vectors cut the panel into strips.
//
// Every element is the sum over ascending depth of x * panel, started at 0, then stored or added
// to the destination: its bits do not depend on the tile it falls into.
//
// Depth is counted in steps of operands (cpu/operand.h): in bf16 products a step is two terms.
#ifndef HECATE_KERNELS_CPU_TILE_H
#define HECATE_KERNELS_CPU_TILE_H

#include "kernels/cpu/operand.h"

// 16 registers hold 6 x 2 sums and their operands; the 32 of AVX-512 hold 6 x 4.
#define HK_TILE_VECTORS (HK_VECTOR_BYTES == 64 ? 4 : 2)
enum { tile_rows = 6, tile_vectors = HK_TILE_VECTORS, tile_columns = tile_vectors * lanes };

// Tiles across a panel. With AVX2 they share what a row of tiles asks for.
enum { strips = HK_PANEL / tile_columns, shares_lines = HK_VECTOR_BYTES == 32 };

// Depth of a block of panel: 64 KiB, which stays in the second-level cache while the rows pass.
enum { depth_max = 65536 / (HK_PANEL * (int)sizeof(operand)) };

// out[i, j] (+)= sum over p of x[i * x_row + p * x_depth] * panel[p, j]
struct tile {
    real *out;
    int64_t out_row; // Distance of rows.
    const operand *x;
    int64_t x_row;
    int64_t x_depth;
    const operand *panel;
    int64_t depth;
    int64_t columns; // Of `out`, at most HK_PANEL.
    enum hk_write write;
    // What will be needed next is brought into the second-level cache meanwhile, one cache line
    // per step of depth: tile i asks for the lines at ahead + i * ahead_tile + p * ahead_depth.
    // Tiles from ahead_tiles on ask for nothing new.
    const operand *ahead;
    int64_t ahead_depth;
    int64_t ahead_tile;
    int64_t ahead_tiles;
#ifdef HK_WIDENS
    // The panel is one of weights as they lie in memory. Depth then counts its rows, of which each is
    // `stored_terms` steps: terms of x side by side.
    bool is_stored;
#endif
};

HK_INLINE bool tile_is_stored(const struct tile *t) {
#ifdef HK_WIDENS
    return t->is_stored;
#else
    return (void)t, false; // Stored weights are operands.
#endif
}

// For a panel of weights as they lie in memory.
HK_INLINE void tile_set_stored(struct tile *t, bool is_stored) {
#ifdef HK_WIDENS
    t->is_stored = is_stored;
#else
    (void)t, (void)is_stored;
#endif
}

// Elements of a cache line, and lines of a panel's row.
enum { line = 64 / sizeof(operand), panel_lines = HK_PANEL / line };

#ifdef __clang__
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HK_UNROLL _Pragma("GCC unroll 16")
#endif

HK_INLINE void tile_write_row(real *out, const vec *sum, int vectors, int64_t columns,
                              enum hk_write write) {
    if (columns >= vectors * lanes) {
        HK_UNROLL for (int v = 0; v < vectors; v++) {
            const vec old = write == HK_ADD ? vec_load(out + v * lanes) : (vec){0};
            vec_store(out + v * lanes, old + sum[v]);
        }
        return;
    }
    real row[tile_columns];
    HK_UNROLL for (int v = 0; v < vectors; v++) vec_store(row + v * lanes, sum[v]);
    for (int64_t j = 0; j < columns; j++) out[j] = (write == HK_ADD ? out[j] : 0) + row[j];
}

// Of weights as they lie in their panel, those at one place of it: `stored_terms` steps. Only the columns are
// taken apart: rows are floats, so that a tile of 6 rows has four such instructions among 24 products.
HK_INLINE void tile_stored_steps(vec sum[tile_rows][tile_vectors], const operand *x, int64_t x_row,
                                 const operand *panel, int rows, int vectors) {
#ifdef HK_WIDENS
    HK_UNROLL for (int part = 0; part < stored_terms; part++) {
        vec column[tile_vectors];
        HK_UNROLL for (int v = 0; v < vectors; v++) {
            column[v] = part_of_pairs((pairs)vec_load(panel + v * lanes), part);
        }
        HK_UNROLL for (int i = 0; i < rows; i++) {
            const real scalar = x[i * x_row + part];
            HK_UNROLL for (int v = 0; v < vectors; v++) sum[i][v] += scalar * column[v];
        }
    }
#else
    (void)sum, (void)x, (void)x_row, (void)panel, (void)rows, (void)vectors; // They are operands.
#endif
}

HK_INLINE void tile_run(const struct tile *t, int rows, int vectors, bool is_stored) {
    vec sum[tile_rows][tile_vectors] = {0};
    const operand *x = t->x;
    const operand *panel = t->panel;
    const operand *ahead = t->ahead;
    const int64_t x_row = t->x_row;
    // The destination is needed at the end: by then it is here.
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors; v++) {
            __builtin_prefetch(t->out + i * t->out_row + v * lanes, 1);
        }
    }
    for (int64_t p = 0; p < t->depth; p++) {
        operands column[tile_vectors];
        __builtin_prefetch(ahead, 0, 2);
        ahead += t->ahead_depth;
        if (is_stored) tile_stored_steps(sum, x, x_row, panel, rows, vectors);
        HK_UNROLL for (int v = 0; v < vectors; v++) {
            memcpy(&column[v], panel + v * lanes, sizeof column[v]);
        }
        HK_UNROLL for (int i = 0; i < rows && !is_stored; i++) {
            const operand scalar = x[i * x_row];
            HK_UNROLL for (int v = 0; v < vectors; v++) {
                sum[i][v] = HK_MULTIPLY_ADD(sum[i][v], scalar, column[v]);
            }
        }
        x += t->x_depth;
        panel += HK_PANEL;
    }
    HK_UNROLL for (int i = 0; i < rows; i++) {
        tile_write_row(t->out + i * t->out_row, sum[i], vectors, t->columns, t->write);
    }
}

// Two functions, for one would have to share the registers.
#define HK_TILE(rows, vectors)                                                                     \
    static __attribute__((noinline)) void stored_##rows##_##vectors(const struct tile *t) {        \
        tile_run(t, rows, vectors, true);                                                          \
    }                                                                                              \
    static __attribute__((noinline)) void tile_##rows##_##vectors(const struct tile *t) {          \
        if (tile_is_stored(t)) {                                                                   \
            stored_##rows##_##vectors(t);                                                          \
            return;                                                                                \
        }                                                                                          \
        tile_run(t, rows, vectors, false);                                                         \
    }
#define HK_TILES(vectors)                                                                          \
    HK_TILE(1, vectors)                                                                            \
    HK_TILE(2, vectors)                                                                            \
    HK_TILE(3, vectors)                                                                            \
    HK_TILE(4, vectors)                                                                            \
    HK_TILE(5, vectors)                                                                            \
    HK_TILE(6, vectors)
#define HK_TILE_NAMES(vectors)                                                                     \
    {                                                                                              \
        tile_1_##vectors, tile_2_##vectors, tile_3_##vectors, tile_4_##vectors, tile_5_##vectors,  \
            tile_6_##vectors                                                                       \
    }

HK_TILES(1)
#if HK_TILE_VECTORS >= 2
HK_TILES(2)
#endif
#if HK_TILE_VECTORS >= 4
HK_TILES(3)
HK_TILES(4)
#endif

// tile_of[vectors - 1][rows - 1]
static void (*const tile_of[tile_vectors][tile_rows])(const struct tile *) = {
    HK_TILE_NAMES(1),
#if HK_TILE_VECTORS >= 2
    HK_TILE_NAMES(2),
#endif
#if HK_TILE_VECTORS >= 4
    HK_TILE_NAMES(3),
    HK_TILE_NAMES(4),
#endif
};

// Lines side by side, from `ahead` on, which `tiles` tiles share that cut a panel into strips: each asks for
// less than one per step, so that what comes from far away does not hold up what is here. `i`: of t.
HK_INLINE void tile_share_lines(struct tile *t, const operand *ahead, int64_t i, int64_t tiles) {
    int64_t share = line;
    while (share > 1 && t->ahead_tiles * share > tiles) share /= 2;
    const bool asks = i / share < t->ahead_tiles;
    t->ahead_depth = asks ? line / share : 0;
    t->ahead = asks ? ahead + i / share * t->ahead_tile : t->panel;
    t->ahead += i % share * t->depth * t->ahead_depth;
}

// One block of panel against `rows` rows, shared out evenly so that no tile is much smaller than
// the others.
HK_INLINE void tile_rows_run(struct tile t, int64_t rows) {
    const int64_t columns = t.columns, ahead_depth = t.ahead_depth;
    real *const out = t.out;
    const operand *const panel = t.panel, *const ahead = t.ahead;
    const int64_t tiles = (rows + tile_rows - 1) / tile_rows;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t begin = rows * i / tiles;
        const int64_t count = rows * (i + 1) / tiles - begin;
        const operand *const x = t.x;
        const bool asks = i < t.ahead_tiles;
        t.ahead = asks ? ahead + i * t.ahead_tile : panel;
        t.ahead_depth = asks ? ahead_depth : 0;
        for (int64_t j = 0; j < columns; j += tile_columns) {
            const int64_t left = columns - j;
            const int64_t vectors = left < tile_columns ? (left + lanes - 1) / lanes : tile_vectors;
            t.out = out + begin * t.out_row + j;
            t.panel = panel + j;
            t.columns = left;
            t.x = x + begin * t.x_row;
            if (shares_lines && ahead_depth == line) {
                tile_share_lines(&t, ahead, i * strips + j / tile_columns, tiles * strips);
            }
            tile_of[vectors - 1][count - 1](&t);
        }
        t.x = x;
    }
}

#endif
