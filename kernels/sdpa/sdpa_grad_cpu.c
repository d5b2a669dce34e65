// CPU twin of sdpa, backward: for some blocks of keys, all blocks of queries of all heads of their
// group, so that weights are computed again once, gradients of keys and values are summed up in
// cache, and every gradient adds its terms in one order.
//
//   P = exp(scale Q K^T - lse)      dV += P^T dO       dP = dO V^T
//   dS = scale P (dP - delta)       dK += dS^T Q       dQ += dS K,   delta = rows of dO * O
#include "kernels/sdpa/block.h"

#include <sched.h>
#include <stdatomic.h>

#include "kernels/cpu/pack.h"
#include "kernels/cpu/row.h"
#include "kernels/sdpa/weight.h"

enum { panels_max = 2 };

// The arrays of one head in one batch, at position 0, and of its group.
struct head {
    real *dq, *dk, *dv;
    const real *dout, *q, *k, *v, *out, *lse;
    int64_t q_row, k_row, v_row, out_row;
};

// Panels of up to two blocks of keys, and of one block of queries; all as far as they fit.
struct scratch {
    real weights[query_block * key_block]; // Scores, then P.
    real slopes[query_block * key_block];  // dP, then dS.
    real keys_turned[depth_max * HK_PANEL];
    real values_turned[depth_max * HK_PANEL];
    real keys[depth_max * HK_PANEL];
    real dk[depth_max * HK_PANEL];
    real dv[depth_max * HK_PANEL];
    real queries[depth_max * HK_PANEL];
    real dout[depth_max * HK_PANEL];
    real delta[query_block];
} __attribute__((aligned(64)));

// Sums over queries: in the scratch, or in place when they are too wide.
struct sums {
    real *at;
    int64_t row, columns;
};

// What to read of a matrix: rows at `at`; what to do with it is said by the callee.
struct rows {
    const real *at;
    int64_t row, width;
};

// out[i, j] = sum over p of x[i, p] * y[j, p] for the rows of the block and the keys j that they see.
// `turned` holds y, transposed; when it is too deep for that, a part of it at a time. Meanwhile
// wishes are asked for.
static void block_scores(real *out, struct rows x, struct rows y, real *turned,
                         const struct hk_sdpa_dims *d, const struct block *b,
                         struct wishes *wishes) {
    const int64_t tiles = tiles_of(b->queries);
    for (int64_t at = 0; at == 0 || at < x.width; at += depth_max) {
        const int64_t depth = at_most(x.width - at, depth_max);
        if (x.width > depth_max) pack_turned(turned, y.at + at, y.row, depth, b->keys);
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t from = tile_begin(b->queries, i, tiles);
            const int64_t count = tile_begin(b->queries, i + 1, tiles) - from;
            const struct range keys = whole_vectors(keys_of_any(d, b, from, count));
            if (is_empty(keys)) continue;
            struct tile tile = {
                .out = out + from * key_block + keys.begin,
                .out_row = key_block,
                .x = x.at + from * x.row + at,
                .x_row = x.row,
                .x_depth = 1,
                .panel = turned + keys.begin,
                .depth = depth,
                .columns = keys.end - keys.begin,
                .write = at > 0 ? HK_ADD : HK_STORE,
            };
            tile_ask(&tile, wishes);
            tile_rows_run(tile, count);
        }
    }
}

// From scores and dP of a row to P and dS, in place; zeros where a tile may read beside them.
static void slope_row(real *weights, real *slopes, struct range seen, real scale, real lse,
                      real delta) {
    const vec factor = vec_all(scale * (real)HK_LOG2_E), shift = vec_all(lse * (real)HK_LOG2_E);
    const struct range all =
        whole_vectors(range_in(seen.begin - tile_rows + 1, seen.end + tile_rows - 1, key_block));
    for (int64_t j = all.begin; j < all.end; j += lanes) {
        vec weight = vec_exp2(vec_load(weights + j) * factor - shift);
        vec slope = weight * (vec_load(slopes + j) - delta) * scale;
        if (j < seen.begin || j + lanes > seen.end) {
            const mask inside = lanes_in(seen.begin - j, seen.end - j);
            weight = (vec)((mask)weight & inside);
            slope = (vec)((mask)slope & inside);
        }
        vec_store(weights + j, weight);
        vec_store(slopes + j, slope);
    }
}

// sums[j, :] += sum over the rows i that see key j of x[i, j] * from[i, :]: dV and dK. `panel` holds
// `from`, as far as it fits.
static void add_to_keys(struct sums sums, const real *x, struct rows from, real *panel,
                        const struct hk_sdpa_dims *d, const struct block *b,
                        struct wishes *wishes) {
    const int64_t tiles = tiles_of(b->keys);
    for (int64_t c = 0; c < from.width; c += HK_PANEL) {
        real *rows = panel + c * query_block;
        if (from.width > depth_max) {
            rows = panel;
            pack_panel(rows, from.at + c, from.row, b->queries, from.width - c);
        }
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t j = tile_begin(b->keys, i, tiles);
            const int64_t count = tile_begin(b->keys, i + 1, tiles) - j;
            const struct range seeing = rows_of_any(d, b, j, count);
            if (is_empty(seeing)) continue;
            struct tile tile = {
                .out = sums.at + j * sums.row + c,
                .out_row = sums.row,
                .x = x + seeing.begin * key_block + j,
                .x_row = 1,
                .x_depth = key_block,
                .panel = rows + seeing.begin * HK_PANEL,
                .depth = seeing.end - seeing.begin,
                .columns = at_most(sums.columns - c, HK_PANEL),
                .write = HK_ADD,
            };
            tile_ask(&tile, wishes);
            tile_rows_run(tile, count);
        }
    }
}

// dq[i, :] += sum over j of slopes[i, j] * k[j, :]. `panel` holds k, as far as it fits.
static void add_to_queries(const struct head *h, const real *slopes, real *panel,
                           const struct hk_sdpa_dims *d, const struct block *b) {
    const int64_t tiles = tiles_of(b->queries);
    for (int64_t c = 0; c < d->width; c += HK_PANEL) {
        real *keys = panel + c * key_block;
        if (d->width > depth_max) {
            keys = panel;
            pack_panel(keys, h->k + b->key * h->k_row + c, h->k_row, b->keys, d->width - c);
        }
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t from = tile_begin(b->queries, i, tiles);
            const int64_t count = tile_begin(b->queries, i + 1, tiles) - from;
            const struct range seen = keys_of_any(d, b, from, count);
            if (is_empty(seen)) continue;
            struct tile tile = {
                .out = h->dq + (b->query + from) * h->q_row + c,
                .out_row = h->q_row,
                .x = slopes + from * key_block + seen.begin,
                .x_row = key_block,
                .x_depth = 1,
                .panel = keys + seen.begin * HK_PANEL,
                .depth = seen.end - seen.begin,
                .columns = at_most(d->width - c, HK_PANEL),
                .write = HK_ADD,
            };
            tile_rows_run(tile, count);
        }
    }
}

// What a block of keys or queries takes in the scratch; nothing when it does not fit.
HK_INLINE int64_t panel_size(int64_t width) {
    return width > depth_max ? 0 : (width + HK_PANEL - 1) / HK_PANEL * HK_PANEL * HK_PANEL;
}

// [columns in panels][rows][HK_PANEL]: panels of as many rows as a block may have.
static void pack_panels(real *panels, const real *from, int64_t row, int64_t rows, int64_t width) {
    for (int64_t c = 0; c < width; c += HK_PANEL) {
        pack_panel(panels + c * HK_PANEL, from + c, row, rows, width - c);
    }
}

// The sums for block `i` of the keys at hand.
static struct sums sums_of(real *scratch, real *out, int64_t out_row, int64_t width, int64_t i) {
    if (width > depth_max) return (struct sums){out, out_row, width};
    const int64_t columns = (width + lanes - 1) / lanes * lanes;
    return (struct sums){scratch + i * key_block * columns, columns, columns};
}

static void clear_rows(real *to, int64_t row, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; i++) memset(to + i * row, 0, (size_t)width * sizeof *to);
}

// Block `i` of the keys at hand against a block of queries.
static void grad_of_block(const struct head *h, const struct hk_sdpa_dims *d, const struct block *b,
                          struct scratch *s, int64_t i, struct wishes *wishes) {
    const struct rows q = {h->q + b->query * h->q_row, h->q_row, d->width};
    const struct rows k = {h->k + b->key * h->k_row, h->k_row, d->width};
    const struct rows v = {h->v + b->key * h->v_row, h->v_row, d->vwidth};
    const struct rows dout = {h->dout + b->query * h->out_row, h->out_row, d->vwidth};
    block_scores(s->weights, q, k, s->keys_turned + i * panel_size(d->width), d, b, wishes);
    block_scores(s->slopes, dout, v, s->values_turned + i * panel_size(d->vwidth), d, b, wishes);
    for (int64_t row = 0; row < b->queries; row++) {
        slope_row(s->weights + row * key_block, s->slopes + row * key_block,
                  keys_of_any(d, b, row, 1), (real)d->scale, h->lse[b->query + row], s->delta[row]);
    }
    real *dk = h->dk + b->key * h->k_row, *dv = h->dv + b->key * h->v_row;
    add_to_keys(sums_of(s->dv, dv, h->v_row, d->vwidth, i), s->weights, dout, s->dout, d, b,
                wishes);
    add_to_keys(sums_of(s->dk, dk, h->k_row, d->width, i), s->slopes, q, s->queries, d, b, wishes);
    add_to_queries(h, s->slopes, s->keys + i * panel_size(d->width), d, b);
}

// Turned and packed: what is read of the keys and values of block `i`, for all queries.
static void load_keys(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                      int64_t key, int64_t keys, int64_t i) {
    const real *k = h->k + key * h->k_row, *v = h->v + key * h->v_row;
    const struct sums dk = sums_of(s->dk, h->dk + key * h->k_row, h->k_row, d->width, i);
    const struct sums dv = sums_of(s->dv, h->dv + key * h->v_row, h->v_row, d->vwidth, i);
    clear_rows(dk.at, dk.row, keys, dk.columns);
    clear_rows(dv.at, dv.row, keys, dv.columns);
    if (d->vwidth <= depth_max) {
        pack_turned(s->values_turned + i * panel_size(d->vwidth), v, h->v_row, d->vwidth, keys);
    }
    if (d->width > depth_max) return;
    pack_turned(s->keys_turned + i * panel_size(d->width), k, h->k_row, d->width, keys);
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
    first.lse += i * d->positions;
    return first;
}

// One head's block of queries against all blocks of the keys at hand.
static void grad_of_queries(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                            int64_t query, struct range keys, struct wishes *wishes) {
    const int64_t queries = at_most(d->positions - query, query_block);
    const real *q = h->q + query * h->q_row;
    const real *dout = h->dout + query * h->out_row, *out = h->out + query * h->out_row;
    for (int64_t i = 0; i < queries; i++) {
        s->delta[i] = row_dot(dout + i * h->out_row, out + i * h->out_row, d->vwidth);
    }
    if (d->width <= depth_max) pack_panels(s->queries, q, h->q_row, queries, d->width);
    if (d->vwidth <= depth_max) pack_panels(s->dout, dout, h->out_row, queries, d->vwidth);
    for (int64_t key = keys.begin; key < keys.end; key += key_block) {
        const struct block b = block_at(d, query, key);
        if (is_empty(keys_of_any(d, &b, 0, b.queries))) continue;
        grad_of_block(h, d, &b, s, (key - keys.begin) / key_block, wishes);
    }
}

// What comes after a block of queries of a head: those of the next head; after all of them, the
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

// Of one group of heads in one batch: where its parts are added to dQ in turn. Several threads may
// work on it, each on some of the keys; done[i] counts the spans of keys that have been added to
// block i of the queries. NULL: one thread works on all of it.
struct turns {
    atomic_int *done;
    int64_t span; // Keys of one turn.
};

// The turn of the first keys that the block of queries sees.
static int64_t first_turn(const struct turns *t, const struct hk_sdpa_dims *d, int64_t query) {
    return d->window > 0 ? at_least(query - d->window + 1, 0) / t->span : 0;
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
    const int64_t end =
        d->window > 0 ? at_most(keys.end - 1 + d->window, d->positions) : d->positions;
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
    const bool fits = d->width <= depth_max && d->vwidth <= depth_max && size > 0;
    const int64_t blocks = fits ? at_most(depth_max * HK_PANEL / size, panels_max) : 1;
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
        .lse = a->lse + (b * d->heads + head) * d->positions,
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
    memset(scratch.weights, 0, sizeof scratch.weights); // What is masked is read, though not used.
    memset(scratch.slopes, 0, sizeof scratch.slopes);
    const struct head first = first_head(a, d, i / d->groups, i % d->groups);
    for (int64_t end = turn + turns; turn < end; turn++) grad_of_keys(&first, d, t, turn, &scratch);
}

enum { blocks_max = 16384 }; // Of queries, whose turns can be told.

// Few groups: threads share them. Turns are handed out in ascending order, so that whoever waits
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

HK_KERNEL(void, sdpa_grad,
          (real * dq, real *dk, real *dv, const real *dout, const real *q, const real *k,
           const real *v, const real *out, const real *lse, struct hk_sdpa_dims dims),
          (dq, dk, dv, dout, q, k, v, out, lse, dims),
          HK_ATTENTION(2 * seen_pairs(&dims) * (3 * dims.width + 2 * dims.vwidth),
                       2 * sdpa_elements(&dims), "batch positions heads groups width vwidth",
                       dims.batch, dims.positions, dims.heads, dims.groups, dims.width,
                       dims.vwidth)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    const struct arrays a = {dq, dk, dv, dout, q, k, v, out, lse};
    grad_of_all(&a, &dims);
}
