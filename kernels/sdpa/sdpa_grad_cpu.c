// CPU twin of sdpa, backward. One work item is a group of heads in one batch: blocks of keys
// outside, its heads and their blocks of queries inside, so that weights are recomputed once and
// every gradient adds its terms in one order.
//
//   P = exp(scale Q K^T - lse)      dV += P^T dO       dP = dO V^T
//   dS = scale P (dP - delta)       dK += dS^T Q       dQ += dS K,   delta = rows of dO * O
#include "kernels/sdpa/block.h"

// The arrays of one head in one batch, at position 0, and of its group.
struct head {
    real *dq, *dk, *dv;
    const real *dout, *q, *k, *v, *out, *lse;
    int64_t q_row, k_row, v_row, out_row;
};

struct scratch {
    real weights[query_block * key_block];    // P
    real slopes[query_block * key_block];     // dP, then dS
    real keys_turned[depth_max * HK_PANEL];   // K^T
    real values_turned[depth_max * HK_PANEL]; // V^T
    real panel[query_block * HK_PANEL];
} __attribute__((aligned(64)));

// From scores and dP of row i to P and dS, in place.
static void slope_row(real *weights, real *slopes, int64_t begin, int64_t end, real scale, real lse,
                      real delta) {
#pragma omp simd
    for (int64_t j = 0; j < key_block; j++) {
        const bool seen = j >= begin && j < end;
        const real weight = HK_REAL(exp)(weights[j] * scale - lse);
        weights[j] = seen ? weight : 0;
        slopes[j] = seen ? weight * (slopes[j] - delta) * scale : 0;
    }
}

// to[j, :] += sum over the rows i that see key j of x[i, j] * from[query + i, :]: dV and dK.
static void add_to_keys(real *to, int64_t to_row, const real *x, const real *from, int64_t from_row,
                        const struct hk_sdpa_dims *d, const struct block *b, int64_t width,
                        real *panel) {
    const int64_t tiles = (b->keys + tile_rows - 1) / tile_rows;
    for (int64_t c = 0; c < width; c += HK_PANEL) {
        pack_panel(panel, from + (b->query + b->low) * from_row + c, from_row, b->high - b->low,
                   width - c);
        for (int64_t i = 0; i < tiles; i++) {
            const int64_t j = tile_begin(b->keys, i, tiles);
            const int64_t count = tile_begin(b->keys, i + 1, tiles) - j;
            const int64_t first = b->key + j - b->query; // The row at the position of key j.
            const int64_t begin = d->causal ? at_least(first, b->low) : b->low;
            const int64_t last = first + count - 1 + d->window;
            const int64_t end = d->window > 0 ? at_most(last, b->high) : b->high;
            if (begin >= end) continue;
            const struct tile tile = {
                .out = to + (b->key + j) * to_row + c,
                .out_row = to_row,
                .x = x + begin * key_block + j,
                .x_row = 1,
                .x_depth = key_block,
                .panel = panel + (begin - b->low) * HK_PANEL,
                .depth = end - begin,
                .columns = at_most(width - c, HK_PANEL),
                .write = HK_ADD,
            };
            tile_rows_run(tile, count);
        }
    }
}

// dq[i, :] += sum over j of slopes[i, j] * k[j, :].
static void add_to_queries(const struct head *h, const real *slopes, const struct hk_sdpa_dims *d,
                           const struct block *b, real *panel) {
    for (int64_t c = 0; c < d->width; c += HK_PANEL) {
        pack_panel(panel, h->k + b->key * h->k_row + c, h->k_row, b->keys, d->width - c);
        block_product(h->dq + b->query * h->q_row + c, h->q_row, slopes, panel, d->width - c, d, b);
    }
}

static void grad_of_block(const struct head *h, const struct hk_sdpa_dims *d, const struct block *b,
                          struct scratch *s, bool fresh) {
    block_scores(s->weights, h->q + b->query * h->q_row, h->q_row, h->k + b->key * h->k_row,
                 h->k_row, d->width, d, b, s->keys_turned, fresh);
    block_scores(s->slopes, h->dout + b->query * h->out_row, h->out_row, h->v + b->key * h->v_row,
                 h->v_row, d->vwidth, d, b, s->values_turned, fresh);
    for (int64_t i = b->low; i < b->high; i++) {
        const int64_t row = (b->query + i) * h->out_row;
        const real delta = row_dot(h->dout + row, h->out + row, d->vwidth);
        int64_t begin, end;
        seen_keys(d, b, i, &begin, &end);
        slope_row(s->weights + i * key_block, s->slopes + i * key_block, begin, end, (real)d->scale,
                  h->lse[b->query + i], delta);
    }
    add_to_keys(h->dv, h->v_row, s->weights, h->dout, h->out_row, d, b, d->vwidth, s->panel);
    add_to_keys(h->dk, h->k_row, s->slopes, h->q, h->q_row, d, b, d->width, s->panel);
    add_to_queries(h, s->slopes, d, b, s->panel);
}

static void clear_rows(real *to, int64_t row, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; i++) memset(to + i * row, 0, (size_t)width * sizeof *to);
}

// All heads of the group that `first` is the first head of.
static void grad_of_group(const struct head *first, const struct hk_sdpa_dims *d) {
    struct scratch scratch;
    memset(scratch.weights, 0, sizeof scratch.weights); // What is masked is read, though not used.
    memset(scratch.slopes, 0, sizeof scratch.slopes);
    const int64_t heads = d->heads / d->groups;
    clear_rows(first->dk, first->k_row, d->positions, d->width);
    clear_rows(first->dv, first->v_row, d->positions, d->vwidth);
    clear_rows(first->dq, first->q_row, d->positions, heads * d->width);

    for (int64_t key = 0; key < d->positions; key += key_block) {
        bool fresh = true;
        for (int64_t i = 0; i < heads; i++) {
            struct head h = *first;
            h.dq += i * d->width;
            h.q += i * d->width;
            h.out += i * d->vwidth;
            h.dout += i * d->vwidth;
            h.lse += i * d->positions;
            const int64_t begin = d->causal ? key / query_block * query_block : 0;
            for (int64_t query = begin; query < d->positions; query += query_block) {
                const struct block b = block_at(d, query, key);
                if (b.low >= b.high) continue;
                grad_of_block(&h, d, &b, &scratch, fresh);
                fresh = false;
            }
        }
    }
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
    const int64_t share = dims.heads / dims.groups;
#pragma omp parallel for schedule(dynamic) collapse(2)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t g = 0; g < dims.groups; g++) {
            const int64_t row = b * dims.positions;
            const int64_t q_at = (row * dims.heads + g * share) * dims.width;
            const int64_t out_at = (row * dims.heads + g * share) * dims.vwidth;
            const int64_t k_at = (row * dims.groups + g) * dims.width;
            const int64_t v_at = (row * dims.groups + g) * dims.vwidth;
            const struct head first = {
                .dq = dq + q_at,
                .dk = dk + k_at,
                .dv = dv + v_at,
                .dout = dout + out_at,
                .q = q + q_at,
                .k = k + k_at,
                .v = v + v_at,
                .out = out + out_at,
                .lse = lse + (b * dims.heads + g * share) * dims.positions,
                .q_row = dims.heads * dims.width,
                .k_row = dims.groups * dims.width,
                .v_row = dims.groups * dims.vwidth,
                .out_row = dims.heads * dims.vwidth,
            };
            grad_of_group(&first, &dims);
        }
    }
}
