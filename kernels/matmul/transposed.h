// transposed: nt as A^T = B C^T, for few rows.
//
// nt needs one operand turned. Turning weights costs as much as eight rows of GEMMs with them. Here the
// rows of C are turned instead and lie in the lanes; weights are read in place, each a scalar for all
// lanes, and the result, A^T, is turned back. Every sum has the same terms in the same order as
// with turned weights: the same bits.
#ifndef HECATE_KERNELS_MATMUL_TRANSPOSED_H
#define HECATE_KERNELS_MATMUL_TRANSPOSED_H

#include "kernels/cpu/tile.h"
#include "kernels/matmul/turned.h"
#include "kernels/matmul/walk.h"

#ifndef HK_PAIRS // Pairs of weights would have to be turned, too.

enum {
    group_rows = HK_PANEL, // Rows of C that are turned at a time.
    strip_rows = 16,       // Rows of B whose GEMMs share a tile or two; a multiple of lanes.
    chunk_rows = 512,      // Rows of B whose sums wait to be turned back.
    strip_steps = interleaves ? steps_at_once : 1,
};

// Whether turning weights, as eight rows, costs more, for `rows` rows and `columns` columns of A. Here rows
// are filled up to whole vectors, and those of C and of A are turned, each as eight columns of
// GEMMs with it; the rest, prefetching and sums in memory, is a sixty-fourth. Widening weights, for every
// group, takes half as long as turning them.
HK_INLINE bool transposing_pays(const struct product *p, int64_t rows, int64_t columns) {
    if (p->layout != HK_PANELS || p->k % strip_rows != 0 || p->n == 0) return false;
    const int64_t filled = parts(rows, lanes) * lanes;
    const int64_t turning = filled * 8 / columns + filled * 8 / p->n;
    const int64_t widening = rounds ? parts(rows, group_rows) * 4 : 0;
    return filled + turning + filled / 64 + widening < rows + 8;
}

// sums[r, i] (+)= sum over p of x[r, p] * panel[p, i], for `vectors` vectors of i. x is a row in a panel
// of weights; its steps are HK_PANEL in each panel, which lie x_skip apart.
struct strip {
    const real *x;
    int64_t x_skip;
    const real *panel; // [depth][vectors * lanes]
    int64_t depth;
    real *sums;
    int64_t sums_row;
    bool add;
    bool asks; // Brings the next strip of x into the second-level cache meanwhile.
};

HK_INLINE void strip_step(vec sum[strip_rows][3], const real *x, const real *panel, int rows,
                          int vectors) {
    vec column[3];
    HK_UNROLL for (int v = 0; v < vectors; v++) column[v] = vec_load(panel + v * lanes);
    HK_UNROLL for (int r = 0; r < rows; r++) tile_row(sum[r], x + r * HK_PANEL, column, vectors);
}

HK_INLINE void strip_run(const struct strip *s, int rows, int vectors) {
    vec sum[strip_rows][3] = {0};
    const real *block = s->x, *panel = s->panel;
    for (int64_t left = s->depth; left > 0; left -= HK_PANEL, block += s->x_skip) {
        // As many rows of the next strip, evenly.
        const real *x = block, *ahead = s->asks ? x + strip_rows * HK_PANEL : x;
        const int64_t asked = s->asks ? rows * strip_steps : 0;
        const real *const end = x + smaller(left, HK_PANEL);
        for (; x + strip_steps <= end; x += strip_steps) {
            HK_UNROLL for (int i = 0; i < rows * strip_steps; i += line) {
                __builtin_prefetch(ahead + i, 0, 2);
            }
            ahead += asked;
            HK_UNROLL for (int u = 0; u < strip_steps; u++) {
                strip_step(sum, x + u, panel, rows, vectors);
                panel += vectors * lanes;
            }
        }
        for (; x < end; x++) {
            strip_step(sum, x, panel, rows, vectors);
            panel += vectors * lanes;
        }
    }
    HK_UNROLL for (int r = 0; r < rows; r++) {
        HK_UNROLL for (int v = 0; v < vectors; v++) {
            real *to = s->sums + r * s->sums_row + v * lanes;
            vec_store(to, s->add ? vec_load(to) + sum[r][v] : sum[r][v]);
        }
    }
}

// As many sums as there are registers for them; eight at least hide how long one takes.
#define HK_STRIP(rows, vectors)                                                                    \
    static __attribute__((noinline)) void strip_##vectors(struct strip s) {                        \
        for (int r = 0; r < strip_rows; r += rows) {                                               \
            strip_run(&s, rows, vectors);                                                          \
            s.x += rows * HK_PANEL;                                                                \
            s.sums += rows * s.sums_row;                                                           \
        }                                                                                          \
    }
#if HK_VECTOR_BYTES == 64
HK_STRIP(16, 1)
HK_STRIP(8, 2)
HK_STRIP(8, 3)
#else
HK_STRIP(8, 1)
HK_STRIP(4, 2)
HK_STRIP(4, 3)
#endif
static void (*const strip_of[])(struct strip) = {strip_1, strip_2, strip_3};

// A group of rows of A and C, at most group_rows, and the sums of a chunk.
struct group {
    real *a;
    const real *c;
    int64_t rows, filled; // Filled up to whole vectors.
    real *sums;           // [chunk_rows][filled]
    real *turned;         // Parts of the group, one behind the other, each [depth][its lanes].
};

// Vectors of the part of a group that begins `left` vectors before its end.
HK_INLINE int64_t part_vectors(int64_t left) {
    return left == 4 ? 2 : smaller(left, 3);
}

// to[p * to_row + i] = from[i * row + p] for `rows` i, at most lanes of them, and zeros behind.
HK_INLINE void turn_into_lanes(real *to, int64_t to_row, const real *from, int64_t row,
                               int64_t rows, int64_t depth) {
    const int64_t whole = rows == lanes ? depth / lanes * lanes : 0;
    for (int64_t p = 0; p < whole; p += lanes) turn_square(to + p * to_row, to_row, from + p, row);
    for (int64_t p = whole; p < depth; p++) {
        for (int64_t i = 0; i < lanes; i++) to[p * to_row + i] = i < rows ? from[i * row + p] : 0;
    }
}

static void turn_group(const struct group *g, const struct product *p, int64_t begin,
                       int64_t depth) {
    const int64_t vectors = g->filled / lanes;
    for (int64_t v = 0; v < vectors; v += part_vectors(vectors - v)) {
        const int64_t count = part_vectors(vectors - v);
        for (int64_t u = 0; u < count; u++) {
            const int64_t i = (v + u) * lanes;
            turn_into_lanes(g->turned + v * lanes * depth + u * lanes, count * lanes,
                            g->c + i * p->n + begin, p->n, smaller(g->rows - i, lanes), depth);
        }
    }
    round_in_place(g->turned, g->filled * depth);
}

// Rows [r, r + strip_rows) of B, depth [begin, begin + depth): where they lie, or in `room`, which then
// asks for the next ones, too.
HK_INLINE const real *rows_of_weights(real *room, const weight *b, const struct product *p,
                                      int64_t r, int64_t begin, int64_t depth) {
#ifdef HK_WIDENS
    pair unpacked[strip_rows / 2 * HK_PANEL];
    for (int64_t d = 0; d < depth; d += HK_PANEL) {
        const int64_t panel = (begin + d) / HK_PANEL;
        const pair *from = p->packing ? unpacked : panel_at(b, p, panel, r / stored_terms);
        if (p->packing) unpack_rows(unpacked, b, p, panel, r, strip_rows);
        widen_rows(room + d * strip_rows, from, strip_rows);
    }
    return room;
#else
    (void)room, (void)depth;
    return panel_at(b, p, begin / HK_PANEL, r);
#endif
}

// Rows [r, r + strip_rows) of B, depth [begin, begin + depth), into sums from `sums` on.
static void add_strip(const struct group *g, const struct product *p, const weight *b, int64_t r,
                      real *sums, int64_t begin, int64_t depth) {
    const int64_t vectors = g->filled / lanes;
    real room[rounds ? depth_max * strip_rows : 1] __attribute__((aligned(64)));
    struct strip s = {
        .x = rows_of_weights(room, b, p, r, begin, depth),
        .x_skip = (rounds ? strip_rows : p->k) * HK_PANEL,
        .depth = depth,
        .sums_row = g->filled,
        .add = begin > 0 || p->write == HK_ADD,
        .asks = !rounds && r + 2 * strip_rows <= p->k,
    };
    for (int64_t v = 0; v < vectors; v += part_vectors(vectors - v)) {
        s.panel = g->turned + v * lanes * depth;
        s.sums = sums + v * lanes;
        strip_of[part_vectors(vectors - v) - 1](s);
        s.asks = false;
    }
}

// Columns [k0, k0 + count) of the group's rows of A, turned into sums, or turned back.
static void turn_sums(const struct group *g, const struct product *p, int64_t k0, int64_t count,
                      bool back) {
    for (int64_t i = 0; i < g->filled; i += lanes) {
        const int64_t rows = smaller(g->rows - i, lanes);
        real *a = g->a + i * p->k + k0, *sums = g->sums + i;
        for (int64_t k = 0; rows == lanes && k < count; k += lanes) {
            if (back) turn_square(a + k, p->k, sums + k * g->filled, g->filled);
            if (!back) turn_square(sums + k * g->filled, g->filled, a + k, p->k);
        }
        for (int64_t k = 0; rows < lanes && k < count; k++) {
            for (int64_t j = 0; j < rows; j++) {
                if (back) a[j * p->k + k] = sums[k * g->filled + j];
                if (!back) sums[k * g->filled + j] = a[j * p->k + k];
            }
        }
    }
}

// Columns [k0, k0 + count) of the group's rows of A.
static void nt_chunk(const struct group *g, const struct product *p, const weight *b, int64_t k0,
                     int64_t count) {
    if (p->write == HK_ADD) turn_sums(g, p, k0, count, false);
    for (int64_t begin = 0; begin == 0 || begin < p->n; begin += depth_max) {
        const int64_t depth = smaller(p->n - begin, depth_max);
        turn_group(g, p, begin, depth);
        for (int64_t k = 0; k < count; k += strip_rows) {
            add_strip(g, p, b, k0 + k, g->sums + k * g->filled, begin, depth);
        }
    }
    turn_sums(g, p, k0, count, true);
}

// Rows [r0, r1) of A, panels of 64 columns [j0, j1) of A.
static void nt_transposed(real *a, const real *c, const weight *b, const struct product *p,
                          int64_t r0, int64_t r1, int64_t j0, int64_t j1) {
    real turned[group_rows * depth_max] __attribute__((aligned(64)));
    real sums[chunk_rows * group_rows] __attribute__((aligned(64)));
    const int64_t begin = j0 * HK_PANEL, end = smaller(j1 * HK_PANEL, p->k);
    for (int64_t r = r0; r < r1; r += group_rows) {
        const int64_t rows = smaller(r1 - r, group_rows);
        const struct group g = {
            .a = a + r * p->k,
            .c = c + r * p->n,
            .rows = rows,
            .filled = parts(rows, lanes) * lanes,
            .sums = sums,
            .turned = turned,
        };
        for (int64_t k = begin; k < end; k += chunk_rows) {
            nt_chunk(&g, p, b, k, smaller(end - k, chunk_rows));
        }
    }
}

#endif

#endif
