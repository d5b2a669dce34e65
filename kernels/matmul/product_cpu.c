// The GEMMs: blocks of panel against register tiles (cpu/tile.h).
//
// A block of panel is 64 columns by depth_max steps: it stays in the second-level cache while the
// rows of a work item stream past. nn reads weights that already lie as panels in place; nt turns
// them on the way, tn copies both operands. Either is repaid by the rows that share the block; where
// they are too few for nt, transposed.h does otherwise. Rows that have to be rounded are rounded block
// by block, and a block serves all panels of its work item.
#include "kernels/matmul/product.h"

#include "kernels/cpu/tile.h"
#include "kernels/matmul/left.h"
#include "kernels/matmul/transposed.h"
#include "kernels/matmul/turned.h"
#include "kernels/matmul/unpack.h"
#include "kernels/matmul/walk.h"

#ifdef HK_OPERAND_BF16
enum { precision = HK_BF16 };
#else
enum { precision = HK_BITS == 32 ? HK_F32 : HK_F64 };
#endif

enum { depth_terms = depth_max * terms };

// tn: columns of A are copied as tiles of [depth][tile_rows], tile_size apart.
enum {
    // With AVX-512 the panel block stays in the first-level cache; narrower tiles gain more from fewer sums in memory.
    turned_depth = HK_VECTOR_BYTES == 64 ? depth_max / 2 : depth_max,
    turned_terms = turned_depth * terms,
    copied_columns = 8, // Columns that one copy moves, though a tile has only 6.
    copied_gap = copied_columns - tile_rows,
    tile_size = turned_depth * tile_rows + copied_gap,
    tiles_max = (HK_TURNED_ROWS_MAX + tile_rows - 1) / tile_rows,
};

// Terms [begin, begin + width) of columns [64 j, ..) of a row-major B.
static void pack_block(operand *packed, const weight *b, const struct product *p, int64_t j,
                       int64_t begin, int64_t width) {
    const weight *from = b + begin * p->n + j * HK_PANEL;
    pack_weights(packed, from, p->n, width, smaller(p->n - j * HK_PANEL, HK_PANEL));
}

// The same of panel j, as it lies or, where B is packed, as it would lie.
static const operand *block_of_panel(operand *packed, const weight *b, const struct product *p,
                                     int64_t j, int64_t begin, int64_t width) {
#ifdef HK_OPERAND_BF16
    if (p->packing) {
        unpack_rows((pair *)packed, b, p, j, begin, width);
        return packed;
    }
#endif
    (void)packed, (void)width;
    return (const operand *)panel_at(b, p, j, begin / stored_terms);
}

// C of one item, a panel of B at a time.
static void nn_items(real *c, const real *a, const weight *b, const struct walk *w) {
    const struct product *p = w->p;
    const int64_t rows = w->r1 - w->r0;
    real room[room_size] __attribute__((aligned(64)));
    operand packed[depth_max * HK_PANEL] __attribute__((aligned(64)));
    const bool panels = p->layout == HK_PANELS;
    for (int64_t begin = 0; begin == 0 || begin < p->k; begin += depth_terms) {
        const int64_t width = smaller(p->k - begin, depth_terms);
        const int64_t depth = panels ? stored_rows(width) : steps(width);
        const struct left x = left_block(room, a + w->r0 * p->k + begin, p->k, rows, width);
        for (int64_t j = w->j0; j < w->j1; j++) {
            if (!panels) pack_block(packed, b, p, j, begin, width);
            const operand *panel = panels ? block_of_panel(packed, b, p, j, begin, width) : packed;
            struct tile tile = {
                .ahead = panel + stored_rows(p->k) * HK_PANEL, // The next panel.
                .ahead_depth = line,
                .ahead_tile = depth * line,
                .ahead_tiles = panels && !p->packing && j + 1 < w->j1 ? panel_lines : 0,
                .out = c + w->r0 * p->n + j * HK_PANEL,
                .out_row = p->n,
                .x = x.at,
                .x_row = x.row,
                .x_tile = x.tile,
                .x_depth = panels ? stored_terms / terms : 1,
                .panel = panel,
                .depth = depth,
                .columns = smaller(p->n - j * HK_PANEL, HK_PANEL),
                .write = begin > 0 ? HK_ADD : p->write,
            };
            tile_set_stored(&tile, panels);
            tile_rows_run(tile, rows);
            if (begin + depth_terms >= p->k) walk_finish(w, p->n, j);
        }
    }
}

// A of one item, 64 columns at a time.
static void nt_items(real *a, const real *c, const weight *b, const struct walk *w) {
    const struct product *p = w->p;
    const int64_t rows = w->r1 - w->r0;
    real room[room_size] __attribute__((aligned(64)));
    operand packed[depth_max * HK_PANEL] __attribute__((aligned(64)));
    for (int64_t begin = 0; begin == 0 || begin < p->n; begin += depth_terms) {
        const int64_t width = smaller(p->n - begin, depth_terms);
        const struct left x = left_block(room, c + w->r0 * p->n + begin, p->n, rows, width);
        for (int64_t j = w->j0; j < w->j1; j++) {
            const bool more = p->layout == HK_PANELS && !p->packing && j + 1 < w->j1;
            turn_block(packed, b, p, j, begin, width);
            const struct tile tile = {
                // The next rows of B, in each of the panels that the depth runs over.
                .ahead = (const operand *)panel_at(b, p, begin / HK_PANEL,
                                                   (j + 1) * HK_PANEL / stored_terms),
                .ahead_depth = line,
                .ahead_tile = stored_rows(p->k) * HK_PANEL,
                .ahead_tiles = more ? parts(width, HK_PANEL) : 0,
                .out = a + w->r0 * p->k + j * HK_PANEL,
                .out_row = p->k,
                .x = x.at,
                .x_row = x.row,
                .x_tile = x.tile,
                .x_depth = 1,
                .panel = packed,
                .depth = steps(width),
                .columns = smaller(p->k - j * HK_PANEL, HK_PANEL),
                .write = begin > 0 ? HK_ADD : p->write,
            };
            tile_rows_run(tile, rows);
            if (begin + depth_terms >= p->n) walk_finish(w, p->k, j);
        }
    }
}

// `count` columns of a step, whose first row of A is `row`; `rows` of them are left. They lie in
// place, where `*readable` columns may be read, or rounded in `room`.
static const operand *step_of_rows(operand *room, const real *row, const struct product *p,
                                   int64_t rows, int64_t count, int64_t *readable) {
#ifdef HK_OPERAND_BF16
    static const float zeros[HK_TURNED_ROWS_MAX];
    round_step(room, row, rows > 1 ? row + p->k : zeros, count);
    *readable = HK_TURNED_ROWS_MAX + copied_gap;
    return room;
#else
    (void)room, (void)p, (void)rows, (void)count, (void)readable;
    return row;
#endif
}

// `count` columns from `begin` on of `rows` rows of A. Tiles are copied in pieces of copied_columns;
// a piece's excess is overwritten by the next, or falls into the gap behind the tile.
static void copy_columns(operand *packed, const real *a, const struct product *p, int64_t rows,
                         int64_t begin, int64_t count) {
    operand room[rounds ? HK_TURNED_ROWS_MAX + copied_gap : 1] = {0};
    for (int64_t i = 0; i < steps(rows); i++) {
        int64_t readable = p->k - begin;
        const operand *from =
            step_of_rows(room, a + i * terms * p->k + begin, p, rows - i * terms, count, &readable);
        const int64_t pieces =
            smaller(parts(count, tile_rows), (readable - copied_gap) / tile_rows);
        operand *to = packed + i * tile_rows;
        for (int64_t t = 0; t < pieces; t++) {
            memcpy(to + t * tile_size, from + t * tile_rows, copied_columns * sizeof *to);
        }
        for (int64_t j = pieces * tile_rows; j < count; j++) {
            to[j / tile_rows * tile_size + j % tile_rows] = from[j];
        }
    }
}

enum { few_steps = 16 }; // They have too few turns to ask for a tile of the result.

// Brings rows of the result, in a panel, into the cache: two tiles of rows ahead of those computed.
HK_INLINE void ask_for_result(const real *row) {
    const real *ahead = row + 2 * tile_rows * HK_PANEL;
    for (int i = 0; i < tile_rows * HK_PANEL; i += 64 / (int)sizeof *row) {
        __builtin_prefetch(ahead + i, 1);
    }
}

// Prefetches for tile `i` of rows. The first tiles ask for the next panel of C, a line of each of its rows. The others,
// where the result is a panel: its rows two tiles ahead, evenly over the depth.
HK_INLINE void tn_ask(struct tile *t, const real *next_panel, int64_t c_row, bool out_is_panel,
                      int64_t i) {
    const bool first = next_panel != NULL && i < panel_lines;
    if (out_is_panel && t->depth < few_steps) ask_for_result(t->out);
    if (t->depth == 0) return;
    const real *rows = t->out + 2 * tile_rows * HK_PANEL;
    t->ahead = (const operand *)(first ? next_panel + i * line : rows);
    t->ahead_depth = first ? c_row : tile_rows * HK_PANEL / t->depth;
    t->ahead_tiles = first || out_is_panel;
}

// Columns of a panel of B that have to be computed: those behind them in the panel stay zero.
HK_INLINE int64_t filled_columns(int64_t columns) {
    return smaller(parts(columns, lanes) * lanes, HK_PANEL);
}

static void clear_padding(real *panel, int64_t rows, int64_t filled) {
    for (int64_t i = 0; i < rows && filled < HK_PANEL; i++) {
        memset(panel + i * HK_PANEL + filled, 0, (size_t)(HK_PANEL - filled) * sizeof *panel);
    }
}

// Rows [k[0], k[1]) of B, panels [j[0], j[1]) of B; `rows` rows of A and C.
static void tn_items(real *b, const real *a, const real *c, const struct product *p, int64_t rows,
                     const int64_t k[2], const int64_t j[2]) {
    operand columns_of_a[tiles_max * tile_size] __attribute__((aligned(64)));
    real packed[turned_depth * HK_PANEL] __attribute__((aligned(64)));
    const bool panels = p->layout == HK_PANELS;
    const int64_t out_row = panels ? HK_PANEL : p->n;
    if (rows == 0 && p->write == HK_ADD) return; // A without rows may be missing.
    for (int64_t begin = 0; begin == 0 || begin < rows; begin += turned_terms) {
        const int64_t width = smaller(rows - begin, turned_terms);
        copy_columns(columns_of_a, a + begin * p->k, p, width, k[0], k[1] - k[0]);
        for (int64_t panel = j[0]; panel < j[1]; panel++) {
            const int64_t columns = smaller(p->n - panel * HK_PANEL, HK_PANEL);
            const int64_t filled = filled_columns(columns);
            const enum hk_write write = begin > 0 ? HK_ADD : p->write;
            const real *from = c + begin * p->n + panel * HK_PANEL;
            const real *next = panel + 1 < j[1] ? from + HK_PANEL : NULL;
            pack_rows(packed, from, p->n, width, columns);
            struct tile tile = {
                .out_row = out_row,
                .x_row = 1,
                .x_depth = tile_rows,
                .x_tile = tile_size,
                .panel = (const operand *)packed,
                .depth = steps(width),
                .columns = panels ? filled : columns,
                .write = write,
            };
            real *out = b + (panels ? panel * p->k : panel) * HK_PANEL;
            if (panels && write == HK_STORE) {
                clear_padding(out + k[0] * HK_PANEL, k[1] - k[0], filled);
            }
            for (int64_t i = k[0]; i < k[1]; i += tile_rows) {
                tile.out = out + i * out_row;
                tile.x = columns_of_a + (i - k[0]) / tile_rows * tile_size;
                tn_ask(&tile, next, p->n, panels, (i - k[0]) / tile_rows);
                tile_rows_run(tile, smaller(k[1] - i, tile_rows));
            }
        }
    }
}

// A thread's share of each GEMM.

static void nn_share(real *c, const real *a, const weight *const *b, const struct product *p,
                     int64_t block, struct seat seat) {
    for (struct walk w = walk_start(p, false, p->n, block, seat); walk_next(&w);) {
        const int64_t row = p->first[w.expert];
        nn_items(c + row * p->n, a + row * p->k, b[w.expert] + p->offset, &w);
    }
}

static void nt_share(real *a, const real *c, const weight *const *b, const struct product *p,
                     int64_t block, struct seat seat) {
    for (struct walk w = walk_start(p, false, p->k, block, seat); walk_next(&w);) {
        const int64_t row = p->first[w.expert];
        real *to = a + row * p->k;
        const real *from = c + row * p->n;
        const weight *weights = b[w.expert] + p->offset;
#ifndef HK_PAIRS
        if (transposing_pays(p, w.r1 - w.r0, (w.j1 - w.j0) * HK_PANEL)) {
            nt_transposed(to, from, weights, p, w.r0, w.r1, w.j0, w.j1);
            walk_hand_over(&w, p->k, w.j0, w.j1);
            continue;
        }
#endif
        nt_items(to, from, weights, &w);
    }
}

static void tn_share(real *const *b, const real *a, const real *c, const struct product *p,
                     int64_t block, struct seat seat) {
    for (struct walk w = walk_start(p, true, p->n, block, seat); walk_next(&w);) {
        const int64_t row = p->first[w.expert], rows = p->first[w.expert + 1] - row;
        const int64_t k[2] = {w.r0, w.r1}, j[2] = {w.j0, w.j1};
        tn_items(b[w.expert] + p->offset, a + row * p->k, c + row * p->n, p, rows, k, j);
    }
}

// A branch, not the clause `if` of `parallel`: that calls the runtime even for one thread.

void HK_VARIANT(product_nn)(real *c, const real *a, const weight *const *b,
                            const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
    const int64_t block = walk_block_rows(p, p->n, sizes->nn_rows);
    if (!is_large(p, sizes)) {
        nn_share(c, a, b, p, block, alone);
        return;
    }
#pragma omp parallel
    nn_share(c, a, b, p, block, seat_in_team());
}

void HK_VARIANT(product_nt)(real *a, const real *c, const weight *const *b,
                            const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
    const int64_t block = walk_block_rows(p, p->k, sizes->nt_rows);
    if (!is_large(p, sizes)) {
        nt_share(a, c, b, p, block, alone);
        return;
    }
#pragma omp parallel
    nt_share(a, c, b, p, block, seat_in_team());
}

void HK_VARIANT(product_tn)(real *const *b, const real *a, const real *c, const struct product *p) {
    const struct hk_blocking *sizes = &hk_blocking()[precision];
    if (!is_large(p, sizes)) {
        tn_share(b, a, c, p, sizes->tn_rows, alone);
        return;
    }
#pragma omp parallel
    tn_share(b, a, c, p, sizes->tn_rows, seat_in_team());
}
