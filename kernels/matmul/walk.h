// walk: how the work of a GEMM is cut and shared out.
//
// Items are (expert, block of rows, panel of the result). Every thread walks the same list and takes
// the items that begin in its share of the total cost: no queue, and neighbours share operands.
#ifndef HECATE_KERNELS_MATMUL_WALK_H
#define HECATE_KERNELS_MATMUL_WALK_H

#include <omp.h>

#include "kernels/cpu/blocking.h"
#include "kernels/cpu/tile.h"
#include "kernels/matmul/product.h"

enum { item_cost = 16 }; // Rows whose time it takes to bring in the panel of an item.

_Static_assert((int)tile_rows <= (int)HK_TILE_ROWS, "blocks of rows are two tiles at least");

HK_INLINE int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

HK_INLINE int64_t parts(int64_t whole, int64_t part) {
    return (whole + part - 1) / part;
}

// Whether a team of threads brings more than it costs.
HK_INLINE bool is_large(const struct product *p, const struct hk_blocking *sizes) {
    return (int64_t)p->first[p->groups] * p->n * p->k >> sizes->team > 0;
}

// The asking thread: 0 <= thread < threads of the team that shares the GEMM.
struct seat {
    int64_t thread, threads;
};

static const struct seat alone = {0, 1};

HK_INLINE struct seat seat_in_team(void) {
    return (struct seat){omp_get_thread_num(), omp_get_num_threads()};
}

// A thread's way through a GEMM. walk_next found rows [r0, r1) of the result, relative to
// the expert's first, and panels [j0, j1) of it.
struct walk {
    const struct product *p;
    bool of_weights;    // tn: the result's rows are those of B, the same for every expert.
    int64_t block_rows; // At most.
    int64_t panels;     // Panels of the result.
    int64_t next_expert, next_block;
    int64_t at, begin, end; // Cost: up to here, and this thread's share.
    int64_t expert, r0, r1, j0, j1;
};

HK_INLINE int64_t walk_rows(const struct walk *w, int64_t e) {
    return w->p->first[e + 1] - w->p->first[e];
}

HK_INLINE int64_t walk_blocks(const struct walk *w, int64_t e) {
    return parts(w->of_weights ? w->p->k : walk_rows(w, e), w->block_rows);
}

// Rows of one item of an expert.
HK_INLINE int64_t walk_cost(const struct walk *w, int64_t e) {
    const int64_t rows = walk_rows(w, e);
    return (w->of_weights || rows == 0 ? rows : parts(rows, walk_blocks(w, e))) + item_cost;
}

// `width`: columns of the result.
HK_INLINE struct walk walk_start(const struct product *p, bool of_weights, int64_t width,
                                 int64_t block_rows, struct seat seat) {
    struct walk w = {p, of_weights, block_rows, parts(width, HK_PANEL), .expert = 0};
    int64_t total = 0;
    for (int64_t e = 0; e < p->groups; e++) {
        total += walk_blocks(&w, e) * w.panels * walk_cost(&w, e);
    }
    w.begin = total * seat.thread / seat.threads;
    w.end = total * (seat.thread + 1) / seat.threads;
    return w;
}

HK_INLINE bool walk_next(struct walk *w) {
    for (; w->next_expert < w->p->groups; w->next_expert++, w->next_block = 0) {
        const int64_t e = w->next_expert, blocks = walk_blocks(w, e), cost = walk_cost(w, e);
        const int64_t rows = w->of_weights ? w->p->k : walk_rows(w, e);
        while (w->next_block < blocks) {
            const int64_t i = w->next_block++, from = w->begin - w->at, to = w->end - w->at;
            w->at += cost * w->panels;
            w->j0 = from <= 0 ? 0 : smaller(parts(from, cost), w->panels);
            w->j1 = to <= 0 ? 0 : smaller(parts(to, cost), w->panels);
            if (w->j0 >= w->j1) continue;
            w->expert = e;
            w->r0 = smaller(parts(rows * i, blocks * tile_rows) * tile_rows, rows); // Whole tiles.
            w->r1 = smaller(parts(rows * (i + 1), blocks * tile_rows) * tile_rows, rows);
            return true;
        }
    }
    return false;
}

// Hands finished panels [from, to) of the item to the epilogue. `width`: columns of the result.
HK_INLINE void walk_hand_over(const struct walk *w, int64_t width, int64_t from, int64_t to) {
    const struct hk_epilogue *epilogue = w->p->epilogue;
    const int64_t row = w->p->first[w->expert];
    if (!epilogue) return;
    const struct hk_block block = {
        .row = row + w->r0,
        .row_end = row + w->r1,
        .column = from * HK_PANEL,
        .column_end = smaller(to * HK_PANEL, width),
    };
    int64_t *const time = w->p->epilogue_time;
    const int64_t start = time ? hk_clock() : 0;
    epilogue->apply(epilogue->model, epilogue->layer, block);
    if (time) hk_epilogue_took(time, hk_clock() - start, omp_get_num_threads());
}

// Panels that an epilogue is given at once. They are still in the second-level cache, and of what else
// it reads and writes the processor fetches 2 KiB of a row ahead: half as much was measurably slower.
enum { epilogue_panels = 8 };

// Behind the last terms of panel j.
HK_INLINE void walk_finish(const struct walk *w, int64_t width, int64_t j) {
    const int64_t waiting = (j - w->j0) % epilogue_panels;
    if (waiting + 1 < epilogue_panels && j + 1 < w->j1) return;
    walk_hand_over(w, width, j - waiting, j + 1);
}

// Rows of a block, at most `most` of them: as many as leave the threads shares within a tenth of
// each other, because every block brings in the panels anew.
HK_INLINE int64_t walk_block_rows(const struct product *p, int64_t width, int64_t most) {
    const int64_t threads = omp_get_max_threads(), panels = parts(width, HK_PANEL);
    int64_t rows = most / tile_rows * tile_rows;
    for (; rows > 2 * tile_rows; rows -= tile_rows) {
        const int64_t items = parts(p->first[p->groups], rows) * panels;
        if (10 * items >= 9 * parts(items, threads) * threads) break;
    }
    return rows;
}

#endif
