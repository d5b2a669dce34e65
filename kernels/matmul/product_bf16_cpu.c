// The matrix products with bf16 operands: product_cpu.c with pairs of bf16 in place of floats.
//
// Activations are rounded block by block on the way in, and a block serves all panels of its work
// item. nn reads panels in place; nt turns them; tn rounds both operands into the tile's order.
#define HK_TILE_BF16
#include "kernels/cpu/pair.h"
#include "kernels/cpu/tile.h"
#include "kernels/matmul/walk.h"

enum { precision = HK_BF16, pair_terms = 2, depth_terms = depth_max * pair_terms };

// tn: columns of A are copied as tiles of [depth][tile_rows], tile_size apart.
enum {
    turned_depth = depth_max / 2, // In pairs: the panel block stays in the first-level cache.
    turned_terms = turned_depth * pair_terms,
    copied_columns = 8, // Columns that one copy moves, though a tile has only 6.
    copied_gap = copied_columns - tile_rows,
    tile_size = turned_depth * tile_rows + copied_gap,
};

// Columns [begin, begin + depth) of `rows` rows, as rows of `stride` pairs.
static void round_block(pair *to, int64_t stride, const float *from, int64_t row, int64_t rows,
                        int64_t depth) {
    for (int64_t i = 0; i < rows; i++) pairs_of_row(to + i * stride, from + i * row, depth);
}

// Where pairs of row 2 i of panel j lie.
static const pair *panel_pairs(const hk_bf16 *b, const struct product *p, int64_t j, int64_t i) {
    return (const pair *)b + (j * parts(p->k, pair_terms) + i) * HK_PANEL;
}

// Rows [r0, r1) of C, panels [j0, j1) of B.
static void nn_items(float *c, const float *a, const hk_bf16 *b, const struct product *p,
                     int64_t r0, int64_t r1, int64_t j0, int64_t j1) {
    pair rounded[HK_BLOCK_ROWS_MAX * depth_max] __attribute__((aligned(64)));
    pair packed[depth_max * HK_PANEL] __attribute__((aligned(64)));
    const bool panels = p->layout == HK_PANELS;
    for (int64_t begin = 0; begin == 0 || begin < p->k; begin += depth_terms) {
        const int64_t terms = smaller(p->k - begin, depth_terms), depth = parts(terms, pair_terms);
        round_block(rounded, depth, a + r0 * p->k + begin, p->k, r1 - r0, terms);
        for (int64_t j = j0; j < j1; j++) {
            const int64_t columns = smaller(p->n - j * HK_PANEL, HK_PANEL);
            if (!panels)
                pack_weights(packed, b + begin * p->n + j * HK_PANEL, p->n, terms, columns);
            const pair *panel = panels ? panel_pairs(b, p, j, begin / pair_terms) : packed;
            const struct tile tile = {
                .ahead = panel + parts(p->k, pair_terms) * HK_PANEL, // The next panel.
                .ahead_depth = line,
                .ahead_tile = depth * line,
                .ahead_tiles = panels && j + 1 < j1 ? panel_lines : 0,
                .out = c + r0 * p->n + j * HK_PANEL,
                .out_row = p->n,
                .x = rounded,
                .x_row = depth,
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

static hk_bf16 weight(const hk_bf16 *b, const struct product *p, int64_t i, int64_t j) {
    if (j >= p->n) return (hk_bf16){0};
    if (p->layout == HK_ROWS) return b[i * p->n + j];
    const pair *at = panel_pairs(b, p, j / HK_PANEL, i / 2) + j % HK_PANEL;
    return ((const hk_bf16 *)at)[i % 2];
}

// Rows of B [64 j, ..) as columns, columns of B [begin, begin + terms) as depth.
static void turn_block(pair *packed, const hk_bf16 *b, const struct product *p, int64_t j,
                       int64_t begin, int64_t terms) {
    const int64_t row = j * HK_PANEL, columns = smaller(p->k - row, HK_PANEL);
    const int64_t depth = parts(terms, pair_terms);
    const int64_t whole_columns = columns / lanes * lanes, whole_depth = terms / 2 / lanes * lanes;
    for (int64_t d = 0; d < whole_depth; d += lanes) {
        const int64_t column = begin + d * pair_terms;
        for (int64_t i = 0; i < whole_columns; i += lanes) {
            pair *to = packed + d * HK_PANEL + i;
            if (p->layout == HK_PANELS) {
                const pair *panel = panel_pairs(b, p, column / HK_PANEL, (row + i) / pair_terms);
                turn_paired_rows(to, HK_PANEL, panel + column % HK_PANEL, HK_PANEL);
            } else {
                turn_rows(to, HK_PANEL, b + (row + i) * p->n + column, p->n);
            }
        }
    }
    for (int64_t d = 0; d < depth; d++) {
        pair *to = packed + d * HK_PANEL;
        const int64_t done = d < whole_depth ? whole_columns : 0, column = begin + d * pair_terms;
        for (int64_t i = done; i < columns; i++) {
            to[i] =
                pair_of_weights(weight(b, p, row + i, column), weight(b, p, row + i, column + 1));
        }
        for (int64_t i = columns; i < HK_PANEL; i++) to[i] = 0;
    }
}

// Rows [r0, r1) of A, panels of 64 columns [j0, j1) of A.
static void nt_items(float *a, const float *c, const hk_bf16 *b, const struct product *p,
                     int64_t r0, int64_t r1, int64_t j0, int64_t j1) {
    pair rounded[HK_BLOCK_ROWS_MAX * depth_max] __attribute__((aligned(64)));
    pair packed[depth_max * HK_PANEL] __attribute__((aligned(64)));
    for (int64_t begin = 0; begin == 0 || begin < p->n; begin += depth_terms) {
        const int64_t terms = smaller(p->n - begin, depth_terms), depth = parts(terms, pair_terms);
        round_block(rounded, depth, c + r0 * p->n + begin, p->n, r1 - r0, terms);
        for (int64_t j = j0; j < j1; j++) {
            const bool more = p->layout == HK_PANELS && j + 1 < j1;
            turn_block(packed, b, p, j, begin, terms);
            const struct tile tile = {
                // The next rows of B, in each of the panels that the depth runs over.
                .ahead = panel_pairs(b, p, begin / HK_PANEL, (j + 1) * HK_PANEL / pair_terms),
                .ahead_depth = line,
                .ahead_tile = parts(p->k, pair_terms) * HK_PANEL,
                .ahead_tiles = more ? parts(terms, HK_PANEL) : 0,
                .out = a + r0 * p->k + j * HK_PANEL,
                .out_row = p->k,
                .x = rounded,
                .x_row = depth,
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

// `count` columns of `terms` rows of A, in tiles. Pieces of copied_columns: what a piece holds too
// much is overwritten by the next, or falls into the gap behind the tile.
static void copy_columns(pair *packed, const float *a, const struct product *p, int64_t terms,
                         int64_t count) {
    static const float zeros[HK_TURNED_ROWS_MAX];
    pair row[HK_TURNED_ROWS_MAX + copied_gap] = {0};
    for (int64_t i = 0; i < parts(terms, pair_terms); i++) {
        const float *low = a + i * pair_terms * p->k;
        pairs_of_rows(row, low, i * pair_terms + 1 < terms ? low + p->k : zeros, count);
        pair *to = packed + i * tile_rows;
        for (int64_t t = 0; t < parts(count, tile_rows); t++) {
            memcpy(to + t * tile_size, row + t * tile_rows, copied_columns * sizeof *to);
        }
    }
}

// Rows [k[0], k[1]) of B, panels [j[0], j[1]) of B; `rows` rows of A and C.
static void tn_items(float *b, const float *a, const float *c, const struct product *p,
                     int64_t rows, const int64_t k[2], const int64_t j[2]) {
    pair columns_of_a[HK_TURNED_ROWS_MAX / tile_rows * tile_size] __attribute__((aligned(64)));
    pair packed[turned_depth * HK_PANEL] __attribute__((aligned(64)));
    const int64_t out_row = p->layout == HK_PANELS ? HK_PANEL : p->n;
    if (rows == 0 && p->write == HK_ADD) return; // What has no rows may not even be here.
    for (int64_t begin = 0; begin == 0 || begin < rows; begin += turned_terms) {
        const int64_t terms = smaller(rows - begin, turned_terms);
        copy_columns(columns_of_a, a + begin * p->k + k[0], p, terms, k[1] - k[0]);
        for (int64_t panel = j[0]; panel < j[1]; panel++) {
            const int64_t columns = smaller(p->n - panel * HK_PANEL, HK_PANEL);
            pack_pairs(packed, c + begin * p->n + panel * HK_PANEL, p->n, terms, columns);
            struct tile tile = {
                .out_row = out_row,
                .x_row = 1,
                .x_depth = tile_rows,
                .panel = packed,
                .depth = parts(terms, pair_terms),
                .columns = p->layout == HK_PANELS ? HK_PANEL : columns,
                .write = begin > 0 ? HK_ADD : p->write,
            };
            float *out = b + (p->layout == HK_PANELS ? panel * p->k : panel) * HK_PANEL;
            for (int64_t i = k[0]; i < k[1]; i += tile_rows) {
                tile.out = out + i * out_row;
                tile.x = columns_of_a + (i - k[0]) / tile_rows * tile_size;
                // The next panel of C, a line of each of its rows at a time.
                const int64_t lines = (i - k[0]) / tile_rows;
                tile.ahead =
                    (const pair *)(c + begin * p->n + (panel + 1) * HK_PANEL + lines * line);
                tile.ahead_depth = p->n;
                tile.ahead_tiles = panel + 1 < j[1] && lines < panel_lines;
                tile_rows_run(tile, smaller(k[1] - i, tile_rows));
            }
        }
    }
}

void HK_VARIANT_BF16(product_nn)(float *c, const float *a, const hk_bf16 *const *b,
                                 const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
    const int64_t block = walk_block_rows(p, p->n, sizes->nn_rows);
#pragma omp parallel if (is_large(p, sizes))
    for (struct walk w = walk_start(p, false, p->n, block); walk_next(&w);) {
        const int64_t row = p->first[w.expert];
        nn_items(c + row * p->n, a + row * p->k, b[w.expert] + p->offset, p, w.r0, w.r1, w.j0,
                 w.j1);
    }
}

void HK_VARIANT_BF16(product_nt)(float *a, const float *c, const hk_bf16 *const *b,
                                 const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
    const int64_t block = walk_block_rows(p, p->k, sizes->nt_rows);
#pragma omp parallel if (is_large(p, sizes))
    for (struct walk w = walk_start(p, false, p->k, block); walk_next(&w);) {
        const int64_t row = p->first[w.expert];
        nt_items(a + row * p->k, c + row * p->n, b[w.expert] + p->offset, p, w.r0, w.r1, w.j0,
                 w.j1);
    }
}

void HK_VARIANT_BF16(product_tn)(float *const *b, const float *a, const float *c,
                                 const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
#pragma omp parallel if (is_large(p, sizes))
    for (struct walk w = walk_start(p, true, p->n, sizes->tn_rows); walk_next(&w);) {
        const int64_t row = p->first[w.expert], rows = p->first[w.expert + 1] - row;
        const int64_t k[2] = {w.r0, w.r1}, j[2] = {w.j0, w.j1};
        tn_items(b[w.expert] + p->offset, a + row * p->k, c + row * p->n, p, rows, k, j);
    }
}
