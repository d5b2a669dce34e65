// tile: the register tile under every GEMM, and the preparation of its right operand.
//
// A tile is up to 6 rows by tile_columns of a result, held in registers while the depth passes.
// The right operand is a block of panel: [depth][HK_PANEL], read with unit stride. With AVX-512
// and float a tile is 6 x 64, a whole panel; narrower vectors cut the panel into strips.
//
// Every element is the sum over ascending depth of x * panel, started at 0, then stored or added
// to the destination: its bits do not depend on the tile it falls into.
//
// Depth is counted in steps of operands (cpu/operand.h): in bf16 GEMMs a step is two terms.
//
// A step of a 6 x 2 tile cannot do without 20 instructions: 2 loads, 6 broadcasts, 12 products. Where another
// program uses the other half of the core, each begins half as many as alone, and every further one costs time:
// tiles alone reach 74 GFLOP/s with 26 instructions a step and 83 with 22 there, 97 and 100 on a core of their own
// (Zen 3, peak 103). Interleaved operands are read at distances known to the compiler, so that several steps share
// the instructions that move pointers.
#ifndef HECATE_KERNELS_CPU_TILE_H
#define HECATE_KERNELS_CPU_TILE_H

#include "kernels/cpu/operand.h"

// 16 registers hold 6 x 2 sums and their operands; the 32 of AVX-512 hold 6 x 4.
#define HK_TILE_VECTORS (HK_VECTOR_BYTES == 64 ? 4 : 2)
enum { tile_rows = 6, tile_vectors = HK_TILE_VECTORS, tile_columns = tile_vectors * lanes };

// Tiles across a panel.
enum { strips = HK_PANEL / tile_columns };

// Left operands that are read in place, as attention's are: the including file defines HK_LEFT_IN_PLACE. A file
// compiles the forms of tiles that it uses.
#ifdef HK_LEFT_IN_PLACE
enum { in_place = 1 };
#else
enum { in_place = 0 };
#endif

// Whether GEMMs interleave their left operand. That decides the number of steps per turn of the loop, the number of
// strips that one function computes, and whether the tiles across a panel share the prefetching for a row of tiles.
enum {
    interleaves = HK_VECTOR_BYTES != 64,
    steps_at_once = 4,
    strips_at_once = interleaves ? 4 : 1,
};

// Depth of a block of panel: 64 KiB, which stays in the second-level cache while the rows pass.
enum { depth_max = 65536 / (HK_PANEL * (int)sizeof(operand)) };

// out[i, j] (+)= sum over p of x[i * x_row + p * x_depth] * panel[p, j]
struct tile {
    real *out;
    int64_t out_row; // Distance of rows.
    const operand *x;
    int64_t x_row;
    int64_t x_depth;
    // Or not 0: x holds tiles of rows, [depth][tile_rows] each, x_tile apart. In place, where GEMMs interleave,
    // x holds rows (x_depth 1) or columns of a panel (x_row 1, x_depth HK_PANEL).
    int64_t x_tile;
    const operand *panel;
    int64_t depth;
    // Columns of `out`, at most HK_PANEL. For a function of tile_of: whole strips, or less than one.
    int64_t columns;
    enum hk_write write;
    // Operands of later steps are brought into the second-level cache meanwhile, one cache line
    // per step of depth: tile i asks for the lines at ahead + i * ahead_tile + p * ahead_depth.
    // Tiles from ahead_tiles on ask for nothing new. Where GEMMs interleave, the tiles across a panel share them.
    const operand *ahead;
    int64_t ahead_depth;
    int64_t ahead_tile;
    int64_t ahead_tiles;
    // Or not 0: a turn of the loop asks for two lines, so far apart.
    int64_t ahead_second;
#ifdef HK_WIDENS
    // The panel is one of weights as they lie in memory. Depth then counts its rows, of which each is
    // `stored_terms` steps: terms of x side by side.
    bool is_stored;
#endif
};

// Whether there are tiles of stored weights, beside those of operands.
enum { has_stored = stored_terms != terms && !in_place };

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

#if HK_BITS == 32
#define HK_BROADCAST "vbroadcastss"
#define HK_FMA "vfmadd231ps"
#else
#define HK_BROADCAST "vbroadcastsd"
#define HK_FMA "vfmadd231pd"
#endif

#ifdef __clang__
#define HK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HK_UNROLL _Pragma("GCC unroll 16")
#endif

// sum[v] += x * column[v]. With AVX2 in instructions of ours: a tile's sums take 12 of 16 registers, and in an
// unrolled loop gcc 12 would move some out to memory and back; a sum that waits for memory costs a sixth of a
// tile's time. All of them are fused, as the compiler's are only where it optimizes.
HK_INLINE void tile_row(vec *sum, const operand *x, const operands *column, int vectors) {
#if defined(__FMA__) && HK_VECTOR_BYTES == 32
    vec scalar;
    if (vectors == 2) { // In one statement: fewest moves between registers.
        __asm__(HK_BROADCAST " %[x], %[scalar]\n\t" HK_FMA " %[c0], %[scalar], %[s0]\n\t" HK_FMA
                             " %[c1], %[scalar], %[s1]"
                : [s0] "+x"(sum[0]), [s1] "+x"(sum[1]), [scalar] "=&x"(scalar)
                : [x] "m"(*x), [c0] "x"(column[0]), [c1] "x"(column[1]));
        return;
    }
    __asm__(HK_BROADCAST " %1, %0" : "=x"(scalar) : "m"(*x));
    HK_UNROLL for (int v = 0; v < vectors; v++) {
        __asm__(HK_FMA " %2, %1, %0" : "+x"(sum[v]) : "x"(scalar), "x"(column[v]));
    }
#else
    const operand scalar = *x;
    HK_UNROLL for (int v = 0; v < vectors; v++) {
        sum[v] = HK_MULTIPLY_ADD(sum[v], scalar, column[v]);
    }
#endif
}

// The first `columns` of sums that lie `row` apart.
static __attribute__((noinline)) void tile_write_part(const struct tile *t, const real *sum,
                                                      int64_t row, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        real *to = t->out + i * t->out_row;
        for (int64_t j = 0; j < t->columns; j++) {
            to[j] = (t->write == HK_ADD ? to[j] : 0) + sum[i * row + j];
        }
    }
}

// To store a sum is to add it to 0, so that -0 is never stored.
HK_INLINE void tile_write(const struct tile *t, real *out, vec sum[tile_rows][tile_vectors],
                          int rows, int vectors) {
    const int64_t out_row = t->out_row;
    if (t->columns < vectors * lanes) {
        real part[tile_rows * tile_columns];
        HK_UNROLL for (int i = 0; i < rows; i++) {
            HK_UNROLL for (int v = 0; v < vectors; v++) {
                vec_store(part + (i * vectors + v) * lanes, sum[i][v]);
            }
        }
        tile_write_part(t, part, vectors * lanes, rows);
    } else if (t->write == HK_ADD) {
        HK_UNROLL for (int i = 0; i < rows; i++) {
            HK_UNROLL for (int v = 0; v < vectors; v++) {
                real *to = out + i * out_row + v * lanes;
                vec_store(to, vec_load(to) + sum[i][v]);
            }
        }
    } else {
        HK_UNROLL for (int i = 0; i < rows; i++) {
            HK_UNROLL for (int v = 0; v < vectors; v++) {
                vec_store(out + i * out_row + v * lanes, sum[i][v]);
            }
        }
    }
}

// Adds `stored_terms` steps of weights that lie as their file stores them. Only the panel's columns are taken apart:
// rows are floats, so that a tile of 6 rows has four such instructions among 24 multiplications.
HK_INLINE void tile_stored_step(vec sum[tile_rows][tile_vectors], const operand *x, int64_t x_row,
                                int64_t x_part, const operand *panel, int rows, int vectors) {
#ifdef HK_WIDENS
    HK_UNROLL for (int part = 0; part < stored_terms; part++) {
        vec column[tile_vectors];
        HK_UNROLL for (int v = 0; v < vectors; v++) {
            column[v] = part_of_pairs((pairs)vec_load(panel + v * lanes), part);
        }
        HK_UNROLL for (int i = 0; i < rows; i++) {
            tile_row(sum[i], x + i * x_row + part * x_part, column, vectors);
        }
    }
#else
    // They are operands.
    (void)sum, (void)x, (void)x_row, (void)x_part, (void)panel, (void)rows, (void)vectors;
#endif
}

HK_INLINE void tile_step(vec sum[tile_rows][tile_vectors], const operand *x, int64_t x_row,
                         int64_t x_part, const operand *panel, int rows, int vectors,
                         bool is_stored) {
    if (is_stored) {
        tile_stored_step(sum, x, x_row, x_part, panel, rows, vectors);
        return;
    }
    operands column[tile_vectors];
    HK_UNROLL for (int v = 0; v < vectors; v++) {
        memcpy(&column[v], panel + v * lanes, sizeof column[v]);
    }
    HK_UNROLL for (int i = 0; i < rows; i++) tile_row(sum[i], x + i * x_row, column, vectors);
}

// Place of x: a constant is then one for the compiler, too. With AVX-512: anywhere, by variables.
enum x_place { x_interleaved, x_rows, x_columns, x_anywhere };

HK_INLINE void tile_run(const struct tile *t, int rows, int vectors, enum x_place place,
                        bool asks_twice, bool is_stored) {
    const bool interleaved = place == x_interleaved;
    const int64_t x_row = interleaved || place == x_columns ? 1 : t->x_row;
    const int64_t x_part = interleaved ? tile_rows : 1;
    const int64_t x_depth = interleaved          ? (is_stored ? stored_terms : 1) * tile_rows
                            : place == x_rows    ? 1
                            : place == x_columns ? HK_PANEL
                                                 : t->x_depth;
    const operand *ahead = t->ahead;
    const int64_t ahead_second = t->ahead_second;
    int64_t column = 0;
    do {
        vec sum[tile_rows][tile_vectors] = {0};
        const operand *x = t->x;
        const operand *panel = t->panel + column;
        real *const out = t->out + column;
        // The destination is needed at the end: by then it is here.
        for (int i = 0; i < rows; i++) {
            for (int v = 0; v < vectors; v += 64 / HK_VECTOR_BYTES) {
                __builtin_prefetch(out + i * t->out_row + v * lanes, 1);
            }
        }
        int64_t p = 0;
        for (; place != x_anywhere && p + steps_at_once <= t->depth; p += steps_at_once) {
            __builtin_prefetch(ahead, 0, 2);
            if (asks_twice) __builtin_prefetch(ahead + ahead_second, 0, 2);
            ahead += t->ahead_depth;
            HK_UNROLL for (int u = 0; u < steps_at_once; u++) {
                tile_step(sum, x, x_row, x_part, panel, rows, vectors, is_stored);
                x += x_depth;
                panel += HK_PANEL;
            }
        }
        for (; p < t->depth; p++) {
            __builtin_prefetch(ahead, 0, 2);
            ahead += t->ahead_depth;
            tile_step(sum, x, x_row, x_part, panel, rows, vectors, is_stored);
            x += x_depth;
            panel += HK_PANEL;
        }
        tile_write(t, out, sum, rows, vectors);
        column += tile_columns;
    } while (vectors == tile_vectors && strips_at_once > 1 && column < t->columns);
}

// Functions of their own, for one would have to share the registers. To ask for a second line costs a hundredth of
// the time on a core that is shared; only GEMMs of few rows need it.
#define HK_TILE_FORM(form, rows, vectors, place, asks_twice, is_stored)                            \
    static __attribute__((noinline)) void form##_##rows##_##vectors(const struct tile *t) {        \
        tile_run(t, rows, vectors, place, asks_twice, is_stored);                                  \
    }
#define HK_TILE(rows, vectors)                                                                     \
    HK_TILE_FORM(stored, rows, vectors, interleaves ? x_interleaved : x_anywhere, true, true)      \
    HK_TILE_FORM(few, rows, vectors, x_interleaved, true, false)                                   \
    HK_TILE_FORM(interleaved, rows, vectors, x_interleaved, false, false)                          \
    HK_TILE_FORM(in_rows, rows, vectors, x_rows, false, false)                                     \
    HK_TILE_FORM(in_columns, rows, vectors, x_columns, false, false)                               \
    static __attribute__((noinline)) void tile_##rows##_##vectors(const struct tile *t) {          \
        if (has_stored && tile_is_stored(t)) {                                                     \
            stored_##rows##_##vectors(t);                                                          \
        } else if (!interleaves) {                                                                 \
            tile_run(t, rows, vectors, x_anywhere, false, false);                                  \
        } else if (!in_place && t->ahead_second != 0) {                                            \
            few_##rows##_##vectors(t);                                                             \
        } else if (!in_place) {                                                                    \
            interleaved_##rows##_##vectors(t);                                                     \
        } else if (t->x_depth == 1) {                                                              \
            in_rows_##rows##_##vectors(t);                                                         \
        } else {                                                                                   \
            in_columns_##rows##_##vectors(t);                                                      \
        }                                                                                          \
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

// Where loops take several steps a turn, rows of tiles share what is to be asked for: `size` elements from each of
// `regions` places, of which each serves `rows` of them, `stride` a turn.
struct share {
    int64_t regions, rows, size, stride;
};

// Two lines a turn are the most. Where there are rows of tiles enough, and lines lie side by side, it is less than
// one, so that what comes from far away does not hold up what is here: a half or a quarter, for each of a line's parts
// asks for all of it.
HK_INLINE struct share share_of(const struct tile *t, int64_t tiles) {
    const int64_t part = t->depth * t->ahead_depth, most = 2 * t->ahead_depth;
    struct share s = {.regions = t->ahead_tiles, .rows = 1, .size = part};
    if (t->ahead_tiles > 1 && t->ahead_tile == part) { // They are one.
        s.regions = 1;
        s.size *= t->ahead_tiles;
    }
    if (tiles > s.regions && s.regions > 0) s.rows = tiles / s.regions;
    const int64_t turns = s.rows * strips * t->depth / steps_at_once;
    const int64_t wanted = turns > 0 ? s.size / turns : 0;
    s.stride = t->ahead_depth == line ? line / 4 : t->ahead_depth;
    while (s.stride < wanted && s.stride < t->ahead_depth) s.stride *= 2;
    if (s.stride < wanted) s.stride = wanted < most ? wanted : most;
    return s;
}

// The part of the tiles of row `i` from `strip` on.
HK_INLINE void tile_share_lines(struct tile *t, const operand *ahead, int64_t depth, struct share s,
                                int64_t i, int64_t strip) {
    const int64_t region = i / s.rows;
    const int64_t begin = (i % s.rows * strips + strip) * t->depth / steps_at_once * s.stride;
    const bool asks = region < s.regions && begin < s.size;
    t->ahead_depth = asks ? s.stride : 0;
    t->ahead_second = s.stride > depth ? t->ahead_depth / 2 : 0;
    t->ahead = asks ? ahead + region * t->ahead_tile + begin : t->panel;
}

// `rows` rows are shared out evenly, so that no tile is much smaller than the others: row tile_begin(rows, i, tiles)
// is the first of tile i.
HK_INLINE int64_t tiles_of(int64_t rows) {
    return (rows + tile_rows - 1) / tile_rows;
}

HK_INLINE int64_t tile_begin(int64_t rows, int64_t i, int64_t tiles) {
    return rows * i / tiles;
}

// One block of panel against `rows` rows.
HK_INLINE void tile_rows_run(struct tile t, int64_t rows) {
    const int64_t columns = t.columns, ahead_depth = t.ahead_depth;
    real *const out = t.out;
    const operand *const x = t.x, *const panel = t.panel, *const ahead = t.ahead;
    const bool interleaved = interleaves && t.x_tile != 0;
    const bool is_columns = t.x_row == 1 && t.x_depth == HK_PANEL;
    assert(!interleaves || interleaved || t.x_depth == 1 || is_columns);
    const int64_t tiles = tiles_of(rows);
    const struct share share = share_of(&t, tiles);
    for (int64_t i = 0, begin = 0, end; i < tiles; i++, begin = end) {
        end = tile_begin(rows, i + 1, tiles);
        const bool asks = i < t.ahead_tiles;
        t.x = interleaved ? x + i * t.x_tile : x + begin * t.x_row;
        t.ahead = asks ? ahead + i * t.ahead_tile : panel;
        t.ahead_depth = asks ? ahead_depth : 0;
        for (int64_t j = 0; j < columns; j += t.columns) {
            const int64_t left = columns - j, whole = left / tile_columns;
            const int64_t vectors = whole > 0 ? tile_vectors : (left + lanes - 1) / lanes;
            t.columns = whole == 0               ? left
                        : whole < strips_at_once ? whole * tile_columns
                                                 : strips_at_once * tile_columns;
            t.out = out + begin * t.out_row + j;
            t.panel = panel + j;
            if (interleaves) {
                tile_share_lines(&t, ahead, ahead_depth, share, i, j / tile_columns);
            }
            tile_of[vectors - 1][end - begin - 1](&t);
        }
    }
}

#endif
