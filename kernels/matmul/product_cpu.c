// The matrix products: blocks of panel against register tiles (cpu/tile.h).
//
// A block of panel is 64 columns by depth_max: it stays in the second-level cache while the rows
// of a work item stream past. nn reads weights that already lie as panels in place; nt turns them
// on the way, tn copies both operands. Either is repaid by the rows that share the block.
//
// Work is cut into items of (expert, row block, panel). Every thread walks the same list and takes
// the items that begin in its share of the total cost: no queue, and neighbours share operands.
#include "kernels/matmul/product.h"

#include <omp.h>

#include "kernels/cpu/pack.h"
#include "kernels/cpu/tile.h"

enum {
    row_block_max = 192,    // nn, nt: rows by depth_max, too, fit into the second-level cache.
    item_cost = 16,         // Rows whose time it takes to bring in the panel of an item.
    items_per_thread = 4,   // Aim, so that shares come out even.
    parallel_min = 1 << 18, // Multiplications below which a team costs more than it brings.
};

// tn: columns of A are copied as tiles of [depth][tile_rows], tile_size apart.
enum {
    turned_rows_max = 384,        // Rows of B per copied block of A,
    turned_depth = depth_max / 2, // and its depth: the panel block stays in the first-level cache.
    copied_columns = 8,           // Columns that one copy moves, though a tile has only 6.
    copied_gap = copied_columns - tile_rows,
    tile_size = turned_depth * tile_rows + copied_gap,
};

_Static_assert(row_block_max % tile_rows == 0 && turned_rows_max % tile_rows == 0,
               "blocks of rows are whole tiles");

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t parts(int64_t whole, int64_t part) {
    return (whole + part - 1) / part;
}

static int64_t rows_of(const struct product *p, int64_t e) {
    return p->first[e + 1] - p->first[e];
}

// Items of one expert: `blocks` row blocks by `panels` panels of the result.
struct grid {
    int64_t rows; // Of the result: cut into blocks.
    int64_t blocks;
    int64_t panels;
    int64_t cost; // Of one item, in rows.
};

// A thread's share [begin, end) of the total cost; `at` is where the walk stands.
struct share {
    int64_t begin;
    int64_t end;
    int64_t at;
};

static struct share share_of_thread(int64_t total) {
    const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
    return (struct share){total * thread / threads, total * (thread + 1) / threads, 0};
}

// The panels [*begin, *end) of the next row block that are this thread's; advances the walk.
static void take(struct share *share, const struct grid *grid, int64_t *begin, int64_t *end) {
    const int64_t from = share->begin - share->at, to = share->end - share->at;
    *begin = from <= 0 ? 0 : smaller(parts(from, grid->cost), grid->panels);
    *end = to <= 0 ? 0 : smaller(parts(to, grid->cost), grid->panels);
    share->at += grid->cost * grid->panels;
}

// nn and nt: rows are tokens, `width` the columns of the result.
static struct grid grid_of_rows(const struct product *p, int64_t e, int64_t width, int64_t block) {
    const int64_t rows = rows_of(p, e);
    const int64_t blocks = parts(rows, block);
    const int64_t cost = blocks > 0 ? parts(rows, blocks) + item_cost : 0;
    return (struct grid){rows, blocks, parts(width, HK_PANEL), cost};
}

// Row blocks small enough to occupy all threads, in multiples of the tile.
static int64_t row_block(const struct product *p, int64_t width) {
    const int64_t items = (int64_t)omp_get_max_threads() * items_per_thread;
    const int64_t rows = parts(p->first[p->groups] * parts(width, HK_PANEL), items);
    const int64_t tiles = parts(rows, tile_rows);
    return smaller(tiles < 2 ? 2 * tile_rows : tiles * tile_rows, row_block_max);
}

static bool is_large(const struct product *p) {
    return (int64_t)p->first[p->groups] * p->n * p->k >= parallel_min;
}

// Begin of row block i, on a tile boundary.
static int64_t block_begin(const struct grid *grid, int64_t i) {
    return smaller(parts(grid->rows * i, grid->blocks * tile_rows) * tile_rows, grid->rows);
}

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
    real columns_of_a[turned_rows_max / tile_rows * tile_size] __attribute__((aligned(64)));
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

// nn or nt, whichever `items` computes: out [., out_width] from x [., x_width].
static void by_rows(real *out, int64_t out_width, const real *x, int64_t x_width,
                    const real *const *b, const struct product *p,
                    void (*items)(real *, const real *, const real *, const struct product *,
                                  int64_t, int64_t, int64_t, int64_t)) {
    const int64_t block = row_block(p, out_width);
#pragma omp parallel if (is_large(p))
    {
        int64_t total = 0;
        for (int64_t e = 0; e < p->groups; e++) {
            const struct grid grid = grid_of_rows(p, e, out_width, block);
            total += grid.blocks * grid.panels * grid.cost;
        }
        struct share share = share_of_thread(total);
        for (int64_t e = 0; e < p->groups; e++) {
            const struct grid grid = grid_of_rows(p, e, out_width, block);
            const int64_t row = p->first[e];
            for (int64_t i = 0; i < grid.blocks; i++) {
                int64_t j0, j1;
                take(&share, &grid, &j0, &j1);
                if (j0 >= j1) continue;
                items(out + row * out_width, x + row * x_width, b[e] + p->offset, p,
                      block_begin(&grid, i), block_begin(&grid, i + 1), j0, j1);
            }
        }
    }
}

void HK_VARIANT(product_nn)(real *c, const real *a, const real *const *b, const struct product *p) {
    by_rows(c, p->n, a, p->k, b, p, nn_items);
}

void HK_VARIANT(product_nt)(real *a, const real *c, const real *const *b, const struct product *p) {
    by_rows(a, p->k, c, p->n, b, p, nt_items);
}

void HK_VARIANT(product_tn)(real *const *b, const real *a, const real *c, const struct product *p) {
#pragma omp parallel if (is_large(p))
    {
        struct grid grid = {p->k, parts(p->k, turned_rows_max), parts(p->n, HK_PANEL), 0};
        const int64_t items = grid.blocks * grid.panels;
        const int64_t total = items * (p->first[p->groups] + item_cost * p->groups);
        struct share share = share_of_thread(total);
        for (int64_t e = 0; e < p->groups; e++) {
            const int64_t row = p->first[e], rows = rows_of(p, e);
            grid.cost = rows + item_cost;
            for (int64_t i = 0; i < grid.blocks; i++) {
                int64_t j[2];
                take(&share, &grid, &j[0], &j[1]);
                if (j[0] >= j[1]) continue;
                const int64_t k[2] = {block_begin(&grid, i), block_begin(&grid, i + 1)};
                tn_items(b[e] + p->offset, a + row * p->k, c + row * p->n, p, rows, k, j);
            }
        }
    }
}
