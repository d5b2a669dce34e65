// block: shared by forward and backward of sdpa: the queries of one head that see the keys of its
// group, block by block and tile by tile.
#ifndef HECATE_KERNELS_SDPA_BLOCK_H
#define HECATE_KERNELS_SDPA_BLOCK_H

#include <omp.h>

#include "kernels/sdpa/document.h"
#include "kernels/sdpa/operand.h"
#include "kernels/sdpa/sdpa.h"

// A block is at most one panel of queries against one of keys.
enum { query_block = HK_PANEL, key_block = HK_PANEL };

// Queries [query, query + queries), keys [key, key + keys) of one head in one batch.
struct block {
    int64_t query, queries;
    int64_t key, keys;
};

// Positions [begin, end) of a block, relative to its first query or key.
struct range {
    int64_t begin, end;
};

HK_INLINE int64_t at_most(int64_t a, int64_t b) {
    return a < b ? a : b;
}

HK_INLINE int64_t at_least(int64_t a, int64_t b) {
    return a > b ? a : b;
}

// The part of [begin, end) that lies in [0, count); empty ranges stay inside, too.
HK_INLINE struct range range_in(int64_t begin, int64_t end, int64_t count) {
    const int64_t first = at_most(at_least(begin, 0), count);
    return (struct range){first, at_least(at_most(end, count), first)};
}

HK_INLINE struct block block_at(const struct hk_sdpa_dims *d, int64_t query, int64_t key) {
    return (struct block){query, at_most(d->positions - query, query_block), key,
                          at_most(d->positions - key, key_block)};
}

// The first key that a query sees, and the query behind the last one that sees a key, as far as masks look back.
HK_INLINE int64_t first_key(const struct hk_sdpa_dims *d, int64_t query) {
    const int64_t of_chunk = d->chunk > 0 ? query / d->chunk * d->chunk : 0;
    return d->window > 0 ? at_least(query - d->window + 1, of_chunk) : of_chunk;
}

HK_INLINE int64_t queries_end(const struct hk_sdpa_dims *d, int64_t key) {
    const int64_t of_chunk = d->chunk > 0 ? (key / d->chunk + 1) * d->chunk : d->positions;
    const int64_t end = at_most(of_chunk, d->positions);
    return d->window > 0 ? at_most(key + d->window, end) : end;
}

// The keys of the block that any of its rows [row, row + rows) sees.
HK_INLINE struct range keys_of_any(const struct hk_sdpa_dims *d, const struct block *b, int64_t row,
                                   int64_t rows) {
    const int64_t first = b->query + row, last = first + rows - 1;
    return range_in(first_key(d, first) - b->key, d->causal ? last + 1 - b->key : b->keys, b->keys);
}

// The keys that each of these rows sees.
HK_INLINE struct range keys_of_all(const struct hk_sdpa_dims *d, const struct block *b, int64_t row,
                                   int64_t rows) {
    const int64_t first = b->query + row, last = first + rows - 1;
    return range_in(first_key(d, last) - b->key, d->causal ? first + 1 - b->key : b->keys, b->keys);
}

// The rows of the block that see any of its keys [key, key + keys).
HK_INLINE struct range rows_of_any(const struct hk_sdpa_dims *d, const struct block *b, int64_t key,
                                   int64_t keys) {
    const int64_t first = b->key + key, last = first + keys - 1;
    return range_in(d->causal ? first - b->query : 0, queries_end(d, last) - b->query, b->queries);
}

// tanh of `count` scores times a factor, in place: multiplying by the cap remains to be done.
HK_INLINE void bend_scores(real *scores, int64_t count, real factor) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) scores[i] = HK_REAL(tanh)(scores[i] * factor);
}

// The first key of the block that a tile reads which has the row, and others before it.
HK_INLINE int64_t first_read(const struct hk_sdpa_dims *d, const struct block *b, int64_t row) {
    return keys_of_any(d, b, at_least(row - tile_rows, 0), 1).begin;
}

HK_INLINE bool is_empty(struct range r) {
    return r.begin >= r.end;
}

// A range widened to whole vectors: the scores beside it are masked or never read.
HK_INLINE struct range whole_vectors(struct range r) {
    return (struct range){r.begin / lanes * lanes, (r.end + lanes - 1) / lanes * lanes};
}

// How many (query, key) pairs the mask leaves, over batch and heads.
static inline int64_t seen_pairs(const struct hk_sdpa_dims *d) {
    const int64_t end = d->before + d->positions;
    int64_t pairs = 0;
    for (struct document at = {0}; d->begins && next_document(&at, d);) {
        const struct hk_sdpa_dims own = dims_of(&at, d);
        pairs += seen_pairs(&own);
    }
    if (d->begins) return pairs;
    for (int64_t query = d->before; query < end; query++)
        pairs += (d->causal ? query + 1 : end) - first_key(d, query);
    return d->batch * d->heads * pairs;
}

// Elements of q, k, v and out together.
HK_INLINE int64_t sdpa_elements(const struct hk_sdpa_dims *d) {
    return d->batch * d->positions * (d->heads + d->groups) * (d->width + d->vwidth);
}

// Operands of the near future: blocks of rows. Heads lie side by side in memory, so that no processor
// foresees them. Tiles ask for them while they compute, a cache line for each step of their depth.
struct wish {
    const real *at;
    int64_t row, columns;
};

enum { wishes_max = 8, wish_rows = HK_PANEL };

struct wishes {
    struct wish wish[wishes_max];
    int count, next;
    int64_t column, row; // The next one: asked for up to here.
};

HK_INLINE void wish_for(struct wishes *w, const real *at, int64_t row, int64_t columns) {
    assert(w->count < wishes_max);
    w->wish[w->count++] = (struct wish){at, row, columns};
}

HK_INLINE void tile_ask(struct tile *tile, struct wishes *w) {
    if (w->next == w->count) return;
    const struct wish *wish = &w->wish[w->next];
    tile->ahead = (const operand *)(wish->at + w->row * wish->row + w->column);
    tile->ahead_depth = wish->row;
    tile->ahead_tiles = 1;
    w->row += tile->depth;
    if (w->row < wish_rows) return;
    w->row = 0;
    w->column += line;
    if (w->column < wish->columns) return;
    w->column = 0;
    w->next++;
}

// From the lse of one head to that of the next.
HK_INLINE int64_t lse_row(const struct hk_sdpa_dims *d) {
    return d->apart ? d->apart : d->positions;
}

#define SDPA_WORK(flops, elements, d)                                                              \
    HK_ATTENTION(flops, elements, "batch positions heads groups width vwidth", (d).batch,          \
                 (d).positions, (d).heads, (d).groups, (d).width, (d).vwidth)
#define FORWARD_WORK(d)                                                                            \
    SDPA_WORK(2 * seen_pairs(&(d)) * ((d).width + (d).vwidth), sdpa_elements(&(d)), d)
#define BACKWARD_WORK(d)                                                                           \
    SDPA_WORK(2 * seen_pairs(&(d)) * (3 * (d).width + 2 * (d).vwidth), 2 * sdpa_elements(&(d)), d)

#endif
