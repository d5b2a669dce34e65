// A chunk of positions of one head, for forward and backward: its decays, scores of keys, and the vectors u that its
// positions store.
// Values are taken a strip of columns at a time, which depend on each other in nothing but gradients of scores.
#ifndef HECATE_KERNELS_DELTA_RULE_CHUNK_H
#define HECATE_KERNELS_DELTA_RULE_CHUNK_H

#include "kernels/delta_rule/delta_rule.h"

#include "kernels/cpu/row.h"

enum { chunk_max = HK_DELTA_CHUNK, strip = 64 };

// Elements of a matrix whose rows and columns are so far apart.
struct view {
    const real *at;
    int64_t row, column;
};

typedef real square[chunk_max][chunk_max];
typedef real columns[chunk_max][strip];

struct chunk {
    const struct hk_delta_dims *dims;
    int64_t n, b, head, first, count; // Its number; its first position in the sequence.
    const real *q, *k;                // At its first position.
    int64_t key_row, value_row;       // Elements from position to position.
    double sums[chunk_max];           // g
    int64_t begin[chunk_max]; // The first position of the chunk that the document of each has.
    real carried[chunk_max];  // exp(g) of positions whose document began before the chunk, else 0.
    real left[chunk_max];     // Share of what each has stored that is there behind the chunk.
    real beta[chunk_max];
    real kept; // Share of the state before the chunk that is there behind it.
    square
        fade; // [t][j], j <= t: share of what j has stored that is there at t; 0 for other documents.
    square same; // k(t).k(j), j < t.
    square seen; // q(t).k(j), j <= t.
};

static int64_t chunks_of(const struct hk_delta_dims *d) {
    return (d->positions + d->chunk - 1) / d->chunk;
}

// Where the scalars of a position begin.
static int64_t scalar_at(const struct chunk *c, int64_t t) {
    return (c->b * c->dims->positions + c->first + t) * c->dims->heads + c->head;
}

static int64_t value_at(const struct chunk *c, int64_t t) {
    return scalar_at(c, t) * c->dims->vwidth;
}

static int64_t state_at(const struct chunk *c, int64_t n) {
    const struct hk_delta_dims *d = c->dims;
    return ((c->b * chunks_of(d) + n) * d->heads + c->head) * d->width * d->vwidth;
}

static int64_t key_at(const struct chunk *c) {
    const struct hk_delta_dims *d = c->dims;
    const int64_t group = c->head / (d->heads / d->groups);
    return ((c->b * d->positions + c->first) * d->groups + group) * d->width;
}

// add_product of `height` rows, 1 or 4, known where it is called.
HK_INLINE void add_rows(real *to, int64_t to_row, struct view a, const real *b, int64_t b_row,
                        int height, int64_t inner, int64_t width) {
    int64_t j = 0;
    for (; j + 2 * lanes <= width; j += 2 * lanes) {
        vec low[4] = {{0}}, high[4] = {{0}};
        for (int64_t p = 0; p < inner; p++) {
            const vec first = vec_load(b + p * b_row + j),
                      second = vec_load(b + p * b_row + j + lanes);
            for (int r = 0; r < height; r++) {
                const real x = a.at[r * a.row + p * a.column];
                low[r] += first * x;
                high[r] += second * x;
            }
        }
        for (int r = 0; r < height; r++) {
            real *at = to + r * to_row + j;
            vec_store(at, vec_load(at) + low[r]);
            vec_store(at + lanes, vec_load(at + lanes) + high[r]);
        }
    }
    for (; j < width; j++) {
        for (int r = 0; r < height; r++) {
            real sum = 0;
            for (int64_t p = 0; p < inner; p++)
                sum += a.at[r * a.row + p * a.column] * b[p * b_row + j];
            to[r * to_row + j] += sum;
        }
    }
}

// to[i][j] += the sum over p < inner, ascending, of a[i][p] b[p][j]. Four rows share what is read of b.
static void add_product(real *to, int64_t to_row, struct view a, const real *b, int64_t b_row,
                        int64_t rows, int64_t inner, int64_t width) {
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4, a.at += 4 * a.row)
        add_rows(to + i * to_row, to_row, a, b, b_row, 4, inner, width);
    for (; i < rows; i++, a.at += a.row)
        add_rows(to + i * to_row, to_row, a, b, b_row, 1, inner, width);
}

static void measure_decays(struct chunk *c, const real *decay, const real *beta) {
    const struct hk_delta_dims *d = c->dims;
    double sum = 0;
    c->kept = 0;
    for (int64_t t = 0; t < c->count; t++) {
        const int64_t at = c->b * d->positions + c->first + t;
        const int64_t begin = (d->begins ? d->begins[at] : 0) - c->first;
        sum += decay[scalar_at(c, t)];
        c->sums[t] = sum;
        c->beta[t] = beta[scalar_at(c, t)];
        c->begin[t] = begin > 0 ? begin : 0;
        c->carried[t] = begin < 0 ? HK_REAL(exp)((real)sum) : 0;
        c->kept = c->carried[t];
        for (int64_t j = 0; j <= t; j++)
            c->fade[t][j] = j < c->begin[t] ? 0 : HK_REAL(exp)((real)(sum - c->sums[j]));
    }
    for (int64_t j = 0; j < c->count; j++) c->left[j] = c->fade[c->count - 1][j];
}

static void score_keys(struct chunk *c) {
    const int64_t width = c->dims->width;
    for (int64_t t = 0; t < c->count; t++) {
        const real *q = c->q + t * c->key_row, *k = c->k + t * c->key_row;
        for (int64_t j = c->begin[t]; j <= t; j++) {
            const real *other = c->k + j * c->key_row;
            c->seen[t][j] = row_dot(q, other, width);
            if (j < t) c->same[t][j] = row_dot(k, other, width);
        }
    }
}

// Chunk n of a head, with its decays and scores.
static void open_chunk(struct chunk *c, const struct hk_delta_dims *d, int64_t b, int64_t head,
                       int64_t n, const real *q, const real *k, const real *decay,
                       const real *beta) {
    const int64_t rest = d->positions - n * d->chunk;
    c->dims = d, c->b = b, c->head = head, c->n = n;
    c->first = n * d->chunk, c->count = rest < d->chunk ? rest : d->chunk;
    c->key_row = d->groups * d->width, c->value_row = d->heads * d->vwidth;
    c->q = q + key_at(c), c->k = k + key_at(c);
    measure_decays(c, decay, beta);
    score_keys(c);
}

// weights[t][j] = what is read of what j has stored, at t.
static void weigh(const struct chunk *c, square weights) {
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t j = 0; j < c->count; j++)
            weights[t][j] = j >= c->begin[t] && j <= t ? c->fade[t][j] * c->seen[t][j] : 0;
    }
}

// held[t][.] = v(t) - carried(t) S^T k(t), of `width` columns from `column` on.
static void hold_values(const struct chunk *c, columns held, const real *v, const real *states,
                        int64_t column, int64_t width) {
    const struct hk_delta_dims *d = c->dims;
    memset(held, 0, sizeof(columns));
    add_product(held[0], strip, (struct view){c->k, c->key_row, 1},
                states + state_at(c, c->n) + column, d->vwidth, c->count, d->width, width);
    for (int64_t t = 0; t < c->count; t++) {
        const real *own = v + value_at(c, t) + column;
        for (int64_t j = 0; j < width; j++) held[t][j] = own[j] - c->carried[t] * held[t][j];
    }
}

// Each position takes off its share of earlier ones of the chunk, in ascending order; then u = beta held.
static void solve(const struct chunk *c, columns u, columns held, int64_t width) {
    for (int64_t t = 0; t < c->count; t++) {
        for (int64_t j = c->begin[t]; j < t; j++) {
            const real share = c->fade[t][j] * c->same[t][j];
#pragma omp simd
            for (int64_t i = 0; i < width; i++) held[t][i] -= share * u[j][i];
        }
#pragma omp simd
        for (int64_t i = 0; i < width; i++) u[t][i] = c->beta[t] * held[t][i];
    }
}

#endif
