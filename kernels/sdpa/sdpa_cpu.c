// CPU twin of sdpa, forward: a few panels of queries of one head, over all blocks of keys that they
// see. Scores are computed with the queries in the lanes, [keys][queries]: maxima and sums over keys
// are then sums of whole vectors, and keys are read where they lie.
#include "kernels/sdpa/block.h"

#include "kernels/cpu/pack.h"
#include "kernels/sdpa/weight.h"

enum { panels_max = 4, panel_vectors = HK_PANEL / lanes };

// What is known so far of a panel's queries, in powers of two: a bound of the scaled scores, and the
// sum of 2^(score - peak). The peak follows the largest score at a distance of at most `slack`.
struct running {
    vec peak[panel_vectors];
    vec total[panel_vectors];
};

static const real slack = 8;

struct scratch {
    real turned[depth_max * HK_PANEL]; // The panels of queries, as far as they fit,
    real sums[depth_max * HK_PANEL];   // and their outputs.
    real values[depth_max * key_block];
    real weights[key_block * HK_PANEL]; // Scores, then weights.
    struct running running[panels_max];
} __attribute__((aligned(64)));

// The arrays of one head in one batch, at position 0, and of its group.
struct head {
    real *out, *lse;
    const real *q, *k, *v;
    int64_t q_row, k_row, v_row, out_row;
};

// Where a panel's outputs are summed up: in the scratch, or in place when they are too wide.
struct sums {
    real *at;
    int64_t row, columns;
};

// turned[p, i] = q[i, p], its sign that of the scale: what is left of the scale is positive.
static void turn_queries(real *turned, const real *q, int64_t q_row, int64_t depth, int64_t queries,
                         const struct hk_sdpa_dims *d) {
    pack_turned(turned, q, q_row, depth, queries);
    if (d->scale >= 0) return;
    for (int64_t i = 0; i < depth * HK_PANEL; i++) turned[i] = -turned[i];
}

// What comes after the block: the next keys and values; the queries of the next panel, when these are
// the first keys; the outputs, when they are the last.
static struct wishes wishes_of(const struct head *h, const struct hk_sdpa_dims *d,
                               const struct block *b, bool fresh) {
    struct wishes w = {0};
    const int64_t key = b->key + key_block, query = b->query + query_block;
    if (fresh) {
        wish_for(&w, h->k + key * h->k_row, h->k_row, d->width);
        wish_for(&w, h->v + key * h->v_row, h->v_row, d->vwidth);
    }
    if (b->key == 0) wish_for(&w, h->q + query * h->q_row, h->q_row, d->width);
    if (b->key + b->keys >= (d->causal ? b->query + b->queries : d->positions)) {
        wish_for(&w, h->out + b->query * h->out_row, h->out_row, d->vwidth);
    }
    return w;
}

// weights[j, i] = sum over p of k[j, p] * q[i, p], for the keys and queries that see each other.
// `turned` holds the queries' panel; when it is too deep for that, a part of it at a time.
static void score_block(const struct head *h, const struct hk_sdpa_dims *d, const struct block *b,
                        real *turned, real *weights, struct wishes *wishes) {
    const real *k = h->k + b->key * h->k_row;
    const int64_t tiles = tiles_of(b->keys);
    for (int64_t at = 0; at == 0 || at < d->width; at += depth_max) {
        const int64_t depth = at_most(d->width - at, depth_max);
        if (d->width > depth_max) {
            turn_queries(turned, h->q + b->query * h->q_row + at, h->q_row, depth, b->queries, d);
        }
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t from = tile_begin(b->keys, i, tiles);
            const int64_t count = tile_begin(b->keys, i + 1, tiles) - from;
            const struct range rows = whole_vectors(rows_of_any(d, b, from, count));
            if (is_empty(rows)) continue;
            struct tile tile = {
                .out = weights + from * HK_PANEL + rows.begin,
                .out_row = HK_PANEL,
                .x = k + from * h->k_row + at,
                .x_row = h->k_row,
                .x_depth = 1,
                .panel = turned + rows.begin,
                .depth = depth,
                .columns = rows.end - rows.begin,
                .write = at > 0 ? HK_ADD : HK_STORE,
            };
            tile_ask(&tile, wishes);
            tile_rows_run(tile, count);
        }
    }
}

// Of the vector of rows from `row` on, hides the keys [begin, end) from those that do not see them.
static void mask_keys(real *column, const struct hk_sdpa_dims *d, const struct block *b,
                      int64_t row, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; j++) {
        real *scores = column + j * HK_PANEL;
        const int64_t distance = b->query + row - b->key - j; // Of the first row.
        for (int64_t i = 0; i < lanes; i++) {
            const bool seen =
                (!d->causal || distance + i >= 0) && (d->window <= 0 || distance + i < d->window);
            if (!seen) scores[i] = -(real)INFINITY;
        }
    }
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

// Scores of the vector of rows from `row` on to weights; zeros where a tile may read beside them.
// What the rows summed up before fades by the factor returned.
static vec weigh_vector(real *weights, struct running *run, const struct hk_sdpa_dims *d,
                        const struct block *b, int64_t row) {
    real *column = weights + row;
    const struct range keys = keys_of_any(d, b, row, lanes);
    const struct range all = keys_of_all(d, b, row, lanes);
    mask_keys(column, d, b, row, keys.begin, at_most(all.begin, keys.end));
    mask_keys(column, d, b, row, at_least(at_least(all.end, all.begin), keys.begin), keys.end);

    // Not 0: what is hidden has to stay infinitely low.
    const vec scale = vec_all((real)fmax(fabs(d->scale) * HK_LOG2_E, 1e-30));
    const vec before = run->peak[row / lanes];
    const vec highest = highest_score(column, keys) * scale;
    const vec peak = vec_select(highest > before + slack, highest, before);
    const vec fade = vec_exp2(before - peak);
    vec total = run->total[row / lanes] * fade;
    for (int64_t j = keys.begin; j < keys.end; j++) {
        real *at = column + j * HK_PANEL;
        const vec weight = vec_exp2(vec_load(at) * scale - peak);
        total += weight;
        vec_store(at, weight);
    }
    run->peak[row / lanes] = peak;
    run->total[row / lanes] = total;
    for (int64_t j = at_least(keys.begin - tile_rows, 0); j < keys.begin; j++) {
        vec_store(column + j * HK_PANEL, (vec){0});
    }
    for (int64_t j = keys.end; j < at_most(keys.end + tile_rows, b->keys); j++) {
        vec_store(column + j * HK_PANEL, (vec){0});
    }
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
    const bool fits = d->vwidth <= depth_max;
    const int64_t tiles = tiles_of(b->queries);
    for (int64_t c = 0; c < d->vwidth; c += HK_PANEL) {
        real *panel = s->values + (fits ? c * key_block : 0);
        if (fresh || !fits) {
            pack_panel(panel, h->v + b->key * h->v_row + c, h->v_row, b->keys, d->vwidth - c);
        }
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t from = tile_begin(b->queries, i, tiles);
            const int64_t count = tile_begin(b->queries, i + 1, tiles) - from;
            const struct range keys = keys_of_any(d, b, from, count);
            if (is_empty(keys)) continue;
            struct tile tile = {
                .out = sums.at + from * sums.row + c,
                .out_row = sums.row,
                .x = s->weights + keys.begin * HK_PANEL + from,
                .x_row = 1,
                .x_depth = HK_PANEL,
                .panel = panel + keys.begin * HK_PANEL,
                .depth = keys.end - keys.begin,
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
    if (d->vwidth > depth_max) {
        return (struct sums){h->out + query * h->out_row, h->out_row, d->vwidth};
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
    if (d->width > depth_max) return;
    real *turned = s->turned + panel * HK_PANEL * d->width;
    turn_queries(turned, h->q + query * h->q_row, h->q_row, d->width, queries, d);
}

static void end_panel(const struct head *h, const struct hk_sdpa_dims *d, struct scratch *s,
                      int64_t query, int64_t queries, int64_t panel) {
    const struct running *run = &s->running[panel];
    const struct sums sums = sums_of(h, d, s, query, panel);
    real total[HK_PANEL], lse[HK_PANEL];
    memcpy(total, run->total, sizeof total);
    memcpy(lse, run->peak, sizeof lse);
#pragma omp simd
    for (int64_t i = 0; i < HK_PANEL; i++) lse[i] = (lse[i] + real_log2(total[i])) * (real)HK_LN_2;
    for (int64_t i = 0; i < queries; i++) {
        const real share = 1 / total[i];
        const real *sum = sums.at + i * sums.row;
        real *out = h->out + (query + i) * h->out_row;
        for (int64_t c = 0; c < d->vwidth; c++) out[c] = sum[c] * share;
        h->lse[query + i] = lse[i];
    }
}

// `queries` queries from `query` on: the work item.
static void attend(const struct head *h, const struct hk_sdpa_dims *d, int64_t query,
                   int64_t queries) {
    struct scratch s;
    const int64_t panels = (queries + HK_PANEL - 1) / HK_PANEL;
    const int64_t end = d->causal ? query + queries : d->positions;
    const int64_t oldest = d->window > 0 ? at_least(query - d->window + 1, 0) : 0;
    const int64_t begin = oldest / key_block * key_block;
    for (int64_t key = begin; key < end; key += key_block) {
        bool fresh = true;
        for (int64_t p = 0; p < panels; p++) {
            const struct block b = block_at(d, query + p * HK_PANEL, key);
            if (key == begin) begin_panel(h, d, &s, b.query, b.queries, p);
            if (is_empty(keys_of_any(d, &b, 0, b.queries))) continue;
            const struct sums sums = sums_of(h, d, &s, b.query, p);
            real *turned = s.turned + (d->width > depth_max ? 0 : p * HK_PANEL * d->width);
            struct wishes wishes = wishes_of(h, d, &b, fresh);
            score_block(h, d, &b, turned, s.weights, &wishes);
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
    const int64_t panels = at_least(at_most(depth_max / widest, panels_max), 1);
    const int64_t items = d->batch * d->heads * ((d->positions - 1) / (panels * HK_PANEL) + 1);
    return HK_PANEL * (items >= 4 * omp_get_max_threads() ? panels : 1);
}

HK_KERNEL(void, sdpa,
          (real * out, real *lse, const real *q, const real *k, const real *v,
           struct hk_sdpa_dims dims),
          (out, lse, q, k, v, dims),
          HK_ATTENTION(2 * seen_pairs(&dims) * (dims.width + dims.vwidth), sdpa_elements(&dims),
                       "batch positions heads groups width vwidth", dims.batch, dims.positions,
                       dims.heads, dims.groups, dims.width, dims.vwidth)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    const int64_t share = dims.heads / dims.groups, item = queries_of_item(&dims);
    // Dynamic: causal blocks differ in length, and who computes a block does not change it.
#pragma omp parallel for schedule(dynamic) collapse(3)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t h = 0; h < dims.heads; h++) {
            for (int64_t query = 0; query < dims.positions; query += item) {
                const int64_t row = b * dims.positions;
                const int64_t g = h / share;
                const struct head head = {
                    .out = out + (row * dims.heads + h) * dims.vwidth,
                    .lse = lse + (b * dims.heads + h) * dims.positions,
                    .q = q + (row * dims.heads + h) * dims.width,
                    .k = k + (row * dims.groups + g) * dims.width,
                    .v = v + (row * dims.groups + g) * dims.vwidth,
                    .q_row = dims.heads * dims.width,
                    .k_row = dims.groups * dims.width,
                    .v_row = dims.groups * dims.vwidth,
                    .out_row = dims.heads * dims.vwidth,
                };
                attend(&head, &dims, query, at_most(dims.positions - query, item));
            }
        }
    }
}
