// CPU twin of sdpa, forward: one block of queries of one head at a time, over all blocks of keys
// that it sees. The output row is the accumulator: it stays in cache.
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

// out[i, :] += weights[i, :] * v over the rows that see the block.
static void add_values(real *out, int64_t out_row, const real *weights, const real *v,
                       int64_t v_row, const struct block *b, int64_t vwidth) {
    real values[key_block * HK_PANEL] __attribute__((aligned(64)));
    for (int64_t c = 0; c < vwidth; c += HK_PANEL) {
        pack_panel(values, v + c, v_row, b->keys, vwidth - c);
        const struct tile tile = {
            .out = out + b->low * out_row + c,
            .out_row = out_row,
            .x = weights + b->low * key_block,
            .x_row = key_block,
            .x_depth = 1,
            .panel = values,
            .depth = b->keys,
            .columns = at_most(vwidth - c, HK_PANEL),
            .write = HK_ADD,
        };
        tile_rows_run(tile, b->high - b->low);
    }
}

// One block of queries: pointers are at position 0 of the head (q, out) and of its group (k, v).
static void attend(real *out, real *lse, const real *q, const real *k, const real *v,
                   const struct hk_sdpa_dims *d, int64_t query) {
    real scores[query_block * key_block] __attribute__((aligned(64)));
    real turned[depth_max * HK_PANEL] __attribute__((aligned(64)));
    struct running running;
    const int64_t q_row = d->heads * d->width, out_row = d->heads * d->vwidth;
    const int64_t k_row = d->groups * d->width, v_row = d->groups * d->vwidth;
    const int64_t queries = at_most(d->positions - query, query_block);

    q += query * q_row;
    out += query * out_row;
    for (int64_t i = 0; i < queries; i++) {
        running.peak[i] = -(real)INFINITY;
        running.total[i] = (vec){0};
        memset(out + i * out_row, 0, (size_t)d->vwidth * sizeof *out);
    }

    const int64_t end = d->causal ? query + queries : d->positions;
    const int64_t oldest = d->window > 0 ? at_least(query - d->window + 1, 0) : 0;
    for (int64_t key = oldest / key_block * key_block; key < end; key += key_block) {
        const struct block b = block_at(d, query, key);
        if (b.low >= b.high) continue;
        block_scores(scores + b.low * key_block, q + b.low * q_row, q_row, b.high - b.low,
                     k + key * k_row, k_row, b.keys, d->width, turned, true);
        fold_rows(scores, out, out_row, &running, d, &b);
        add_values(out, out_row, scores, v + key * v_row, v_row, &b, d->vwidth);
    }

    for (int64_t i = 0; i < queries; i++) {
        const real total = vec_sum(running.total[i]), share = 1 / total;
        for (int64_t c = 0; c < d->vwidth; c++) out[i * out_row + c] *= share;
        lse[query + i] = running.peak[i] + (real)log((double)total);
    }
}

HK_KERNEL(void, sdpa,
          (real * out, real *lse, const real *q, const real *k, const real *v,
           struct hk_sdpa_dims dims),
          (out, lse, q, k, v, dims)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    const int64_t share = dims.heads / dims.groups;
    // Dynamic: causal blocks differ in length, and who computes a block does not change it.
#pragma omp parallel for schedule(dynamic) collapse(3)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t h = 0; h < dims.heads; h++) {
            for (int64_t query = 0; query < dims.positions; query += query_block) {
                const int64_t row = b * dims.positions;
                const int64_t g = h / share;
                attend(out + (row * dims.heads + h) * dims.vwidth,
                       lse + (b * dims.heads + h) * dims.positions,
                       q + (row * dims.heads + h) * dims.width,
                       k + (row * dims.groups + g) * dims.width,
                       v + (row * dims.groups + g) * dims.vwidth, &dims, query);
            }
        }
    }
}
