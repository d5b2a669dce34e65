// CPU twin of delta_rule, backward: chunks from the last to the first. A thread has all heads of a group, one after the
// other, as they add to the gradients of one key.
#include "kernels/delta_rule/chunk.h"

struct gradients {
    real *dq, *dk, *dv, *ddecay, *dbeta;
    real *
        dstate; // The head's: the gradient of the state behind the chunk, then of the state before it.
    square seen; // By fade seen, [t][j], j <= t.
    square same; // By fade same, j < t.
    double carried[chunk_max], left[chunk_max], beta[chunk_max], kept;
};

// Gradients of GEMMs with a state, of one strip: for the vectors x(t) that reach `factor`(t) state^T key(t), or come
// from it, dkey(t) += sign factor(t) state x(t), and dfactor(t) += sign key(t).(state x(t)).
static void add_by_state(const struct chunk *c, real *dkey, double *dfactor, const real *key,
                         const real *factor, const real *state, columns x, int64_t width,
                         real sign) {
    const struct hk_delta_dims *d = c->dims;
    columns turned, sum;
    for (int64_t a = 0; a < d->width; a += strip) {
        const int64_t height = d->width - a < strip ? d->width - a : strip;
        for (int64_t i = 0; i < width; i++) {
            for (int64_t r = 0; r < height; r++) turned[i][r] = state[(a + r) * d->vwidth + i];
        }
        memset(sum, 0, sizeof sum);
        add_product(sum[0], strip, (struct view){x[0], strip, 1}, turned[0], strip, c->count, width,
                    height);
        for (int64_t t = 0; t < c->count; t++) {
            const int64_t at = t * c->key_row + a;
            dfactor[t] += sign * row_dot(key + at, sum[t], height);
            for (int64_t r = 0; r < height; r++) dkey[at + r] += sign * factor[t] * sum[t][r];
        }
    }
}

// du = left (dstate^T k) + weights^T dout
static void reach_stored(const struct chunk *c, columns du, const real *dstate, square weights,
                         columns dout, int64_t width) {
    memset(du, 0, sizeof(columns));
    add_product(du[0], strip, (struct view){c->k, c->key_row, 1}, dstate, c->dims->vwidth, c->count,
                c->dims->width, width);
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t i = 0; i < width; i++) du[t][i] *= c->left[t];
    }
    add_product(du[0], strip, (struct view){weights[0], 1, chunk_max}, dout[0], strip, c->count,
                c->count, width);
}

// The triangular system, transposed: du becomes the gradient by what solve has multiplied by beta.
static void solve_back(const struct chunk *c, struct gradients *g, columns du, columns held,
                       int64_t width) {
    for (int64_t t = c->count - 1; t >= 0; t--) {
        g->beta[t] += row_dot(du[t], held[t], width);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) du[t][i] *= c->beta[t];
        for (int64_t j = c->begin[t]; j < t; j++) {
            const real share = c->fade[t][j] * c->same[t][j];
#pragma omp simd
            for (int64_t i = 0; i < width; i++) du[j][i] -= share * du[t][i];
        }
    }
}

static void add_scores(const struct chunk *c, struct gradients *g, columns dout, columns dheld,
                       columns u, int64_t width) {
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t j = c->begin[t]; j <= t; j++) {
            g->seen[t][j] += row_dot(dout[t], u[j], width);
            if (j < t) g->same[t][j] -= row_dot(dheld[t], u[j], width);
        }
    }
}

// dstate = kept dstate + q^T (carried dout) - k^T (carried dheld), which are not needed any more.
static void step_state(const struct chunk *c, struct gradients *g, const real *state, real *dstate,
                       columns dout, columns dheld, int64_t width) {
    const struct hk_delta_dims *d = c->dims;
    for (int64_t a = 0; a < d->width; a++) {
        real *to = dstate + a * d->vwidth;
        g->kept += row_dot(state + a * d->vwidth, to, width);
        for (int64_t i = 0; i < width; i++) to[i] *= c->kept;
    }
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t i = 0; i < width; i++) {
            dout[t][i] *= c->carried[t];
            dheld[t][i] *= -c->carried[t];
        }
    }
    add_product(dstate, d->vwidth, (struct view){c->q, 1, c->key_row}, dout[0], strip, d->width,
                c->count, width);
    add_product(dstate, d->vwidth, (struct view){c->k, 1, c->key_row}, dheld[0], strip, d->width,
                c->count, width);
}

static void run_strip(const struct chunk *c, struct gradients *g, const real *dout, const real *v,
                      const real *states, square weights, int64_t column, int64_t width) {
    const struct hk_delta_dims *d = c->dims;
    columns held, u, read, du;
    const real *state = states + state_at(c, c->n) + column;
    real *dstate = g->dstate + column, *dq = g->dq + key_at(c), *dk = g->dk + key_at(c);
    hold_values(c, held, v, states, column, width);
    solve(c, u, held, width);
    for (int64_t t = 0; t < c->count; t++) {
        const real *from = dout + value_at(c, t) + column;
        for (int64_t i = 0; i < width; i++) read[t][i] = (real)d->scale * from[i];
    }
    reach_stored(c, du, dstate, weights, read, width);
    solve_back(c, g, du, held, width);
    add_scores(c, g, read, du, u, width);
    for (int64_t t = 0; t < c->count; t++)
        memcpy(g->dv + value_at(c, t) + column, du[t], (size_t)width * sizeof(real));
    add_by_state(c, dq, g->carried, c->q, c->carried, state, read, width, 1);
    add_by_state(c, dk, g->carried, c->k, c->carried, state, du, width, -1);
    add_by_state(c, dk, g->left, c->k, c->left, dstate, u, width, 1);
    step_state(c, g, state, dstate, read, du, width);
}

// From the gradients of fade, carried, left and kept to those of decay: of sums of it, then of what is in the sums.
static void store_decays(const struct chunk *c, struct gradients *g) {
    double sums[chunk_max] = {0}, rest = 0;
    const int64_t last = c->count - 1;
    for (int64_t t = 0; t < c->count; t++) {
        sums[t] += g->carried[t] * c->carried[t];
        for (int64_t j = c->begin[t]; j < t; j++) {
            const double by_fade =
                (double)g->seen[t][j] * c->seen[t][j] + (double)g->same[t][j] * c->same[t][j];
            sums[t] += by_fade * c->fade[t][j];
            sums[j] -= by_fade * c->fade[t][j];
        }
        if (t == last) continue;
        sums[last] += g->left[t] * c->left[t];
        sums[t] -= g->left[t] * c->left[t];
    }
    sums[last] += g->kept * c->kept;
    for (int64_t t = last; t >= 0; t--) {
        if (t < last && c->begin[t] != c->begin[t + 1]) rest = 0;
        rest += sums[t];
        g->ddecay[scalar_at(c, t)] = (real)rest;
        g->dbeta[scalar_at(c, t)] = (real)g->beta[t];
    }
}

// dq += (fade seen) k, dk += (fade seen)^T q + (fade same + its transpose) k, all of gradients.
static void store_scores(const struct chunk *c, struct gradients *g) {
    const int64_t width = c->dims->width, row = c->key_row;
    real *dq = g->dq + key_at(c), *dk = g->dk + key_at(c);
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t j = 0; j <= t; j++) {
            g->seen[t][j] *= c->fade[t][j];
            g->same[t][j] *= c->fade[t][j];
        }
    }
    add_product(dq, row, (struct view){g->seen[0], chunk_max, 1}, c->k, row, c->count, c->count,
                width);
    add_product(dk, row, (struct view){g->seen[0], 1, chunk_max}, c->q, row, c->count, c->count,
                width);
    add_product(dk, row, (struct view){g->same[0], chunk_max, 1}, c->k, row, c->count, c->count,
                width);
    add_product(dk, row, (struct view){g->same[0], 1, chunk_max}, c->k, row, c->count, c->count,
                width);
}

struct arrays {
    const real *dout, *q, *k, *v, *decay, *beta, *states;
};

static void run_chunk(struct gradients *g, const struct arrays *of, const struct hk_delta_dims *d,
                      int64_t b, int64_t head, int64_t n) {
    struct chunk c;
    square weights;
    open_chunk(&c, d, b, head, n, of->q, of->k, of->decay, of->beta);
    weigh(&c, weights);
    memset(g->seen, 0, sizeof(square));
    memset(g->same, 0, sizeof(square));
    g->kept = 0;
    for (int64_t t = 0; t < c.count; t++) g->carried[t] = g->left[t] = g->beta[t] = 0;
    for (int64_t column = 0; column < d->vwidth; column += strip) {
        const int64_t width = d->vwidth - column < strip ? d->vwidth - column : strip;
        run_strip(&c, g, of->dout, of->v, of->states, weights, column, width);
    }
    store_decays(&c, g);
    store_scores(&c, g);
}

static void run_group(struct gradients *g, const struct arrays *of, const struct hk_delta_dims *d,
                      int64_t b, int64_t group) {
    const int64_t heads = d->heads / d->groups, state = d->width * d->vwidth;
    real *dstates = g->dstate;
    for (int64_t t = 0; t < d->positions; t++) {
        const int64_t at = ((b * d->positions + t) * d->groups + group) * d->width;
        memset(g->dq + at, 0, (size_t)d->width * sizeof(real));
        memset(g->dk + at, 0, (size_t)d->width * sizeof(real));
    }
    for (int64_t head = group * heads; head < (group + 1) * heads; head++) {
        g->dstate = dstates + (b * d->heads + head) * state;
        memset(g->dstate, 0, (size_t)state * sizeof(real));
        for (int64_t n = chunks_of(d) - 1; n >= 0; n--) run_chunk(g, of, d, b, head, n);
    }
}

HK_KERNEL(void, delta_rule_grad,
          (real * dq, real *dk, real *dv, real *ddecay, real *dbeta, real *dstate, const real *dout,
           const real *q, const real *k, const real *v, const real *decay, const real *beta,
           const real *states, struct hk_delta_dims dims),
          (dq, dk, dv, ddecay, dbeta, dstate, dout, q, k, v, decay, beta, states, dims),
          HK_ATTENTION(
              dims.batch *dims.positions *dims.heads *(15 * dims.width * dims.vwidth +
                                                       5 * dims.chunk * (dims.width + dims.vwidth)),
              dims.batch *(4 * dims.positions *
                               (dims.groups * dims.width + dims.heads * (dims.vwidth + 1)) +
                           dims.positions / dims.chunk * dims.heads * dims.width * dims.vwidth),
              "batch positions heads groups width vwidth", dims.batch, dims.positions, dims.heads,
              dims.groups, dims.width, dims.vwidth)) {
    assert(dims.groups > 0 && dims.heads % dims.groups == 0);
    assert(dims.chunk > 0 && dims.chunk <= HK_DELTA_CHUNK);
    const struct arrays of = {dout, q, k, v, decay, beta, states};
#pragma omp parallel for schedule(static) collapse(2)
    for (int64_t b = 0; b < dims.batch; b++) {
        for (int64_t group = 0; group < dims.groups; group++) {
            struct gradients g = {
                .dq = dq, .dk = dk, .dv = dv, .ddecay = ddecay, .dbeta = dbeta, .dstate = dstate};
            run_group(&g, &of, &dims, b, group);
        }
    }
}
