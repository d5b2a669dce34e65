// forward: a few panels of queries of one head, over all blocks of keys that they
// see. Scores are computed with the queries in the lanes, [keys][queries]: maxima and sums over keys
// are then sums of whole vectors, and keys are read where they lie.
#ifndef HECATE_KERNELS_SDPA_FORWARD_H
#define HECATE_KERNELS_SDPA_FORWARD_H

#include "kernels/sdpa/block.h"
#include "kernels/sdpa/weight.h"

enum { panels_max = 4, panel_vectors = HK_PANEL / lanes };

// The state of a panel's queries, in powers of two: a bound of the scaled scores, and the
// sum of 2^(score - peak). The peak follows the largest score at a distance of at most `slack`.
struct running {
    vec peak[panel_vectors];
    vec total[panel_vectors];
};

static const real slack = 8;

// As many rows or columns as fit; wider ones are prepared piece by piece, every time.
struct scratch {
    real turned[width_max * HK_PANEL]; // The panels of queries,
    real sums[width_max * HK_PANEL];   // and their outputs.
    real keys[rounds ? width_max / terms * HK_PANEL : 1];
    real values[width_max * HK_PANEL / terms];
    real weights[key_block * HK_PANEL]; // Scores, then weights, as operands.
    struct running running[panels_max];
} __attribute__((aligned(64)));

// The arrays of one head in one batch, and of its group: keys and values from position 0 on, the rest from
// `first`.
struct head {
    int64_t first;
    real *out, *lse;
    const real *q, *k, *v;
    const real *sink; // Its logit, or NULL.
    int64_t q_row, k_row, v_row, out_row;
};

// Where a panel's outputs are summed up: in the scratch, or in place when they are too wide.
struct sums {
    real *at;
    int64_t row, columns;
};

// The operands after the block: the next keys and values; the queries of the next panel, when these are
// the first keys; the outputs, when they are the last.
static struct wishes wishes_of(const struct head *h, const struct hk_sdpa_dims *d,
                               const struct block *b, bool fresh) {
    struct wishes w = {0};
    const int64_t key = b->key + key_block, query = b->query + query_block;
    if (fresh) {
        wish_for(&w, h->k + key * h->k_row, h->k_row, d->width);
        wish_for(&w, h->v + key * h->v_row, h->v_row, d->vwidth);
    }
    if (b->key == 0) wish_for(&w, h->q + (query - h->first) * h->q_row, h->q_row, d->width);
    if (b->key + b->keys >= (d->causal ? b->query + b->queries : d->positions)) {
        wish_for(&w, h->out + (b->query - h->first) * h->out_row, h->out_row, d->vwidth);
    }
    return w;
}

// weights[j, i] = sum over p of k[j, p] * q[i, p], for the keys and queries that see each other.
// `turned` and `keys` hold them, unless they are too wide.
static void score_block(const struct head *h, const struct hk_sdpa_dims *d, const struct block *b,
                        real *turned, struct left keys, struct scratch *s, struct wishes *wishes) {
    for (int64_t at = 0; at == 0 || at < d->width; at += width_max) {
        const int64_t width = at_most(d->width - at, width_max);
        if (d->width > width_max) {
            const real *k = h->k + b->key * h->k_row + at;
            const real *q = h->q + (b->query - h->first) * h->q_row + at;
            pack_rows_turned(turned, q, h->q_row, width, b->queries);
            keys = left_rows(s->keys, k, h->k_row, b->keys, width);
        }
        for (int64_t from = 0; from < b->keys; from += tile_rows) {
            const int64_t count = at_most(b->keys - from, tile_rows);
            const struct range rows = whole_vectors(rows_of_any(d, b, from, count));
            if (is_empty(rows)) continue;
            struct tile tile = {
                .out = s->weights + from * HK_PANEL + rows.begin,
                .out_row = HK_PANEL,
                .x = keys.at + from * keys.row,
                .x_row = keys.row,
                .x_depth = 1,
                .panel = (const operand *)turned + rows.begin,
                .depth = steps(width),
                .columns = rows.end - rows.begin,
                .write = at > 0 ? HK_ADD : HK_STORE,
            };
            tile_ask(&tile, wishes);
            tile_rows_run(tile, count);
        }
    }
}

// In the vector of rows from `row` on, hides the keys [begin, end) from those that do not see them.
static void mask_keys(real *column, const struct hk_sdpa_dims *d, const struct block *b,
                      int64_t row, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j++) {
        const int64_t first = b->query + row, key = b->key + j;
        const struct range seen =
            range_in(d->causal ? key - first : 0, queries_end(d, key) - first, lanes);
        real *scores = column + j * HK_PANEL;
        const mask inside = lanes_in(seen.begin, seen.end);
        vec_store(scores, vec_select(inside, vec_load(scores), vec_all(-(real)INFINITY)));
    }
}

// Leaves scores that have to be multiplied by the cap.
static void cap_keys(real *column, const struct hk_sdpa_dims *d, struct range keys) {
    const real factor = (real)(d->scale / d->cap);
    for (int64_t j = keys.begin; j < keys.end; j++)
        bend_scores(column + j * HK_PANEL, lanes, factor);
}

static void negate_keys(real *column, struct range keys) {
    for (int64_t j = keys.begin; j < keys.end; j++) {
        vec_store(column + j * HK_PANEL, -vec_load(column + j * HK_PANEL));
    }
}

// Hides the keys [begin, end) from the whole vector of rows.
static void hide_keys(real *column, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j++)
        vec_store(column + j * HK_PANEL, vec_all(-(real)INFINITY));
}

// Steps [begin, end) of weights that a tile may read beside what its rows see.
static void clear_steps(real *column, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j++) vec_store(column + j * HK_PANEL, (vec){0});
}

HK_INLINE vec highest_score(const real *column, struct range keys) {
    vec top[4];
    for (int u = 0; u < 4; u++) top[u] = vec_all(-(real)INFINITY);
    int64_t j = keys.begin;
    for (; j + 4 <= keys.end; j += 4) {
        for (int u = 0; u < 4; u++) top[u] = vec_max(vec_load(column + (j + u) * HK_PANEL), top[u]);
    }
    for (; j < keys.end; j++) top[0] = vec_max(vec_load(column + j * HK_PANEL), top[0]);
    return vec_max(vec_max(top[0], top[1]), vec_max(top[2], top[3]));
}

// Scores of a vector of rows, below the peak, to weights, steps to steps: those of earlier keys are
// no longer needed. Returns their sum, key by key.
static vec weigh_keys(real *column, struct range keys, vec scale, vec peak, vec total) {
    hide_keys(column, keys.begin / terms * terms, keys.begin);
    hide_keys(column, keys.end, steps(keys.end) * terms);
    for (int64_t i = keys.begin / terms; i < steps(keys.end); i++) {
        const real *scores = column + i * terms * HK_PANEL;
        vec weight[terms];
        for (int u = 0; u < terms; u++) {
            weight[u] = vec_exp2(vec_load(scores + u * HK_PANEL) * scale - peak);
            total += weight[u];
        }
        store_steps((operand *)column + i * HK_PANEL, weight);
    }
    return total;
}

// Scores of the vector of rows from `row` on to weights. Earlier sums of the rows fade by the
// factor returned.
static vec weigh_vector(real *weights, struct running *run, const struct hk_sdpa_dims *d,
                        const struct block *b, int64_t row) {
    real *column = weights + row;
    const struct range keys = keys_of_any(d, b, row, lanes);
    const struct range all = keys_of_all(d, b, row, lanes);
    const double factor = d->cap > 0 ? d->cap : d->scale;
    if (d->cap > 0) cap_keys(column, d, keys);
    if (factor < 0) negate_keys(column, keys); // The rest of the factor is positive.
    mask_keys(column, d, b, row, keys.begin, at_most(all.begin, keys.end));
    mask_keys(column, d, b, row, at_least(at_least(all.end, all.begin), keys.begin), keys.end);

    // Not 0: hidden scores have to stay infinitely low.
    const vec scale = vec_all((real)fmax(fabs(factor) * HK_LOG2_E, 1e-30));
    const vec before = run->peak[row / lanes];
    const vec highest = highest_score(column, keys) * scale;
    const vec peak = vec_select(highest > before + slack, highest, before);
    const vec fade = vec_exp2(before - peak);
    run->peak[row / lanes] = peak;
    run->total[row / lanes] = weigh_keys(column, keys, scale, peak, run->total[row / lanes] * fade);
    clear_steps(column, first_read(d, b, row) / terms, keys.begin / terms);
    clear_steps(column, steps(keys.end), steps(at_most(keys.end + tile_rows, b->keys)));
    return fade;
}

static void weigh_block(real *weights, struct running *run, struct sums sums,
                        const struct hk_sdpa_dims *d, const struct block *b, bool first) {
    for (int64_t row = 0; row < b->queries; row += lanes) {
        const vec fade = weigh_vector(weights, run, d, b, row);
        if (first) continue; // The sums are still 0.
        for (int64_t i = 0; i < lanes && row + i < b->queries; i++) {
            if (fade[i] == 1) continue;
            real *sum = sums.at + (row + i) * sums.row;
            for (int64_t c = 0; c < sums.columns; c++) sum[c] *= fade[i];
        }
    }
}

// sums[i, :] += weights[:, i] * v. Values are packed for the first panel that sees the keys, as far
// as they fit.
static void add_values(struct sums sums, const struct head *h, const struct hk_sdpa_dims *d,
                       const struct block *b, struct scratch *s, bool fresh,
                       struct wishes *wishes) {
    const bool fits = d->vwidth <= width_max;
    for (int64_t c = 0; c < d->vwidth; c += HK_PANEL) {
        real *panel = s->values + (fits ? c * steps(key_block) : 0);
        if (fresh || !fits) {
            pack_rows(panel, h->v + b->key * h->v_row + c, h->v_row, b->keys, d->vwidth - c);
        }
        for (int64_t from = 0; from < b->queries; from += tile_rows) {
            const int64_t count = at_most(b->queries - from, tile_rows);
            const struct range keys = keys_of_any(d, b, from, count);
            if (is_empty(keys)) continue;
            const int64_t first = keys.begin / terms * HK_PANEL;
            struct tile tile = {
                .out = sums.at + from * sums.row + c,
                .out_row = sums.row,
                .x = (const operand *)s->weights + first + from,
                .x_row = 1,
                .x_depth = HK_PANEL,
                .panel = (const operand *)panel + first,
                .depth = steps(keys.end) - keys.begin / terms,
                .columns = at_most(sums.columns - c, HK_PANEL),
                .write = HK_ADD,
            };
            tile_ask(&tile, wishes);
            tile_rows_run(tile, count);
        }
    }
}

static struct sums sums_of(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                           int64_t query, int64_t panel) {
    if (d->vwidth > width_max) {
        return (struct sums){h->out + (query - h->first) * h->out_row, h->out_row, d->vwidth};
    }
    const int64_t columns = (d->vwidth + lanes - 1) / lanes * lanes;
    return (struct sums){s->sums + panel * HK_PANEL * columns, columns, columns};
}

static void begin_panel(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                        int64_t query, int64_t queries, int64_t panel) {
    const struct sums sums = sums_of(h, d, s, query, panel);
    for (int64_t i = 0; i < queries; i++) {
        memset(sums.at + i * sums.row, 0, (size_t)sums.columns * sizeof *sums.at);
    }
    for (int v = 0; v < panel_vectors; v++) {
        s->running[panel].peak[v] = vec_all(-HK_BIG);
        s->running[panel].total[v] = (vec){0};
    }
    if (d->width > width_max) return;
    real *turned = s->turned + panel * HK_PANEL * steps(d->width);
    pack_rows_turned(turned, h->q + (query - h->first) * h->q_row, h->q_row, d->width, queries);
}

// The logit of a sink joins the sums of weights. Returns what a vector of rows then fades by.
static vec add_sink(vec *peak, vec *total, real logit) {
    const vec sink = vec_all(logit * (real)HK_LOG2_E);
    const vec highest = vec_max(sink, *peak);
    const vec fade = vec_exp2(*peak - highest);
    *total = *total * fade + vec_exp2(sink - highest);
    *peak = highest;
    return fade;
}

static void end_panel(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                      int64_t query, int64_t queries, int64_t panel) {
    struct running *run = &s->running[panel];
    const struct sums sums = sums_of(h, d, s, query, panel);
    real total[HK_PANEL], lse[HK_PANEL], share[HK_PANEL];
    for (int v = 0; v < panel_vectors; v++) {
        const vec fade = h->sink ? add_sink(&run->peak[v], &run->total[v], *h->sink) : vec_all(1);
        vec_store(share + v * lanes, fade / run->total[v]);
    }
    memcpy(total, run->total, sizeof total);
    memcpy(lse, run->peak, sizeof lse);
#pragma omp simd
    for (int64_t i = 0; i < HK_PANEL; i++) lse[i] = (lse[i] + real_log2(total[i])) * (real)HK_LN_2;
    for (int64_t i = 0; i < queries; i++) {
        const real *sum = sums.at + i * sums.row;
        real *out = h->out + (query - h->first + i) * h->out_row;
        for (int64_t c = 0; c < d->vwidth; c++) out[c] = sum[c] * share[i];
        h->lse[query - h->first + i] = lse[i];
    }
}

// `queries` queries from `query` on: the work item.
static void attend(const struct head *h, const struct hk_sdpa_dims *d, int64_t query,
                   int64_t queries) {
    struct scratch s;
    const int64_t panels = (queries + HK_PANEL - 1) / HK_PANEL;
    const int64_t end = d->causal ? query + queries : d->positions;
    const int64_t begin = first_key(d, query) / key_block * key_block;
    const bool fits = d->width <= width_max;
    for (int64_t key = begin; key < end; key += key_block) {
        struct left keys = {0};
        bool fresh = true;
        for (int64_t p = 0; p < panels; p++) {
            const struct block b = block_at(d, query + p * HK_PANEL, key);
            if (key == begin) begin_panel(h, d, &s, b.query, b.queries, p);
            if (is_empty(keys_of_any(d, &b, 0, b.queries))) continue;
            if (fresh && fits) {
                keys = left_rows(s.keys, h->k + key * h->k_row, h->k_row, b.keys, d->width);
            }
            const struct sums sums = sums_of(h, d, &s, b.query, p);
            real *turned = s.turned + (fits ? p * HK_PANEL * steps(d->width) : 0);
            struct wishes wishes = wishes_of(h, d, &b, fresh);
            score_block(h, d, &b, turned, keys, &s, &wishes);
            weigh_block(s.weights, &s.running[p], sums, d, &b, key == 0);
            add_values(sums, h, d, &b, &s, fresh, &wishes);
            fresh = false;
        }
    }
    for (int64_t p = 0; p < panels; p++) {
        const int64_t at = p * HK_PANEL;
        end_panel(h, d, &s, query + at, at_most(queries - at, HK_PANEL), p);
    }
}

// Queries of one work item: as many panels as the scratch holds, unless threads would have none.
static int64_t queries_of_item(const struct hk_sdpa_dims *d) {
    const int64_t widest = at_least(at_least(d->width, d->vwidth), HK_PANEL);
    const int64_t panels = at_least(at_most(width_max / widest, panels_max), 1);
    const int64_t items = d->batch * d->heads * ((d->positions - 1) / (panels * HK_PANEL) + 1);
    return HK_PANEL * (items >= 4 * omp_get_max_threads() ? panels : 1);
}

static void attend_all(real *out, real *lse, const real *q, const real *k, const real *v,
                       const real *sinks, const struct hk_sdpa_dims *d) {
    const int64_t share = d->heads / d->groups, item = queries_of_item(d);
    struct hk_sdpa_dims all = *d; // With the positions before the first query.
    all.positions += d->before;
    // Dynamic: causal blocks differ in length, and any thread computes the same block.
#pragma omp parallel for schedule(dynamic) collapse(3)
    for (int64_t b = 0; b < d->batch; b++) {
        for (int64_t h = 0; h < d->heads; h++) {
            for (int64_t query = d->before; query < all.positions; query += item) {
                const int64_t row = b * d->positions;
                const int64_t g = h / share;
                const struct head head = {
                    .first = d->before,
                    .out = out + (row * d->heads + h) * d->vwidth,
                    .lse = lse + (b * d->heads + h) * lse_row(d),
                    .q = q + (row * d->heads + h) * d->width,
                    .k = k + ((row - d->before) * d->groups + g) * d->width,
                    .v = v + ((row - d->before) * d->groups + g) * d->vwidth,
                    .sink = sinks ? sinks + h : NULL,
                    .q_row = d->heads * d->width,
                    .k_row = d->groups * d->width,
                    .v_row = d->groups * d->vwidth,
                    .out_row = d->heads * d->vwidth,
                };
                attend(&head, &all, query, at_most(all.positions - query, item));
            }
        }
    }
}

#endif
