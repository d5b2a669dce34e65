// block: what forward and backward of sdpa share: a block of queries of one head against a block
// of keys of its group.
#ifndef HECATE_KERNELS_SDPA_BLOCK_H
#define HECATE_KERNELS_SDPA_BLOCK_H

#include "kernels/cpu/pack.h"
#include "kernels/cpu/row.h"
#include "kernels/cpu/tile.h"
#include "kernels/sdpa/sdpa.h"

// 96 queries are 16 full tiles; keys fill one panel.
enum { query_block = 96, key_block = HK_PANEL };

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

// The keys [*begin, *end) of the block that its row i sees.
HK_INLINE void seen_keys(const struct hk_sdpa_dims *d, const struct block *b, int64_t i,
                         int64_t *begin, int64_t *end) {
    const int64_t query = b->query + i;
    *begin = d->window > 0 ? at_least(query - d->window + 1 - b->key, 0) : 0;
    *end = d->causal ? at_most(query - b->key + 1, b->keys) : b->keys;
}

// scores[i, j] = sum over p < width of x[i, p] * y[j, p], i < rows, j < keys; scores has rows of
// key_block, 0 from `keys` on. `turned` (depth_max * HK_PANEL) keeps y turned from call to call,
// as far as it fits: `fresh` says that y is another one than before.
HK_INLINE void block_scores(real *scores, const real *x, int64_t x_row, int64_t rows, const real *y,
                            int64_t y_row, int64_t keys, int64_t width, real *turned, bool fresh) {
    for (int64_t begin = 0; begin == 0 || begin < width; begin += depth_max) {
        const int64_t depth = at_most(width - begin, depth_max);
        if (fresh || width > depth_max) pack_turned(turned, y + begin, y_row, depth, keys);
        const struct tile tile = {
            .out = scores,
            .out_row = key_block,
            .x = x + begin,
            .x_row = x_row,
            .x_depth = 1,
            .panel = turned,
            .depth = depth,
            .columns = key_block,
            .write = begin > 0 ? HK_ADD : HK_STORE,
        };
        tile_rows_run(tile, rows);
    }
}

#endif
