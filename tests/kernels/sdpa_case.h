// sdpa_case: sdpa and its gradient against their definition in long double, for sdpa_test.c and
// sdpa_bf16_test.c, which say what is tested (SDPA, SDPA_GRAD), how it rounds operands (operand), and
// how much, relatively, those that it computes (WEIGHT_ROUNDING).
//
// Bound: let S be the largest sum of |scale q k| over a pair. A score is off by
// (width + 2) EPSILON S, and one with a cap by no more but for its own 6 EPSILON, of the quotient, tanh and the
// product, as tanh is nowhere steep; that moves a weight by as much, relatively; exp adds 4 EPSILON, the running
// maximum multiplies every weight by at most one exp per block of keys, the sums add one EPSILON per key. An output is
// a mean of values at most 1, so its error is at most the sum of these, times 2 because both the weighted sum and the
// sum of weights carry them. Weights that are rounded as they become operands move an output by as much of the sum of
// |weight v|; the sum of weights has them unrounded.
#ifndef HECATE_TESTS_KERNELS_SDPA_CASE_H
#define HECATE_TESTS_KERNELS_SDPA_CASE_H

#include <stdlib.h>

#include "kernels/sdpa/sdpa.h"

#include "tests/kernels/kernel_case.h"

static const struct hk_sdpa_dims shapes[] = {
    {.batch = 1, .positions = 1, .heads = 1, .groups = 1, .width = 1, .vwidth = 1, .scale = 1},
    {.batch = 2, .positions = 5, .heads = 4, .groups = 2, .width = 6, .vwidth = 3, .scale = 0.5},
    {.batch = 1, .positions = 130, .heads = 2, .groups = 1, .width = 16, .vwidth = 16, .scale = 1},
    {.batch = 1,
     .positions = 200,
     .heads = 2,
     .groups = 2,
     .width = 70,
     .vwidth = 66,
     .scale = 0.3},
    {.batch = 2, .positions = 97, .heads = 2, .groups = 2, .width = 8, .vwidth = 5, .scale = -2},
    {.batch = 1,
     .positions = 33,
     .heads = 1,
     .groups = 1,
     .width = 330,
     .vwidth = 325,
     .scale = 0.1},
    {.batch = 1,
     .positions = 150,
     .heads = 2,
     .groups = 1,
     .width = 64,
     .vwidth = 64,
     .scale = 0.1},
    {.batch = 1, .positions = 193, .heads = 1, .groups = 1, .width = 65, .vwidth = 128, .scale = 0},
    {.batch = 2, .positions = 17, .heads = 6, .groups = 3, .width = 3, .vwidth = 1, .scale = 1},
    {.batch = 0, .positions = 4, .heads = 2, .groups = 1, .width = 4, .vwidth = 4, .scale = 1},
    {.batch = 3, .positions = 0, .heads = 2, .groups = 1, .width = 4, .vwidth = 4, .scale = 1},
    {.batch = 1,
     .positions = 70,
     .heads = 2,
     .groups = 1,
     .width = 192,
     .vwidth = 128,
     .scale = 0.07},
};

// Sinks beside every other mask: small ones, and one that takes nearly all of a row.
static const real *sinks_of(const struct hk_sdpa_dims *d, int64_t mask) {
    if (mask % 2 == 0) return NULL;
    real *sinks = test_reals(d->heads, 5);
    sinks[d->heads - 1] += 8;
    return sinks;
}

// Masks: full, causal, causal with a window inside a block, over blocks, window without causal, chunks that begin
// inside of blocks, with a window and without; documents with and without any of these. Beside some of them scores have
// a cap.
static const struct {
    bool causal, documents;
    int64_t window, chunk;
    double cap;
} masks[] = {{.causal = false},
             {.causal = true},
             {.causal = true, .window = 1},
             {.causal = true, .window = 3},
             {.causal = true, .window = 64, .cap = 0.7},
             {.causal = true, .window = 100},
             {.causal = false, .window = 70, .cap = 3},
             {.causal = true, .chunk = 43, .cap = 1.5},
             {.causal = true, .window = 20, .chunk = 33},
             {.causal = true, .documents = true, .cap = 1},
             {.causal = false, .documents = true},
             {.causal = true, .documents = true},
             {.causal = true, .documents = true, .window = 30, .chunk = 19}};

// TEST_WIDEST: heads are at most so wide, for devices with less shared memory than others.
static int64_t narrowed(int64_t width) {
    const char *widest = getenv("TEST_WIDEST");
    return widest && width > atoll(widest) ? atoll(widest) : width;
}

static struct hk_sdpa_dims masked(struct hk_sdpa_dims d, int64_t mask) {
    d.width = narrowed(d.width);
    d.vwidth = narrowed(d.vwidth);
    d.causal = masks[mask].causal;
    d.window = masks[mask].window;
    d.chunk = masks[mask].chunk;
    d.cap = masks[mask].cap;
    return d;
}

// Where documents begin, if the mask has any: of one position and of several blocks; at a block's begin, before and
// behind it.
static const int32_t *begins_of(const struct hk_sdpa_dims *d, int64_t mask) {
    static const int32_t at[2][8] = {{0, 1, 2, 40, 65, 97, 98, 161}, {0, 33, 64, 129}};
    if (!masks[mask].documents) return NULL;
    int32_t *begins = test_ints(d->batch * d->positions, 1, 6);
    for (int64_t i = 0; i < d->batch * d->positions; i++) {
        begins[i] = 0;
        for (int k = 0; k < 8; k++) {
            const int32_t begin = at[i / d->positions % 2][k];
            if (begin <= i % d->positions && begin > begins[i]) begins[i] = begin;
        }
    }
    return begins;
}

struct sdpa_case {
    struct hk_sdpa_dims dims;
    const real *q, *k, *v, *sinks;
};

static int64_t out_size(const struct hk_sdpa_dims *d) {
    return d->batch * d->positions * d->heads * d->vwidth;
}

static int64_t lse_size(const struct hk_sdpa_dims *d) {
    return d->batch * d->heads * d->positions;
}

static int64_t q_size(const struct hk_sdpa_dims *d) {
    return d->batch * d->positions * d->heads * d->width;
}

static int64_t k_size(const struct hk_sdpa_dims *d) {
    return d->batch * d->positions * d->groups * d->width;
}

static int64_t v_size(const struct hk_sdpa_dims *d) {
    return d->batch * d->positions * d->groups * d->vwidth;
}

static void run(const void *context, real *out) {
    const struct sdpa_case *x = context;
    SDPA(out, out + out_size(&x->dims), x->q, x->k, x->v, x->sinks, x->dims);
}

static bool sees(const struct hk_sdpa_dims *d, int64_t b, int64_t query, int64_t key) {
    const int32_t *begins = d->begins ? d->begins + b * d->positions : NULL;
    const int64_t from = begins ? begins[query] : 0;
    return !(d->causal && key > query) && !(d->window > 0 && query - key >= d->window) &&
           !(begins && begins[query] != begins[key]) &&
           !(d->chunk > 0 && (query - from) / d->chunk != (key - from) / d->chunk);
}

// Exact weights of one query's scores, and the slopes of their caps; returns log sum exp.
static wide weigh(const struct sdpa_case *x, int64_t b, int64_t h, int64_t query, wide *weights,
                  wide *bends, wide *largest) {
    const struct hk_sdpa_dims *d = &x->dims;
    const int64_t g = h / (d->heads / d->groups);
    wide peak = -INFINITY, sum = 0;
    for (int64_t key = 0; key < d->positions; key++) {
        const real *q = x->q + ((b * d->positions + query) * d->heads + h) * d->width;
        const real *k = x->k + ((b * d->positions + key) * d->groups + g) * d->width;
        wide score = 0, magnitude = 0;
        if (!sees(d, b, query, key)) {
            weights[key] = -INFINITY;
            continue;
        }
        for (int64_t c = 0; c < d->width; c++) {
            const wide term = (wide)d->scale * operand(q[c]) * operand(k[c]);
            score += term;
            magnitude += fabsl(term);
        }
        const wide bent = d->cap > 0 ? tanhl(score / d->cap) : 0;
        bends[key] = 1 - bent * bent;
        weights[key] = d->cap > 0 ? d->cap * bent : score;
        if (weights[key] > peak) peak = weights[key];
        if (magnitude > *largest) *largest = magnitude;
    }
    if (x->sinks && x->sinks[h] > peak) peak = x->sinks[h];
    if (x->sinks) sum = expl(x->sinks[h] - peak);
    for (int64_t key = 0; key < d->positions; key++) sum += expl(weights[key] - peak);
    for (int64_t key = 0; key < d->positions; key++) {
        weights[key] = expl(weights[key] - peak) / sum;
    }
    return peak + logl(sum);
}

// See above, in units of EPSILON.
static double forward_error(const struct hk_sdpa_dims *d, wide largest) {
    const double blocks = 1 + (double)d->positions / 64;
    const double terms = (double)(d->width + 2 + (d->cap > 0 ? 6 : 0));
    return 2 * (terms * (double)largest + 4 + 5 * blocks + (double)d->positions);
}

static void check_row(const struct sdpa_case *x, const real *out, int64_t b, int64_t h,
                      int64_t query) {
    const struct hk_sdpa_dims *d = &x->dims;
    const int64_t g = h / (d->heads / d->groups);
    wide weights[256], bends[256], largest = 0;
    const wide lse = weigh(x, b, h, query, weights, bends, &largest);
    const double bound = EPSILON * forward_error(d, largest);
    const int64_t at = (b * d->heads + h) * d->positions + query;
    assert_near("lse", at, out[out_size(d) + at], lse, bound + EPSILON * fabs((double)lse));
    for (int64_t c = 0; c < d->vwidth; c++) {
        wide want = 0, size = 0;
        for (int64_t key = 0; key < d->positions; key++) {
            if (!sees(d, b, query, key)) continue;
            const real v = x->v[((b * d->positions + key) * d->groups + g) * d->vwidth + c];
            want += weights[key] * operand(v);
            size += weights[key] * fabsl(operand(v));
        }
        const int64_t i = ((b * d->positions + query) * d->heads + h) * d->vwidth + c;
        assert_value_near("out", i, out[i], want, bound + WEIGHT_ROUNDING * (double)size);
    }
}

static struct sdpa_case sdpa_case(int64_t shape, int64_t mask) {
    struct sdpa_case x = {.dims = masked(shapes[shape], mask)};
    x.q = test_reals(q_size(&x.dims), 1);
    x.k = test_reals(k_size(&x.dims), 2);
    x.v = test_reals(v_size(&x.dims), 3);
    x.sinks = sinks_of(&x.dims, mask);
    x.dims.begins = begins_of(&x.dims, mask);
    return x;
}

// Every shape and every mask, for any share.
static bool is_tested(int64_t shape, int64_t mask) {
    return (shape + mask) % SHARE == 0;
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * COUNT(masks); s++) {
        if (!is_tested(s / COUNT(masks), s % COUNT(masks))) continue;
        const struct sdpa_case x = sdpa_case(s / COUNT(masks), s % COUNT(masks));
        const struct hk_sdpa_dims d = x.dims;
        real *out = test_nans(out_size(&d) + lse_size(&d));
        run_with_threads(run, &x, out, out_size(&d) + lse_size(&d));
        for (int64_t b = 0; b < d.batch; b++) {
            for (int64_t h = 0; h < d.heads; h++) {
                for (int64_t q = 0; q < d.positions; q++) check_row(&x, out, b, h, q);
            }
        }
        test_free_all();
    }
}

// A sink far above all scores takes everything, and one far below nothing.
static void extreme_sinks_take_all_or_nothing(void **state) {
    (void)state;
    struct sdpa_case x = sdpa_case(2, 2);
    const int64_t heads = x.dims.heads, width = x.dims.vwidth, count = out_size(&x.dims);
    real *plain = test_nans(count + lse_size(&x.dims)), *out = test_nans(count + lse_size(&x.dims));
    run(&x, plain);
    real *sinks = test_reals(heads, 5);
    sinks[0] = 1000, sinks[1] = -1000;
    x.sinks = sinks;
    run(&x, out);
    for (int64_t i = 0; i < count; i++) {
        const bool first = i / width % heads == 0;
        assert_near("out", i, out[i], first ? 0 : plain[i], 0);
    }
    for (int64_t i = 0; i < x.dims.positions; i++) {
        assert_near("lse", i, out[count + i], 1000, 1000 * EPSILON);
        assert_near("lse", i, out[count + x.dims.positions + i],
                    plain[count + x.dims.positions + i], 4 * EPSILON);
    }
    test_free_all();
}

// Scores far out of exp's range: the running maximum has to keep every exp in it.
static void large_scores_do_not_overflow(void **state) {
    (void)state;
    struct sdpa_case x = sdpa_case(2, 1);
    x.dims.scale = 1000;
    const int64_t count = out_size(&x.dims) + lse_size(&x.dims);
    real *out = test_nans(count);
    for (int capped = 0; capped < 2; capped++) {
        x.dims.cap = capped * 200;
        run(&x, out);
        for (int64_t i = 0; i < count; i++) assert_true(isfinite(out[i]));
    }
    test_free_all();
}

// Rows that see the key are NaN; earlier ones have the same bits as without (causal).
static void a_nan_in_a_key_shows(void **state) {
    (void)state;
    struct sdpa_case x = sdpa_case(2, 1);
    const struct hk_sdpa_dims *d = &x.dims;
    const int64_t key = 70, before = key * d->heads * d->vwidth;
    real *k = test_copy(x.k, k_size(d)), *clean = test_nans(out_size(d) + lse_size(d));
    real *out = test_nans(out_size(d) + lse_size(d));
    run(&x, clean);
    k[key * d->groups * d->width] = (real)NAN;
    x.k = k;
    run(&x, out);
    assert_same_bits("out", clean, out, before);
    for (int64_t i = before; i < out_size(d); i++) assert_true(isnan(out[i]));
    test_free_all();
}

// A query's row has the same bits whether later queries are there or not (causal).
static void a_causal_row_does_not_depend_on_later_positions(void **state) {
    (void)state;
    struct sdpa_case x = sdpa_case(2, 1);
    struct hk_sdpa_dims *d = &x.dims;
    real *all = test_nans(out_size(d) + lse_size(d));
    run(&x, all);
    for (d->positions = 1; d->positions < shapes[2].positions; d->positions += 7 * SHARE) {
        real *some = test_nans(out_size(d) + lse_size(d));
        run(&x, some);
        assert_same_bits("out", all, some, out_size(d));
    }
    test_free_all();
}

struct sdpa_gradient {
    struct sdpa_case forward;
    const real *dout, *out, *lse;
};

static void run_gradient(const void *context, real *grad) {
    const struct sdpa_gradient *x = context;
    const struct sdpa_case *f = &x->forward;
    real *dk = grad + q_size(&f->dims), *dv = dk + k_size(&f->dims);
    SDPA_GRAD(grad, dk, dv, x->dout, f->q, f->k, f->v, x->out, x->lse, f->dims);
}

// Exact gradients, and for each the sum of the absolute values that it is the sum of. dq, dk and dv lie
// one after the other.
struct exact {
    wide *value, *size;
    wide largest; // See above: S, and of lse.
    wide largest_lse;
};

static void exact_add(struct exact *e, int64_t at, wide value, wide size) {
    e->value[at] += value;
    e->size[at] += size;
}

// Adds the terms of one query of one head.
static void exact_query(const struct sdpa_gradient *x, int64_t b, int64_t h, int64_t query,
                        struct exact *e) {
    const struct hk_sdpa_dims *d = &x->forward.dims;
    const int64_t g = h / (d->heads / d->groups);
    const int64_t q_at = ((b * d->positions + query) * d->heads + h) * d->width;
    const real *dout = x->dout + ((b * d->positions + query) * d->heads + h) * d->vwidth;
    wide weights[256], bends[256], slopes[256], sizes[256], delta = 0, delta_size = 0;
    const wide lse = fabsl(weigh(&x->forward, b, h, query, weights, bends, &e->largest));
    if (lse > e->largest_lse) e->largest_lse = lse;
    for (int64_t key = 0; key < d->positions; key++) {
        if (!sees(d, b, query, key)) continue;
        const int64_t v_at = ((b * d->positions + key) * d->groups + g) * d->vwidth;
        slopes[key] = sizes[key] = 0;
        for (int64_t c = 0; c < d->vwidth; c++) {
            const wide v = operand(x->forward.v[v_at + c]), change = operand(dout[c]);
            slopes[key] += change * v;
            sizes[key] += fabsl(change * v);
            delta += weights[key] * dout[c] * v; // A term of out, which is no operand.
            delta_size += weights[key] * fabsl(dout[c] * v);
            exact_add(e, q_size(d) + k_size(d) + v_at + c, weights[key] * change,
                      weights[key] * fabsl(change));
        }
    }
    for (int64_t key = 0; key < d->positions; key++) {
        if (!sees(d, b, query, key)) continue;
        const int64_t k_at = ((b * d->positions + key) * d->groups + g) * d->width;
        const wide weight = (wide)d->scale * weights[key];
        const wide slope = weight * (slopes[key] - delta) * bends[key];
        const wide size = fabsl(weight) * (sizes[key] + delta_size);
        for (int64_t c = 0; c < d->width; c++) {
            const wide k = operand(x->forward.k[k_at + c]), q = operand(x->forward.q[q_at + c]);
            exact_add(e, q_at + c, slope * k, size * fabsl(k));
            exact_add(e, q_size(d) + k_at + c, slope * q, size * fabsl(q));
        }
    }
}

static void check_exact_gradients(int64_t shape, int64_t mask) {
    struct sdpa_gradient x = {.forward = sdpa_case(shape, mask)};
    const struct hk_sdpa_dims d = x.forward.dims;
    real *out = test_nans(out_size(&d) + lse_size(&d));
    run(&x.forward, out);
    x.out = out;
    x.lse = out + out_size(&d);
    x.dout = test_reals(out_size(&d), 4);
    const int64_t count = q_size(&d) + k_size(&d) + v_size(&d);
    real *grad = test_nans(count);
    run_with_threads(run_gradient, &x, grad, count);

    struct exact e = {.value = calloc((size_t)count + 1, sizeof *e.value),
                      .size = calloc((size_t)count + 1, sizeof *e.size)};
    for (int64_t i = 0; i < d.batch * d.heads * d.positions; i++) {
        exact_query(&x, i / d.positions / d.heads, i / d.positions % d.heads, i % d.positions, &e);
    }
    // A weight's relative error: that of its score and of lse; out's, in delta, is the forward
    // bound. Then dP, a sum over vwidth, and the sum over queries or keys itself.
    const double forward = forward_error(&d, e.largest);
    const double weight = 2 * forward + 2 * (double)e.largest_lse + 8;
    const double terms = (double)(d.heads / d.groups * d.positions);
    // 1 - tanh^2 is off by twice what tanh is, and its own rounding; sizes are those without it, which is at most 1.
    const double score = (double)(d.width + 3) * (double)e.largest;
    const double bend = d.cap > 0 ? 2 * (score / d.cap + 5) + 1 : 0;
    // An operand that is computed is rounded, and so were those of out, in delta, and out as it was stored.
    const double error = EPSILON * (weight + forward + bend + (double)d.vwidth + terms + 8) +
                         2 * WEIGHT_ROUNDING + VALUE_EPSILON;
    for (int64_t i = 0; i < count; i++) {
        assert_value_near(i < q_size(&d) ? "dq" : "dk, dv", i, grad[i], e.value[i],
                          error * (double)e.size[i]);
    }
    free(e.value);
    free(e.size);
    test_free_all();
}

static void gradients_are_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        for (int64_t m = 0; m < COUNT(masks); m++) {
            if (is_tested(s, m)) check_exact_gradients(s, m);
        }
    }
}

#endif
