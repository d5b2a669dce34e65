// CPU twin of sdpa, forward: a few blocks of queries of one head at a time, over all blocks of keys
// that they see. The output row is the accumulator: it stays in cache.
#include "kernels/sdpa/block.h"

// What is known of each query of the block so far: the largest score, the sum of exp(score - peak)
// lane by lane, and by how much the last block of keys made earlier weights fade.
struct running {
    real peak[query_block];
    real fade[query_block];
    vec total[query_block];
};

// Scores of row i, scaled and masked in place; returns the largest.
static real mask_row(real *scores, const struct hk_sdpa_dims *d, const struct block *b, int64_t i) {
    const real scale = (real)d->scale;
    int64_t begin, end;
    seen_keys(d, b, i, &begin, &end);
    for (int64_t j = 0; j < key_block; j++) scores[j] *= scale;
    for (int64_t j = 0; j < begin; j++) scores[j] = -(real)INFINITY;
    for (int64_t j = end; j < key_block; j++) scores[j] = -(real)INFINITY;
    return row_max(scores, key_block);
}

// Scores to weights exp(score - peak), and what came before to the new peak. Three passes over the
// rows, so that no row waits for the result of one.
static void fold_rows(real *scores, real *out, int64_t out_row, struct running *run,
                      const struct hk_sdpa_dims *d, const struct block *b) {
    for (int64_t i = b->low; i < b->high; i++) {
        const real highest = mask_row(scores + i * key_block, d, b, i);
        run->fade[i] = run->peak[i];
        if (highest > run->peak[i]) run->peak[i] = highest;
    }
#pragma omp simd
    for (int64_t i = b->low; i < b->high; i++) {
        run->fade[i] = HK_REAL(exp)(run->fade[i] - run->peak[i]);
    }
    for (int64_t i = b->low; i < b->high; i++) {
        real *weights = scores + i * key_block;
        const real peak = run->peak[i], fade = run->fade[i];
#pragma omp simd
        for (int64_t j = 0; j < key_block; j++) weights[j] = HK_REAL(exp)(weights[j] - peak);
        vec total = run->total[i] * fade;
        for (int64_t j = 0; j < key_block; j += lanes) total += vec_load(weights + j);
        run->total[i] = total;
        if (fade == 1) continue;
        real *row = out + i * out_row;
#pragma omp simd
        for (int64_t c = 0; c < d->vwidth; c++) row[c] *= fade;
    }
}

// The work item: blocks of queries of one head that share what is packed of each block of keys.
enum { shared_blocks = 4 };

struct scratch {
    real scores[query_block * key_block];
    real turned[depth_max * HK_PANEL];                // A block of keys,
    real values[value_panels * key_block * HK_PANEL]; // and of values.
    struct running running[shared_blocks];
} __attribute__((aligned(64)));

// out[i, :] += weights[i, :] * v. Values are packed once, as far as they fit.
static void add_values(real *out, int64_t out_row, const real *v, int64_t v_row,
                       const struct hk_sdpa_dims *d, const struct block *b, struct scratch *s,
                       bool fresh) {
    const bool fits = d->vwidth <= value_panels * HK_PANEL;
    for (int64_t c = 0; c < d->vwidth; c += HK_PANEL) {
        real *panel = s->values + (fits ? c * key_block : 0);
        if (fresh || !fits) pack_panel(panel, v + c, v_row, b->keys, d->vwidth - c);
        block_product(out + c, out_row, s->scores, panel, d->vwidth - c, d, b);
    }
}

// `queries` queries from `query` on; pointers are at position 0 of the head (q, out) and of its
// group (k, v).
static void attend(real *out, real *lse, const real *q, const real *k, const real *v,
                   const struct hk_sdpa_dims *d, int64_t query, int64_t queries) {
    struct scratch s;
    const int64_t q_row = d->heads * d->width, out_row = d->heads * d->vwidth;
    const int64_t k_row = d->groups * d->width, v_row = d->groups * d->vwidth;
    memset(s.scores, 0, sizeof s.scores);
    for (int64_t i = 0; i < queries; i++) {
        s.running[i / query_block].peak[i % query_block] = -(real)INFINITY;
        s.running[i / query_block].total[i % query_block] = (vec){0};
        memset(out + (query + i) * out_row, 0, (size_t)d->vwidth * sizeof *out);
    }

    const int64_t end = d->causal ? query + queries : d->positions;
    const int64_t oldest = d->window > 0 ? at_least(query - d->window + 1, 0) : 0;
    for (int64_t key = oldest / key_block * key_block; key < end; key += key_block) {
        bool fresh = true;
        for (int64_t i = 0; i < queries; i += query_block) {
            const struct block b = block_at(d, query + i, key);
            if (b.low >= b.high) continue;
            real *rows = out + (query + i) * out_row;
            block_scores(s.scores, q + (query + i) * q_row, q_row, k + key * k_row, k_row, d->width,
                         d, &b, s.turned, fresh);
            fold_rows(s.scores, rows, out_row, &s.running[i / query_block], d, &b);
            add_values(rows, out_row, v + key * v_row, v_row, d, &b, &s, fresh);
            fresh = false;
        }
    }

    for (int64_t i = 0; i < queries; i++) {
        const struct running *run = &s.running[i / query_block];
        const real total = vec_sum(run->total[i % query_block]), share = 1 / total;
        real *row = out + (query + i) * out_row;
        for (int64_t c = 0; c < d->vwidth; c++) row[c] *= share;
        lse[query + i] = run->peak[i % query_block] + (real)log((double)total);
    }
}

// Queries of one work item: as many as can share, unless threads would have none.
static int64_t queries_of_item(const struct hk_sdpa_dims *d) {
    const int64_t shared = query_block * shared_blocks;
    const int64_t items = d->batch * d->heads * ((d->positions + shared - 1) / shared);
    return items >= 4 * omp_get_max_threads() ? shared : query_block;
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
                attend(out + (row * dims.heads + h) * dims.vwidth,
                       lse + (b * dims.heads + h) * dims.positions,
                       q + (row * dims.heads + h) * dims.width,
                       k + (row * dims.groups + g) * dims.width,
                       v + (row * dims.groups + g) * dims.vwidth, &dims, query,
                       at_most(dims.positions - query, item));
            }
        }
    }
}
