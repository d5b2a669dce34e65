// The matrix products: blocks of panel against register tiles (cpu/tile.h).
//
// A block of panel is 64 columns by depth_max: it stays in the second-level cache while the rows
// of a work item stream past. nn reads weights that already lie as panels in place; nt turns them
// on the way, tn copies both operands. Either is repaid by the rows that share the block.
#include "kernels/matmul/product.h"

#include "kernels/cpu/pack.h"
#include "kernels/cpu/tile.h"
#include "kernels/matmul/walk.h"

enum { precision = HK_BITS == 32 ? HK_F32 : HK_F64 };

// tn: columns of A are copied as tiles of [depth][tile_rows], tile_size apart.
enum {
    turned_depth = depth_max / 2, // The panel block stays in the first-level cache.
    copied_columns = 8,           // Columns that one copy moves, though a tile has only 6.
    copied_gap = copied_columns - tile_rows,
    tile_size = turned_depth * tile_rows + copied_gap,
};

// Rows [r0, r1) of C, panels [j0, j1) of B.
static void nn_items(real *c, const real *a, const real *b, const struct product *p, int64_t r0,
                     int64_t r1, int64_t j0, int64_t j1) {
    real packed[depth_max * HK_PANEL] __attribute__((aligned(64)));
    for (int64_t begin = 0; begin == 0 || begin < p->k; begin += depth_max) {
        const int64_t depth = smaller(p->k - begin, depth_max);
        for (int64_t j = j0; j < j1; j++) {
            const int64_t columns = smaller(p->n - j * HK_PANEL, HK_PANEL);
            const real *panel = b + (j * p->k + begin) * HK_PANEL;
            if (p->layout == HK_ROWS) {
                pack_panel(packed, b + begin * p->n + j * HK_PANEL, p->n, depth, columns);
                panel = packed;
            }
            const struct tile tile = {
                .ahead = panel + p->k * HK_PANEL, // The next panel; HK_ROWS is not worth it.
                .ahead_depth = line,
                .ahead_tile = depth * line,
                .ahead_tiles = p->layout == HK_PANELS && j + 1 < j1 ? panel_lines : 0,
                .out = c + r0 * p->n + j * HK_PANEL,
                .out_row = p->n,
                .x = a + r0 * p->k + begin,
                .x_row = p->k,
                .x_depth = 1,
                .panel = panel,
                .depth = depth,
                .columns = columns,
                .write = begin > 0 ? HK_ADD : p->write,
            };
            tile_rows_run(tile, r1 - r0);
        }
    }
}

// Rows of B [64 j, ..) as columns, columns of B [begin, begin + depth) as depth.
static void turn_block(real *packed, const real *b, const struct product *p, int64_t j,
                       int64_t begin, int64_t depth) {
    const int64_t columns = smaller(p->k - j * HK_PANEL, HK_PANEL);
    if (p->layout == HK_ROWS) {
        pack_turned(packed, b + j * HK_PANEL * p->n + begin, p->n, depth, columns);
        return;
    }
    for (int64_t d = 0; d < depth; d += HK_PANEL) { // `begin` is a multiple of HK_PANEL.
        const real *from = b + (begin + d) * p->k + j * HK_PANEL * HK_PANEL;
        pack_turned(packed + d * HK_PANEL, from, HK_PANEL, smaller(depth - d, HK_PANEL), columns);
    }
}

// Rows [r0, r1) of A, panels of 64 columns [j0, j1) of A.
static void nt_items(real *a, const real *c, const real *b, const struct product *p, int64_t r0,
                     int64_t r1, int64_t j0, int64_t j1) {
    real packed[depth_max * HK_PANEL] __attribute__((aligned(64)));
    for (int64_t begin = 0; begin == 0 || begin < p->n; begin += depth_max) {
        const int64_t depth = smaller(p->n - begin, depth_max);
        for (int64_t j = j0; j < j1; j++) {
            const bool more = p->layout == HK_PANELS && j + 1 < j1;
            turn_block(packed, b, p, j, begin, depth);
            const struct tile tile = {
                // The next rows of B, in each of the panels that the depth runs over.
                .ahead = b + begin * p->k + (j + 1) * HK_PANEL * HK_PANEL,
                .ahead_depth = line,
                .ahead_tile = p->k * HK_PANEL,
                .ahead_tiles = more ? parts(depth, HK_PANEL) : 0,
                .out = a + r0 * p->k + j * HK_PANEL,
                .out_row = p->k,
                .x = c + r0 * p->n + begin,
                .x_row = p->n,
                .x_depth = 1,
                .panel = packed,
                .depth = depth,
                .columns = smaller(p->k - j * HK_PANEL, HK_PANEL),
                .write = begin > 0 ? HK_ADD : p->write,
            };
            tile_rows_run(tile, r1 - r0);
        }
    }
}

// `count` columns of `depth` rows of A; `width` columns may be read from `a` on. Whole tiles are copied in pieces of copied_columns; what a piece
// holds too much is overwritten by the next, or falls into the gap behind the tile.
static void copy_columns(real *packed, const real *a, const struct product *p, int64_t depth,
                         int64_t count, int64_t width) {
    const int64_t wide_tiles = smaller(count / tile_rows, (width - copied_gap) / tile_rows);
    for (int64_t i = 0; i < depth; i++) {
        const real *from = a + i * p->k;
        real *to = packed + i * tile_rows;
        for (int64_t t = 0; t < wide_tiles; t++) {
            memcpy(to + t * tile_size, from + t * tile_rows, copied_columns * sizeof *to);
        }
        for (int64_t j = wide_tiles * tile_rows; j < count; j++) {
            to[j / tile_rows * tile_size + j % tile_rows] = from[j];
        }
    }
}

// Rows [k[0], k[1]) of B, panels [j[0], j[1]) of B; `rows` rows of A and C.
static void tn_items(real *b, const real *a, const real *c, const struct product *p, int64_t rows,
                     const int64_t k[2], const int64_t j[2]) {
    real columns_of_a[HK_TURNED_ROWS_MAX / tile_rows * tile_size] __attribute__((aligned(64)));
    real packed[turned_depth * HK_PANEL] __attribute__((aligned(64)));
    const int64_t out_row = p->layout == HK_PANELS ? HK_PANEL : p->n;
    if (rows == 0 && p->write == HK_ADD) return; // What has no rows may not even be here.
    for (int64_t begin = 0; begin == 0 || begin < rows; begin += turned_depth) {
        const int64_t depth = smaller(rows - begin, turned_depth);
        copy_columns(columns_of_a, a + begin * p->k + k[0], p, depth, k[1] - k[0], p->k - k[0]);
        for (int64_t panel = j[0]; panel < j[1]; panel++) {
            const int64_t columns = smaller(p->n - panel * HK_PANEL, HK_PANEL);
            pack_panel(packed, c + begin * p->n + panel * HK_PANEL, p->n, depth, columns);
            struct tile tile = {
                .out_row = out_row,
                .x_row = 1,
                .x_depth = tile_rows,
                .panel = packed,
                .depth = depth,
                .columns = p->layout == HK_PANELS ? HK_PANEL : columns,
                .write = begin > 0 ? HK_ADD : p->write,
            };
            real *out = b + (p->layout == HK_PANELS ? panel * p->k : panel) * HK_PANEL;
            for (int64_t i = k[0]; i < k[1]; i += tile_rows) {
                tile.out = out + i * out_row;
                tile.x = columns_of_a + (i - k[0]) / tile_rows * tile_size;
                // The next panel of C, a line of each of its rows at a time.
                const int64_t lines = (i - k[0]) / tile_rows;
                tile.ahead = c + begin * p->n + (panel + 1) * HK_PANEL + lines * line;
                tile.ahead_depth = p->n;
                tile.ahead_tiles = panel + 1 < j[1] && lines < panel_lines;
                tile_rows_run(tile, smaller(k[1] - i, tile_rows));
            }
        }
    }
}

void HK_VARIANT(product_nn)(real *c, const real *a, const real *const *b, const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
    const int64_t block = walk_block_rows(p, p->n, sizes->nn_rows);
#pragma omp parallel if (is_large(p, sizes))
    for (struct walk w = walk_start(p, false, p->n, block); walk_next(&w);) {
        const int64_t row = p->first[w.expert];
        nn_items(c + row * p->n, a + row * p->k, b[w.expert] + p->offset, p, w.r0, w.r1, w.j0,
                 w.j1);
    }
}

void HK_VARIANT(product_nt)(real *a, const real *c, const real *const *b, const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
    const int64_t block = walk_block_rows(p, p->k, sizes->nt_rows);
#pragma omp parallel if (is_large(p, sizes))
    for (struct walk w = walk_start(p, false, p->k, block); walk_next(&w);) {
        const int64_t row = p->first[w.expert];
        nt_items(a + row * p->k, c + row * p->n, b[w.expert] + p->offset, p, w.r0, w.r1, w.j0,
                 w.j1);
    }
}

void HK_VARIANT(product_tn)(real *const *b, const real *a, const real *c, const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
#pragma omp parallel if (is_large(p, sizes))
    for (struct walk w = walk_start(p, true, p->n, sizes->tn_rows); walk_next(&w);) {
        const int64_t row = p->first[w.expert], rows = p->first[w.expert + 1] - row;
        const int64_t k[2] = {w.r0, w.r1}, j[2] = {w.j0, w.j1};
        tn_items(b[w.expert] + p->offset, a + row * p->k, c + row * p->n, p, rows, k, j);
    }
}
