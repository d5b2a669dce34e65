// CPU twin of delta_rule, forward. A thread has whole heads of a sequence.
#include "kernels/delta_rule/chunk.h"

// out of a strip: scale (carried S^T q + (fade seen) u).
static void read_out(const struct chunk *c, real *out, const real *states, square weights,
                     columns u, int64_t column, int64_t width) {
    const struct hk_delta_dims *d = c->dims;
    columns sum;
    memset(sum, 0, sizeof sum);
    add_product(sum[0], strip, (struct view){c->q, c->key_row, 1},
                states + state_at(c, c->n) + column, d->vwidth, c->count, d->width, width);
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t i = 0; i < width; i++) sum[t][i] *= c->carried[t];
    }
    add_product(sum[0], strip, (struct view){weights[0], chunk_max, 1}, u[0], strip, c->count,
                c->count, width);
    for (int64_t t = 0; t < c->count; t++) {
        real *to = out + value_at(c, t) + column;
        for (int64_t i = 0; i < width; i++) to[i] = (real)d->scale * sum[t][i];
    }
}

// The state behind the chunk: kept S + k^T (left u). u is not needed any more.
static void store_state(const struct chunk *c, real *states, columns u, int64_t column,
                        int64_t width) {
    const struct hk_delta_dims *d = c->dims;
    const real *from = states + state_at(c, c->n) + column;
    real *to = states + state_at(c, c->n + 1) + column;
    for (int64_t a = 0; a < d->width; a++) {
        for (int64_t i = 0; i < width; i++)
            to[a * d->vwidth + i] = c->kept * from[a * d->vwidth + i];
    }
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t i = 0; i < width; i++) u[t][i] *= c->left[t];
    }
    add_product(to, d->vwidth, (struct view){c->k, 1, c->key_row}, u[0], strip, d->width, c->count,
                width);
}

static void run_head(real *out, real *states, const real *q, const real *k, const real *v,
                     const real *decay, const real *beta, const struct hk_delta_dims *d, int64_t b,
                     int64_t head) {
    struct chunk c = {.dims = d, .b = b, .head = head};
    memset(states + state_at(&c, 0), 0, (size_t)(d->width * d->vwidth) * sizeof *states);
    for (int64_t n = 0; n < chunks_of(d); n++) {
        columns held, u;
        square weights;
        open_chunk(&c, d, b, head, n, q, k, decay, beta);
        weigh(&c, weights);
        for (int64_t column = 0; column < d->vwidth; column += strip) {
            const int64_t width = d->vwidth - column < strip ? d->vwidth - column : strip;
            hold_values(&c, held, v, states, column, width);
            solve(&c, u, held, width);
            read_out(&c, out, states, weights, u, column, width);
            if (n + 1 < chunks_of(d)) store_state(&c, states, u, column, width);
        }
    }
}

HK_KERNEL(void, delta_rule,
          (real * out, real *states, const real *q, const real *k, const real *v, const real *decay,
           const real *beta, struct hk_delta_dims dims),
          (out, states, q, k, v, decay, beta, dims),
          HK_ATTENTION(
              dims.batch *dims.positions *dims.heads *(6 * dims.width * dims.vwidth +
                                                       2 * dims.chunk * (dims.width + dims.vwidth)),
              dims.batch *(2 * dims.positions *
                               (dims.groups * dims.width + dims.heads * (dims.vwidth + 1)) +
                           dims.positions / dims.chunk * dims.heads * dims.width * dims.vwidth),
              "batch positions heads groups width vwidth", dims.batch, dims.positions, dims.heads,
              dims.groups, dims.width, dims.vwidth)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    assert(dims.chunk > 0 && dims.chunk <= HK_DELTA_CHUNK);
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t h = 0; h < dims.heads; h++)
            run_head(out, states, q, k, v, decay, beta, &dims, b, h);
    }
}
