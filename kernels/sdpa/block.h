// block: what forward and backward of sdpa share: a block of queries of one head against a block
// of keys of its group.
#ifndef HECATE_KERNELS_SDPA_BLOCK_H
#define HECATE_KERNELS_SDPA_BLOCK_H

#include "kernels/cpu/pack.h"
#include "kernels/cpu/row.h"
#include "kernels/cpu/tile.h"
#include "kernels/sdpa/sdpa.h"

// 96 queries are 16 full tiles; keys fill one panel. Packed values: as many panels as turned keys.
enum { query_block = 96, key_block = HK_PANEL, value_panels = depth_max / key_block };

// Queries [query, query + queries), keys [key, key + keys) of one head in one batch. Rows [low,
// high) of the block, relative to `query`, see at least one of the keys.
struct block {
    int64_t query, queries;
    int64_t key, keys;
    int64_t low, high;
};

HK_INLINE int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}

HK_INLINE int64_t at_least(int64_t a, int64_t b) {
    return a > b ? a : b;
}

HK_INLINE struct block block_at(const struct hk_sdpa_dims *d, int64_t query, int64_t key) {
    struct block b = {query, at_most(d->positions - query, query_block),
                      key,   at_most(d->positions - key, key_block),
                      0,     0};
    b.low = d->causal ? at_most(at_least(key - query, 0), b.queries) : 0;
    b.high = b.queries;
    if (d->window > 0) b.high = at_most(b.high, key + b.keys - 1 + d->window - query);
    return b;
}

// How many (query, key) pairs the mask leaves, over batch and heads.
HK_INLINE int64_t seen_pairs(const struct hk_sdpa_dims *d) {
    const int64_t p = d->positions, hidden = d->window > 0 ? at_least(p - d->window, 0) : 0;
    const int64_t pairs = d->causal ? p * (p + 1) / 2 : p * p;
    return d->batch * d->heads * (pairs - hidden * (hidden + 1) / 2);
}

// Elements of q, k, v and out together.
HK_INLINE int64_t sdpa_elements(const struct hk_sdpa_dims *d) {
    return d->batch * d->positions * (d->heads + d->groups) * (d->width + d->vwidth);
}

// The keys [*begin, *end) of the block that its row i sees.
HK_INLINE void seen_keys(const struct hk_sdpa_dims *d, const struct block *b, int64_t i,
                         int64_t *begin, int64_t *end) {
    const int64_t query = b->query + i;
    *begin = d->window > 0 ? at_least(query - d->window + 1 - b->key, 0) : 0;
    *end = d->causal ? at_most(query - b->key + 1, b->keys) : b->keys;
}

// Of the tile rows [from, from + count), relative to `query`: the keys that any of them sees.
HK_INLINE void keys_of_rows(const struct hk_sdpa_dims *d, const struct block *b, int64_t from,
                            int64_t count, int64_t *begin, int64_t *end) {
    int64_t ignored;
    seen_keys(d, b, from, begin, &ignored);
    seen_keys(d, b, from + count - 1, &ignored, end);
}

// Rows [low, high) of the block in tiles as even as tile_rows_run makes them: tile i of `tiles`.
HK_INLINE int64_t tile_begin(int64_t rows, int64_t i, int64_t tiles) {
    return rows * i / tiles;
}

// scores[i, j] = sum over p < width of x[i, p] * y[j, p] for rows i in [low, high) and the keys j
// that they see, and some more; x and scores at row 0 of the block, y at its first key. `turned`
// (depth_max * HK_PANEL) keeps y turned from call to call, as far as it fits: `fresh` says that y
// is another one than before.
HK_INLINE void block_scores(real *scores, const real *x, int64_t x_row, const real *y,
                            int64_t y_row, int64_t width, const struct hk_sdpa_dims *d,
                            const struct block *b, real *turned, bool fresh) {
    const int64_t rows = b->high - b->low, tiles = (rows + tile_rows - 1) / tile_rows;
    for (int64_t at = 0; at == 0 || at < width; at += depth_max) {
        const int64_t depth = at_most(width - at, depth_max);
        if (fresh || width > depth_max) pack_turned(turned, y + at, y_row, depth, b->keys);
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t from = b->low + tile_begin(rows, i, tiles);
            const int64_t count = b->low + tile_begin(rows, i + 1, tiles) - from;
            int64_t begin, end;
            keys_of_rows(d, b, from, count, &begin, &end);
            const struct tile tile = {
                .out = scores + from * key_block,
                .out_row = key_block,
                .x = x + from * x_row + at,
                .x_row = x_row,
                .x_depth = 1,
                .panel = turned,
                .depth = depth,
                .columns = (end + lanes - 1) / lanes * lanes, // Whole vectors: the rest is masked.
                .write = at > 0 ? HK_ADD : HK_STORE,
            };
            tile_rows_run(tile, count);
        }
    }
}

// out[i, :] += sum over the keys j that row i sees of x[i, j] * panel[j, :], rows in [low, high);
// x and out at row 0 of the block. x must be 0 where a row does not see a key.
HK_INLINE void block_product(real *out, int64_t out_row, const real *x, const real *panel,
                             int64_t columns, const struct hk_sdpa_dims *d, const struct block *b) {
    const int64_t rows = b->high - b->low, tiles = (rows + tile_rows - 1) / tile_rows;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t from = b->low + tile_begin(rows, i, tiles);
        const int64_t count = b->low + tile_begin(rows, i + 1, tiles) - from;
        int64_t begin, end;
        keys_of_rows(d, b, from, count, &begin, &end);
        const struct tile tile = {
            .out = out + from * out_row,
            .out_row = out_row,
            .x = x + from * key_block + begin,
            .x_row = key_block,
            .x_depth = 1,
            .panel = panel + begin * HK_PANEL,
            .depth = end - begin,
            .columns = at_most(columns, HK_PANEL),
            .write = HK_ADD,
        };
        tile_rows_run(tile, count);
    }
}

#endif
