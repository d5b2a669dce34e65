// left: the left operand as tiles of rows, interleaved: [depth][tile_rows] each (cpu/tile.h).
#ifndef HECATE_KERNELS_MATMUL_LEFT_H
#define HECATE_KERNELS_MATMUL_LEFT_H

#include "kernels/cpu/blocking.h"
#include "kernels/cpu/tile.h"

// Squares turn `lanes` rows; a value that the last ones of a tile write beside it is overwritten by the next step, or
// falls into the gap behind the tile.
enum {
    turned_rows = (tile_rows + lanes - 1) / lanes * lanes,
    interleaved_gap = turned_rows - tile_rows,
    interleaved_max = interleaves ? HK_BLOCK_ROWS_MAX / tile_rows : 0, // Tiles of a block.
    room_size = interleaves ? interleaved_max * (depth_max * tile_rows + interleaved_gap)
                : rounds    ? HK_BLOCK_ROWS_MAX * depth_max
                            : 1,
};

#ifndef HK_PAIRS

// to[p * tile_rows + i] = from[i * row + p], rounded, for `rows` i, at most tile_rows; zeros from `width` to
// `depth`.
HK_INLINE void interleave_tile(real *to, const real *from, int64_t row, int64_t rows, int64_t width,
                               int64_t depth) {
    const real *source[turned_rows]; // Some row where there is none: it is written, but not read.
    for (int64_t i = 0; i < turned_rows; i++) source[i] = from + (i < rows ? i : 0) * row;
    int64_t p = 0;
    for (; p + lanes <= width; p += lanes) {
        // The rows of the next tile, which come from further away than the first-level cache.
        for (int64_t i = 0; i < tile_rows && p % line == 0; i++) {
            __builtin_prefetch(source[i] + tile_rows * row + p);
        }
        for (int64_t i = turned_rows - lanes; i >= 0; i -= lanes) {
            vec a[lanes];
            for (int r = 0; r < lanes; r++) a[r] = vec_round(vec_load(source[i + r] + p));
            turn_vectors(to + p * tile_rows + i, tile_rows, a);
        }
    }
    for (int64_t q = p; q < depth; q++) {
        for (int64_t i = 0; i < tile_rows; i++) {
            to[q * tile_rows + i] = q < width && i < rows ? source[i][q] : 0;
        }
    }
    round_in_place(to + p * tile_rows, (depth - p) * tile_rows);
}

#endif

// `width` terms of `rows` rows, `row` apart: copied to `room`, of room_size elements, or where they lie.
HK_INLINE struct left left_block(real *room, const real *from, int64_t row, int64_t rows,
                                 int64_t width) {
#ifndef HK_PAIRS
    const int64_t depth = stored_rows(width) * stored_terms, tiles = tiles_of(rows);
    const int64_t size = depth * tile_rows + interleaved_gap;
    for (int64_t i = 0; interleaves && i < tiles; i++) {
        const int64_t begin = tile_begin(rows, i, tiles);
        interleave_tile(room + i * size, from + begin * row, row,
                        tile_begin(rows, i + 1, tiles) - begin, width, depth);
    }
    if (interleaves) return (struct left){.at = room, .tile = size};
#endif
    return left_rows(room, from, row, rows, width);
}

#endif
