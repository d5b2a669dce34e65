// backward: for some blocks of keys, all blocks of queries of all heads of their
// group, so that weights are recomputed once, gradients of keys and values are summed up in
// cache, and every gradient adds its terms in one order.
//
//   P = exp(scale Q K^T - lse)      dV += P^T dO       dP = dO V^T
//   dS = scale P (dP - delta)       dK += dS^T Q       dQ += dS K,   delta = rows of dO * O
#ifndef HECATE_KERNELS_SDPA_BACKWARD_H
#define HECATE_KERNELS_SDPA_BACKWARD_H

#include <sched.h>
#include <stdatomic.h>

#include "kernels/cpu/row.h"
#include "kernels/sdpa/block.h"
#include "kernels/sdpa/weight.h"

enum { panels_max = 2 };

// The arrays of one head in one batch, at position 0, and of its group.
struct head {
    real *dq, *dk, *dv;
    const real *dout, *q, *k, *v, *out, *lse;
    int64_t q_row, k_row, v_row, out_row;
};

// The products that one block of queries of one head is read for. Left operands are the rows; panels hold as many
// columns as fit.
struct side {
    const real *at;
    int64_t row, width;
    struct left left;
    real *room;  // For the results of left_rows.
    real *panel; // pack_rows, by HK_PANEL columns.
};

enum {
    room_size = rounds ? width_max / terms * HK_PANEL : 1,
    panel_steps = HK_PANEL / terms, // A panel packed from the rows of a block.
};

// Panels of up to two blocks of keys, and of one block of queries; all as far as they fit.
struct scratch {
    real weights[query_block * key_block]; // Scores, then P in steps of queries.
    real slopes[query_block * key_block];  // dP, then dS in steps of queries,
    real slopes_along[terms > 1 ? query_block *key_block / terms : 1]; // and of keys.
    real keys_turned[width_max / terms * HK_PANEL];
    real values_turned[width_max / terms * HK_PANEL];
    real keys[width_max / terms * HK_PANEL];
    real dk[width_max * HK_PANEL];
    real dv[width_max * HK_PANEL];
    real queries[width_max / terms * HK_PANEL], query_rows[room_size];
    real dout[width_max / terms * HK_PANEL], dout_rows[room_size];
    real delta[query_block];
} __attribute__((aligned(64)));

// Sums over queries: in the scratch, or in place when they are too wide.
struct sums {
    real *at;
    int64_t row, columns;
};

// out[i, j] = sum over p of x[i, p] * y[j, p] for the rows of the block and the keys j that they see.
// `turned` holds y, transposed; when it is too wide for that, a part of it at a time. Meanwhile
// wishes are asked for.
static void block_scores(real *out, const struct side *x, const real *y, int64_t y_row,
                         real *turned, const struct hk_sdpa_dims *d, const struct block *b,
                         struct wishes *wishes) {
    struct left left = x->left;
    for (int64_t at = 0; at == 0 || at < x->width; at += width_max) {
        const int64_t width = at_most(x->width - at, width_max);
        if (x->width > width_max) {
            pack_rows_turned(turned, y + at, y_row, width, b->keys);
            left = left_rows(x->room, x->at + at, x->row, b->queries, width);
        }
        for (int64_t from = 0; from < b->queries; from += tile_rows) {
            const int64_t count = at_most(b->queries - from, tile_rows);
            const struct range keys = whole_vectors(keys_of_any(d, b, from, count));
            if (is_empty(keys)) continue;
            struct tile tile = {
                .out = out + from * key_block + keys.begin,
                .out_row = key_block,
                .x = left.at + from * left.row,
                .x_row = left.row,
                .x_depth = 1,
                .panel = (const operand *)turned + keys.begin,
                .depth = steps(width),
                .columns = keys.end - keys.begin,
                .write = at > 0 ? HK_ADD : HK_STORE,
            };
            tile_ask(&tile, wishes);
            tile_rows_run(tile, count);
        }
    }
}

// Rows of a step on their way from scores and dP to P and dS. The fields after `at` are by row.
struct slopes {
    const real *weights, *slopes; // Scores and dP,
    operand *p, *ds, *along;      // and what becomes of them.
    struct range seen[terms];
    vec shift[terms], delta[terms];
    vec factor, scale;
};

// For the keys `keys`, whole vectors. P and dS are 0 where a row does not see the key. Scores with a cap are those that
// bend_scores left: dS is its slope, 1 - tanh^2, times that of the others.
HK_INLINE void slope_keys(const struct slopes *s, struct range keys, bool hides, bool capped) {
    for (int64_t j = keys.begin; j < keys.end; j += lanes) {
        vec weight[terms], slope[terms];
        for (int u = 0; u < terms; u++) {
            const vec score = vec_load(s->weights + u * key_block + j);
            const vec change = vec_load(s->slopes + u * key_block + j);
            weight[u] = vec_exp2(score * s->factor - s->shift[u]);
            slope[u] = weight[u] * (change * s->scale - s->delta[u]);
            if (capped) slope[u] *= 1 - score * score;
            if (!hides) continue;
            const mask inside = lanes_in(s->seen[u].begin - j, s->seen[u].end - j);
            weight[u] = (vec)((mask)weight[u] & inside);
            slope[u] = (vec)((mask)slope[u] & inside);
        }
        store_steps(s->p + j, weight);
        store_steps(s->ds + j, slope);
        for (int u = 0; u < terms; u++) {
            store_along(s->along + u * panel_steps + j / terms, slope[u]);
        }
    }
}

// The keys of `any`: of these, all rows see those of `all`. Both are whole vectors.
HK_INLINE void slope_ranges(const struct slopes *s, struct range any, struct range all,
                            bool capped) {
    slope_keys(s, all, false, capped);
    slope_keys(s, (struct range){any.begin, all.begin}, true, capped);
    slope_keys(s, (struct range){all.end, any.end}, true, capped);
}

static void slope_capped(struct slopes *s, real *scores, const struct hk_sdpa_dims *d,
                         struct range any, struct range all) {
    for (int u = 0; u < terms; u++) {
        bend_scores(scores + u * key_block + any.begin, any.end - any.begin,
                    (real)(d->scale / d->cap));
    }
    s->factor = vec_all((real)(d->cap * HK_LOG2_E));
    slope_ranges(s, any, all, true);
}

// From scores and dP of the rows of a step to P and dS, as operands: in steps of rows in place, and
// dS along the keys. Zeros where a tile may read beside what the rows see.
static void slope_rows(struct scratch *s, const struct hk_sdpa_dims *d, const struct block *b,
                       int64_t row, const real *lse) {
    struct slopes rows = {
        .weights = s->weights + row * key_block,
        .slopes = s->slopes + row * key_block,
        .p = (operand *)s->weights + row / terms * key_block,
        .ds = (operand *)s->slopes + row / terms * key_block,
        .along = (operand *)s->slopes_along + row * panel_steps,
        .factor = vec_all((real)(d->scale * HK_LOG2_E)),
        .scale = vec_all((real)d->scale),
    };
    struct range any = {key_block, 0}, all = {0, key_block};
    for (int u = 0; u < terms; u++) {
        const bool is_row = row + u < b->queries;
        rows.seen[u] = is_row ? keys_of_any(d, b, row + u, 1) : (struct range){0, 0};
        rows.shift[u] = vec_all(is_row ? lse[row + u] * (real)HK_LOG2_E : 0);
        rows.delta[u] = vec_all(is_row ? s->delta[row + u] * (real)d->scale : 0);
        all.begin = at_least(all.begin, rows.seen[u].begin);
        all.end = at_most(all.end, rows.seen[u].end);
        if (!is_row) continue;
        any.begin = at_most(any.begin, rows.seen[u].begin);
        any.end = at_least(any.end, rows.seen[u].end);
    }
    const int64_t begin = at_most(any.begin - tile_rows, first_read(d, b, row));
    any = whole_vectors(range_in(begin, any.end + tile_rows, key_block));
    // Whole vectors that all rows see; beside them, keys that are hidden from some.
    all.begin = at_most((all.begin + lanes - 1) / lanes * lanes, any.end);
    all.end = at_least(all.end / lanes * lanes, all.begin);
    if (d->cap > 0) {
        slope_capped(&rows, s->weights + row * key_block, d, any, all);
    } else {
        slope_ranges(&rows, any, all, false);
    }
}

// sums[j, :] += sum over the rows i that see key j of x[i, j] * from[i, :]: dV and dK. x in steps of
// rows.
static void add_to_keys(struct sums sums, const real *x, const struct side *from,
                        const struct hk_sdpa_dims *d, const struct block *b,
                        struct wishes *wishes) {
    for (int64_t c = 0; c < from->width; c += HK_PANEL) {
        real *panel = from->panel + c * panel_steps;
        if (from->width > width_max) {
            panel = from->panel;
            pack_rows(panel, from->at + c, from->row, b->queries, from->width - c);
        }
        for (int64_t j = 0; j < b->keys; j += tile_rows) {
            const int64_t count = at_most(b->keys - j, tile_rows);
            const struct range seeing = rows_of_any(d, b, j, count);
            if (is_empty(seeing)) continue;
            const int64_t first = seeing.begin / terms;
            struct tile tile = {
                .out = sums.at + j * sums.row + c,
                .out_row = sums.row,
                .x = (const operand *)x + first * key_block + j,
                .x_row = 1,
                .x_depth = key_block,
                .panel = (const operand *)panel + first * HK_PANEL,
                .depth = steps(seeing.end) - first,
                .columns = at_most(sums.columns - c, HK_PANEL),
                .write = HK_ADD,
            };
            tile_ask(&tile, wishes);
            tile_rows_run(tile, count);
        }
    }
}

// dq[i, :] += sum over j of dS[i, j] * k[j, :]. `panel` holds k, as far as it fits.
static void add_to_queries(const struct head *h, const struct scratch *s, real *panel,
                           const struct hk_sdpa_dims *d, const struct block *b) {
    const operand *slopes = (const operand *)(terms > 1 ? s->slopes_along : s->slopes);
    for (int64_t c = 0; c < d->width; c += HK_PANEL) {
        real *keys = panel + c * panel_steps;
        if (d->width > width_max) {
            keys = panel;
            pack_rows(keys, h->k + b->key * h->k_row + c, h->k_row, b->keys, d->width - c);
        }
        for (int64_t from = 0; from < b->queries; from += tile_rows) {
            const int64_t count = at_most(b->queries - from, tile_rows);
            const struct range seen = keys_of_any(d, b, from, count);
            if (is_empty(seen)) continue;
            const int64_t first = seen.begin / terms;
            const struct tile tile = {
                .out = h->dq + (b->query + from) * h->q_row + c,
                .out_row = h->q_row,
                .x = slopes + from * panel_steps + first,
                .x_row = panel_steps,
                .x_depth = 1,
                .panel = (const operand *)keys + first * HK_PANEL,
                .depth = steps(seen.end) - first,
                .columns = at_most(d->width - c, HK_PANEL),
                .write = HK_ADD,
            };
            tile_rows_run(tile, count);
        }
    }
}

// The size of a panel of a block of keys in the scratch; 0 when it does not fit.
HK_INLINE int64_t panel_size(int64_t width) {
    return width > width_max ? 0 : (width + HK_PANEL - 1) / HK_PANEL * HK_PANEL * panel_steps;
}

// By HK_PANEL columns.
static void pack_panels(real *panels, const real *from, int64_t row, int64_t rows, int64_t width) {
    for (int64_t c = 0; c < width; c += HK_PANEL) {
        pack_rows(panels + c * panel_steps, from + c, row, rows, width - c);
    }
}

// The sums for block `i` of the keys at hand.
static struct sums sums_of(real *scratch, real *out, int64_t out_row, int64_t width, int64_t i) {
    if (width > width_max) return (struct sums){out, out_row, width};
    const int64_t columns = (width + lanes - 1) / lanes * lanes;
    return (struct sums){scratch + i * key_block * columns, columns, columns};
}

static void clear_rows(real *to, int64_t row, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; i++) memset(to + i * row, 0, (size_t)width * sizeof *to);
}

// Block `i` of the keys at hand against a block of queries.
static void grad_of_block(const struct head *h, const struct hk_sdpa_dims *d, const struct block *b,
                          const struct side *q, const struct side *dout, struct scratch *s,
                          int64_t i, struct wishes *wishes) {
    block_scores(s->weights, q, h->k + b->key * h->k_row, h->k_row,
                 s->keys_turned + i * panel_size(d->width), d, b, wishes);
    block_scores(s->slopes, dout, h->v + b->key * h->v_row, h->v_row,
                 s->values_turned + i * panel_size(d->vwidth), d, b, wishes);
    for (int64_t row = 0; row < b->queries; row += terms) {
        slope_rows(s, d, b, row, h->lse + b->query);
    }
    real *dk = h->dk + b->key * h->k_row, *dv = h->dv + b->key * h->v_row;
    add_to_keys(sums_of(s->dv, dv, h->v_row, d->vwidth, i), s->weights, dout, d, b, wishes);
    add_to_keys(sums_of(s->dk, dk, h->k_row, d->width, i), s->slopes, q, d, b, wishes);
    add_to_queries(h, s, s->keys + i * panel_size(d->width), d, b);
}

// Turned and packed: the keys and values of block `i` that are read for all queries.
static void load_keys(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                      int64_t key, int64_t keys, int64_t i) {
    const real *k = h->k + key * h->k_row, *v = h->v + key * h->v_row;
    const struct sums dk = sums_of(s->dk, h->dk + key * h->k_row, h->k_row, d->width, i);
    const struct sums dv = sums_of(s->dv, h->dv + key * h->v_row, h->v_row, d->vwidth, i);
    clear_rows(dk.at, dk.row, keys, dk.columns);
    clear_rows(dv.at, dv.row, keys, dv.columns);
    if (d->vwidth <= width_max) {
        pack_rows_turned(s->values_turned + i * panel_size(d->vwidth), v, h->v_row, d->vwidth,
                         keys);
    }
    if (d->width > width_max) return;
    pack_rows_turned(s->keys_turned + i * panel_size(d->width), k, h->k_row, d->width, keys);
    pack_panels(s->keys + i * panel_size(d->width), k, h->k_row, keys, d->width);
}

static void store_keys(const struct head *h, const struct hk_sdpa_dims *d, const struct scratch *s,
                       int64_t key, int64_t keys, int64_t i) {
    const struct sums dk = sums_of((real *)s->dk, h->dk + key * h->k_row, h->k_row, d->width, i);
    const struct sums dv = sums_of((real *)s->dv, h->dv + key * h->v_row, h->v_row, d->vwidth, i);
    for (int64_t j = 0; j < keys; j++) {
        memmove(h->dk + (key + j) * h->k_row, dk.at + j * dk.row, (size_t)d->width * sizeof(real));
        memmove(h->dv + (key + j) * h->v_row, dv.at + j * dv.row, (size_t)d->vwidth * sizeof(real));
    }
}

// Head `i` of the group that `first` is the first head of.
static struct head head_of(struct head first, const struct hk_sdpa_dims *d, int64_t i) {
    first.dq += i * d->width;
    first.q += i * d->width;
    first.out += i * d->vwidth;
    first.dout += i * d->vwidth;
    first.lse += i * lse_row(d);
    return first;
}

static void fill_side(struct side *side, int64_t rows) {
    if (side->width > width_max) return;
    side->left = left_rows(side->room, side->at, side->row, rows, side->width);
    pack_panels(side->panel, side->at, side->row, rows, side->width);
}

// One head's block of queries against all blocks of the keys at hand.
static void grad_of_queries(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                            int64_t query, struct range keys, struct wishes *wishes) {
    const int64_t queries = at_most(d->positions - query, query_block);
    const real *out = h->out + query * h->out_row;
    struct side q = {.at = h->q + query * h->q_row, .row = h->q_row, .width = d->width};
    struct side dout = {.at = h->dout + query * h->out_row, .row = h->out_row, .width = d->vwidth};
    q.room = s->query_rows, q.panel = s->queries;
    dout.room = s->dout_rows, dout.panel = s->dout;
    for (int64_t i = 0; i < queries; i++) {
        s->delta[i] = row_dot(dout.at + i * h->out_row, out + i * h->out_row, d->vwidth);
    }
    fill_side(&q, queries);
    fill_side(&dout, queries);
    for (int64_t key = keys.begin; key < keys.end; key += key_block) {
        const struct block b = block_at(d, query, key);
        if (is_empty(keys_of_any(d, &b, 0, b.queries))) continue;
        grad_of_block(h, d, &b, &q, &dout, s, (key - keys.begin) / key_block, wishes);
    }
}

// The operands after a block of queries of a head: those of the next head; after all of them, the
// gradients of the keys at hand, and the next keys.
static struct wishes wishes_of(const struct head *h, const struct hk_sdpa_dims *d, int64_t query,
                               struct range keys, bool last) {
    struct wishes w = {0};
    wish_for(&w, h->q + query * h->q_row, h->q_row, d->width);
    wish_for(&w, h->dq + query * h->q_row, h->q_row, d->width);
    wish_for(&w, h->dout + query * h->out_row, h->out_row, d->vwidth);
    wish_for(&w, h->out + query * h->out_row, h->out_row, d->vwidth);
    if (!last) return w;
    w.count = 0; // There are no more queries.
    for (int64_t key = keys.begin; key < keys.end; key += key_block) {
        wish_for(&w, h->dk + key * h->k_row, h->k_row, d->width);
        wish_for(&w, h->dv + key * h->v_row, h->v_row, d->vwidth);
    }
    if (keys.end == d->positions) return w;
    for (int64_t key = keys.end; key < 2 * keys.end - keys.begin; key += key_block) {
        wish_for(&w, h->k + key * h->k_row, h->k_row, d->width);
        wish_for(&w, h->v + key * h->v_row, h->v_row, d->vwidth);
    }
    return w;
}

// The turns in which threads add their parts of dQ, for one group of heads in one batch. Several threads may
// work on it, each on some of the keys; done[i] counts the spans of keys that have been added to
// block i of the queries. NULL: one thread works on all of it.
struct turns {
    atomic_int *done;
    int64_t span; // Keys of one turn.
};

// The turn of the first keys that the block of queries sees.
static int64_t first_turn(const struct turns *t, const struct hk_sdpa_dims *d, int64_t query) {
    return first_key(d, query) / t->span;
}

static void await_turn(const struct turns *t, int64_t query, int64_t turn, int64_t first) {
    if (!t->done || turn == first) return;
    const atomic_int *done = &t->done[query / query_block];
    for (int spins = 0; atomic_load_explicit(done, memory_order_acquire) != turn; spins++) {
        if (spins > 1000) sched_yield();
    }
}

static void end_turn(const struct turns *t, int64_t query, int64_t turn) {
    if (!t->done) return;
    atomic_store_explicit(&t->done[query / query_block], (int)turn + 1, memory_order_release);
}

// The keys of one turn against all queries of all heads of the group.
static void grad_of_keys(const struct head *first, const struct hk_sdpa_dims *d,
                         const struct turns *t, int64_t turn, struct scratch *s) {
    const int64_t heads = d->heads / d->groups, key = turn * t->span;
    const struct range keys = {key, at_most(key + t->span, d->positions)};
    for (int64_t at = key; at < keys.end; at += key_block) {
        load_keys(first, d, s, at, at_most(keys.end - at, key_block), (at - key) / key_block);
    }
    const int64_t begin = d->causal ? key / query_block * query_block : 0;
    const int64_t end = queries_end(d, keys.end - 1);
    for (int64_t query = begin; query < end; query += query_block) {
        const int64_t queries = at_most(d->positions - query, query_block);
        await_turn(t, query, turn, first_turn(t, d, query));
        if (turn == first_turn(t, d, query)) {
            clear_rows(first->dq + query * first->q_row, first->q_row, queries, heads * d->width);
        }
        for (int64_t i = 0; i < heads; i++) {
            const struct head h = head_of(*first, d, i);
            const bool more = i + 1 < heads;
            const struct head next = head_of(*first, d, more ? i + 1 : 0);
            const int64_t after = more ? query : query + query_block;
            struct wishes wishes = wishes_of(&next, d, after, keys, after >= end);
            grad_of_queries(&h, d, s, query, keys, &wishes);
        }
        end_turn(t, query, turn);
    }
    for (int64_t at = key; at < keys.end; at += key_block) {
        store_keys(first, d, s, at, at_most(keys.end - at, key_block), (at - key) / key_block);
    }
}

// Keys of one turn: as many blocks as the scratch holds.
static int64_t span_of(const struct hk_sdpa_dims *d) {
    const int64_t size = at_least(panel_size(d->width), panel_size(d->vwidth));
    const bool fits = d->width <= width_max && d->vwidth <= width_max && size > 0;
    const int64_t room = width_max / terms * HK_PANEL;
    const int64_t blocks = fits ? at_most(room / size, panels_max) : 1;
    return blocks * key_block;
}

// The arrays of all heads.
struct arrays {
    real *dq, *dk, *dv;
    const real *dout, *q, *k, *v, *out, *lse;
};

// The first head of group g in batch b.
static struct head first_head(const struct arrays *a, const struct hk_sdpa_dims *d, int64_t b,
                              int64_t g) {
    const int64_t row = b * d->positions, head = g * (d->heads / d->groups);
    const int64_t q_at = (row * d->heads + head) * d->width;
    const int64_t out_at = (row * d->heads + head) * d->vwidth;
    const int64_t k_at = (row * d->groups + g) * d->width;
    const int64_t v_at = (row * d->groups + g) * d->vwidth;
    return (struct head){
        .dq = a->dq + q_at,
        .dk = a->dk + k_at,
        .dv = a->dv + v_at,
        .dout = a->dout + out_at,
        .q = a->q + q_at,
        .k = a->k + k_at,
        .v = a->v + v_at,
        .out = a->out + out_at,
        .lse = a->lse + (b * d->heads + head) * lse_row(d),
        .q_row = d->heads * d->width,
        .k_row = d->groups * d->width,
        .v_row = d->groups * d->vwidth,
        .out_row = d->heads * d->vwidth,
    };
}

// Group `i` of all batches: `turns` turns from `turn` on.
static void grad_of_group(const struct arrays *a, const struct hk_sdpa_dims *d, int64_t i,
                          const struct turns *t, int64_t turn, int64_t turns) {
    struct scratch scratch;
    memset(scratch.weights, 0, sizeof scratch.weights); // Masked weights are read, though not used.
    memset(scratch.slopes, 0, sizeof scratch.slopes);
    const struct head first = first_head(a, d, i / d->groups, i % d->groups);
    for (int64_t end = turn + turns; turn < end; turn++) grad_of_keys(&first, d, t, turn, &scratch);
}

enum { blocks_max = 4096 }; // Blocks of queries, whose turns can be told.

// Few groups: threads share them. Turns are handed out in ascending order, so that a thread that waits
// waits for one that has begun.
static void grad_in_turns(const struct arrays *a, const struct hk_sdpa_dims *d, int64_t span,
                          int64_t turns) {
    const int64_t groups = d->batch * d->groups;
    const int64_t blocks = (d->positions + query_block - 1) / query_block;
    atomic_int done[blocks_max], next = 0;
    for (int64_t i = 0; i < groups * blocks; i++) atomic_init(&done[i], 0);
#pragma omp parallel
    for (;;) {
        const int64_t item = atomic_fetch_add(&next, 1);
        if (item >= groups * turns) break;
        const int64_t group = item % groups;
        const struct turns t = {done + group * blocks, span};
        grad_of_group(a, d, group, &t, item / groups, 1);
    }
}

static void grad_of_all(const struct arrays *a, const struct hk_sdpa_dims *d) {
    const int64_t span = span_of(d), turns = (d->positions + span - 1) / span;
    const int64_t groups = d->batch * d->groups, threads = omp_get_max_threads();
    const int64_t blocks = (d->positions + query_block - 1) / query_block;
    if (threads > 1 && groups < 4 * threads && groups * blocks <= blocks_max) {
        grad_in_turns(a, d, span, turns);
        return;
    }
    const struct turns t = {NULL, span};
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < groups; i++) grad_of_group(a, d, i, &t, 0, turns);
}

#endif
