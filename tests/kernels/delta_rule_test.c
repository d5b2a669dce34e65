// delta_rule against its definition, position by position, and its gradients against theirs, all positions at once, and
// on target cpu against central differences, too.
//
// Bound: the vectors u that positions store are the solution of a triangular system L u = beta v,
// L = I + beta fade (k k^T), which kernels solve a chunk at a time. Each term of two of its numbers, however they sum
// up, is off by some relative `unit`: roundings of sums over the width, a chunk's positions and chunks, and of
// exponentials, whose arguments are off by half an EPSILON of the sum of decays. So u solves the system but for a
// residual of `unit` times the sum of its terms' absolute values, and is off by |L^-1| times that. All that follows is
// sums of terms of u, whose errors add to those of the terms (struct ball). The gradient of u solves the transposed
// system, with the same argument.
#include "kernels/delta_rule/delta_rule.h"

#include <stdlib.h>

#include "tests/kernels/kernel_case.h"

static const struct hk_delta_dims shapes[] = {
    {.batch = 1, .positions = 1, .heads = 1, .groups = 1, .width = 1, .vwidth = 1, .chunk = 64},
    {.batch = 2, .positions = 9, .heads = 2, .groups = 1, .width = 3, .vwidth = 5, .chunk = 4},
    {.batch = 1, .positions = 64, .heads = 1, .groups = 1, .width = 16, .vwidth = 16, .chunk = 64},
    {.batch = 1, .positions = 65, .heads = 3, .groups = 3, .width = 8, .vwidth = 33, .chunk = 64},
    {.batch = 2, .positions = 100, .heads = 4, .groups = 2, .width = 70, .vwidth = 67, .chunk = 16},
    {.batch = 1, .positions = 150, .heads = 2, .groups = 1, .width = 32, .vwidth = 8, .chunk = 64},
    {.batch = 0, .positions = 5, .heads = 2, .groups = 2, .width = 2, .vwidth = 2, .chunk = 64},
};

struct delta_case {
    struct hk_delta_dims dims;
    const real *q, *k, *v, *decay, *beta, *dout, *states;
};

static int64_t key_size(const struct hk_delta_dims *d) {
    return d->batch * d->positions * d->groups * d->width;
}
static int64_t value_size(const struct hk_delta_dims *d) {
    return d->batch * d->positions * d->heads * d->vwidth;
}
static int64_t scalar_size(const struct hk_delta_dims *d) {
    return d->batch * d->positions * d->heads;
}
static int64_t chunks_of(const struct hk_delta_dims *d) {
    return (d->positions + d->chunk - 1) / d->chunk;
}
static int64_t state_size(const struct hk_delta_dims *d) {
    return d->batch * d->heads * d->width * d->vwidth;
}
static int64_t grad_size(const struct hk_delta_dims *d) {
    return 2 * key_size(d) + value_size(d) + 2 * scalar_size(d);
}

// Documents of one position and of several, which begin with a chunk and in it.
static const int32_t *begins_of(const struct hk_delta_dims *d) {
    static const int32_t at[] = {1, 2, 16, 40, 64, 65, 97, 128};
    int32_t *begins = test_ints(d->batch * d->positions, 1, 6);
    for (int64_t i = 0; i < d->batch * d->positions; i++) {
        begins[i] = 0;
        for (int k = 0; k < COUNT(at); k++) {
            const int32_t begin = at[k] + 3 * (int32_t)(i / d->positions % 2);
            if (begin <= i % d->positions) begins[i] = begin;
        }
    }
    return begins;
}

// Keys of about length 1, beta in (0, 1), decays in (-0.25, 0].
static struct delta_case delta_case(int64_t shape, bool documents) {
    struct delta_case x = {.dims = shapes[shape]};
    struct hk_delta_dims *d = &x.dims;
    real *k = test_reals(key_size(d), 2), *decay = test_reals(scalar_size(d), 4);
    real *beta = test_reals(scalar_size(d), 5);
    for (int64_t i = 0; i < key_size(d); i++)
        k[i] = test_value(k[i] * (real)sqrt(3.0 / (double)d->width));
    for (int64_t i = 0; i < scalar_size(d); i++) {
        decay[i] = test_value((decay[i] - 1) / 8);
        beta[i] = test_value((beta[i] + 1) / 2);
    }
    d->scale = 0.75;
    x.q = test_reals(key_size(d), 1), x.k = k, x.v = test_reals(value_size(d), 3);
    x.decay = decay, x.beta = beta, x.dout = test_reals(value_size(d), 6);
    if (documents) d->begins = begins_of(d);
    return x;
}

static void run(const void *context, real *out) {
    const struct delta_case *x = context;
    HK(delta_rule, out, out + value_size(&x->dims), x->q, x->k, x->v, x->decay, x->beta, x->dims);
}

static void run_gradient(const void *context, real *grad) {
    const struct delta_case *x = context;
    const struct hk_delta_dims *d = &x->dims;
    real *dk = grad + key_size(d), *dv = dk + key_size(d), *ddecay = dv + value_size(d);
    real *dbeta = ddecay + scalar_size(d), *dstate = dbeta + scalar_size(d);
    HK(delta_rule_grad, grad, dk, dv, ddecay, dbeta, dstate, x->dout, x->q, x->k, x->v, x->decay,
       x->beta, x->states, x->dims);
}

// ---- balls: a number, the sum of its terms' absolute values, and a bound of its error

struct ball {
    wide value, size, error;
};

static struct ball exact(wide value) {
    return (struct ball){value, fabsl(value), 0};
}

// to += a b, whose sum is off by `unit` of its size.
static void add_product(struct ball *to, struct ball a, struct ball b, wide unit) {
    const wide size = a.size * b.size;
    to->value += a.value * b.value;
    to->size += size;
    to->error += unit * size + fabsl(a.value) * b.error + fabsl(b.value) * a.error;
}

static struct ball times(struct ball a, struct ball b, wide unit) {
    struct ball product = {0};
    add_product(&product, a, b, unit);
    return product;
}

static struct ball dot(const struct ball *a, const struct ball *b, int64_t count, wide unit) {
    struct ball sum = {0};
    for (int64_t i = 0; i < count; i++) add_product(&sum, a[i], b[i], unit);
    return sum;
}

// ---- one head of a sequence, all positions at once

struct head {
    int64_t n, width, vwidth;
    wide unit;
    struct ball *q, *k, *v, *dout;       // [n][..]
    struct ball *beta;                   // [n]
    struct ball *fade, *same, *seen;     // [n][n]: as in chunks, of the whole sequence
    wide *inverse;                       // [n][n]: L^-1
    struct ball *u, *held, *out;         // [n][vwidth]
    struct ball *du, *dheld, *by, *back; // by: [n][n] by seen, back: by same
};

static struct ball *balls(int64_t count) {
    struct ball *b = test_array(count, sizeof *b);
    memset(b, 0, (size_t)count * sizeof *b);
    return b;
}

static struct ball *row(struct ball *of, int64_t t, int64_t length) {
    return of + t * length;
}

static void load(struct head *h, const struct delta_case *x, int64_t b, int64_t head) {
    const struct hk_delta_dims *d = &x->dims;
    const int64_t group = head / (d->heads / d->groups);
    for (int64_t t = 0; t < h->n; t++) {
        const int64_t token = b * d->positions + t, scalar = token * d->heads + head;
        for (int64_t a = 0; a < h->width; a++) {
            const int64_t at = (token * d->groups + group) * h->width + a;
            row(h->q, t, h->width)[a] = exact(x->q[at]);
            row(h->k, t, h->width)[a] = exact(x->k[at]);
        }
        for (int64_t i = 0; i < h->vwidth; i++) {
            row(h->v, t, h->vwidth)[i] = exact(x->v[scalar * h->vwidth + i]);
            row(h->dout, t, h->vwidth)[i] = exact((wide)d->scale * x->dout[scalar * h->vwidth + i]);
        }
        h->beta[t] = exact(x->beta[scalar]);
        wide sum = 0;
        for (int64_t j = t; j >= (d->begins ? d->begins[token] : 0); j--) {
            row(h->fade, t, h->n)[j] = exact(expl(sum));
            sum += x->decay[(b * d->positions + j) * d->heads + head];
        }
    }
    for (int64_t t = 0; t < h->n; t++) {
        for (int64_t j = 0; j <= t; j++) {
            const struct ball *k = row(h->k, j, h->width);
            row(h->seen, t, h->n)[j] = dot(row(h->q, t, h->width), k, h->width, h->unit);
            if (j < t) row(h->same, t, h->n)[j] = dot(row(h->k, t, h->width), k, h->width, h->unit);
        }
    }
}

static struct head head_of(const struct delta_case *x, int64_t b, int64_t head) {
    const struct hk_delta_dims *d = &x->dims;
    const int64_t n = d->positions;
    struct head h = {.n = n, .width = d->width, .vwidth = d->vwidth};
    h.q = balls(n * d->width), h.k = balls(n * d->width), h.v = balls(n * d->vwidth);
    h.dout = balls(n * d->vwidth), h.beta = balls(n), h.fade = balls(n * n), h.same = balls(n * n);
    h.seen = balls(n * n), h.u = balls(n * d->vwidth), h.held = balls(n * d->vwidth);
    h.out = balls(n * d->vwidth), h.du = balls(n * d->vwidth), h.dheld = balls(n * d->vwidth);
    h.by = balls(n * n), h.back = balls(n * n);
    h.inverse = test_array(n * n, sizeof(wide));
    double decays = 0;
    for (int64_t t = 0; t < n; t++) decays += fabs((double)x->decay[(b * n + t) * d->heads + head]);
    const double sums = (double)(d->width + d->vwidth + (ASCENDING ? 2 * d->chunk : 3 * n));
    h.unit = EPSILON * (sums + 8 * (double)chunks_of(d) + 16 + decays);
    load(&h, x, b, head);
    return h;
}

// Column s of L^-1.
static void invert(struct head *h) {
    for (int64_t s = 0; s < h->n; s++) {
        for (int64_t t = 0; t < h->n; t++) {
            wide sum = t == s;
            for (int64_t j = s; j < t; j++)
                sum -= h->beta[t].value * row(h->fade, t, h->n)[j].value *
                       row(h->same, t, h->n)[j].value * h->inverse[j * h->n + s];
            h->inverse[t * h->n + s] = t < s ? 0 : sum;
        }
    }
}

// u and out by the definition; `states` is [width][vwidth].
static void run_definition(struct head *h, const struct delta_case *x, wide *state) {
    const int64_t n = h->n;
    for (int64_t i = 0; i < h->width * h->vwidth; i++) state[i] = 0;
    for (int64_t t = 0; t < n; t++) {
        const bool fresh = t == 0 || row(h->fade, t, n)[t - 1].size == 0;
        const wide kept = fresh ? 0 : row(h->fade, t, n)[t - 1].value;
        for (int64_t i = 0; i < h->vwidth; i++) {
            wide found = 0, out = 0;
            for (int64_t a = 0; a < h->width; a++)
                found += kept * state[a * h->vwidth + i] * row(h->k, t, h->width)[a].value;
            const wide held = row(h->v, t, h->vwidth)[i].value - found;
            const wide u = h->beta[t].value * held;
            for (int64_t a = 0; a < h->width; a++) {
                wide *s = &state[a * h->vwidth + i];
                *s = kept * *s + row(h->k, t, h->width)[a].value * u;
                out += (wide)x->dims.scale * *s * row(h->q, t, h->width)[a].value;
            }
            row(h->held, t, h->vwidth)[i] = exact(held);
            row(h->u, t, h->vwidth)[i] = exact(u);
            row(h->out, t, h->vwidth)[i] = exact(out);
        }
    }
}

// The errors that forward's numbers may have.
static void bound_forward(struct head *h, wide scale) {
    const int64_t n = h->n, width = h->vwidth;
    for (int64_t i = 0; i < width; i++) {
        for (int64_t t = 0; t < n; t++) { // Residuals, kept in held.
            struct ball *held = &row(h->held, t, width)[i];
            held->size = fabsl(row(h->v, t, width)[i].value);
            for (int64_t j = 0; j < t; j++)
                held->size += row(h->fade, t, n)[j].value * row(h->same, t, n)[j].size *
                              row(h->u, j, width)[i].size;
        }
        for (int64_t t = 0; t < n; t++) {
            struct ball *u = &row(h->u, t, width)[i], *held = &row(h->held, t, width)[i];
            held->error = h->unit * held->size;
            for (int64_t s = 0; s <= t; s++)
                u->error += fabsl(h->inverse[t * n + s]) * h->unit * h->beta[s].value *
                            row(h->held, s, width)[i].size;
            for (int64_t j = 0; j < t; j++)
                held->error += row(h->fade, t, n)[j].value * fabsl(row(h->same, t, n)[j].value) *
                               row(h->u, j, width)[i].error;
        }
        for (int64_t t = 0; t < n; t++) {
            struct ball sum = {0};
            for (int64_t j = 0; j <= t; j++)
                add_product(&sum, times(row(h->fade, t, n)[j], row(h->seen, t, n)[j], h->unit),
                            row(h->u, j, width)[i], h->unit);
            row(h->out, t, width)[i].error = fabsl(scale) * sum.error;
        }
    }
}

static struct head forward_of(const struct delta_case *x, int64_t b, int64_t head) {
    struct head h = head_of(x, b, head);
    invert(&h);
    run_definition(&h, x, test_array(h.width * h.vwidth, sizeof(wide)));
    bound_forward(&h, (wide)x->dims.scale);
    return h;
}

static void forward_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < 2 * COUNT(shapes); s++) {
        const struct delta_case x = delta_case(s / 2, s % 2);
        const struct hk_delta_dims *d = &x.dims;
        const int64_t count = value_size(d) + chunks_of(d) * state_size(d);
        real *out = test_nans(count);
        run_with_threads(run, &x, out, count);
        for (int64_t i = 0; i < d->batch * d->heads; i++) {
            const struct head h = forward_of(&x, i / d->heads, i % d->heads);
            for (int64_t k = 0; k < h.n * h.vwidth; k++) {
                const int64_t token = i / d->heads * h.n + k / h.vwidth;
                const int64_t at = (token * d->heads + i % d->heads) * h.vwidth + k % h.vwidth;
                assert_value_near("out", at, out[at], h.out[k].value, (double)h.out[k].error);
            }
        }
        test_free_all();
    }
}

// ---- gradients

// The gradient of u, which the transposed system gives, and that of what beta multiplies.
static void solve_back(struct head *h) {
    const int64_t n = h->n, width = h->vwidth;
    for (int64_t i = 0; i < width; i++) {
        struct ball *reached = balls(n);
        for (int64_t t = 0; t < n; t++) {
            for (int64_t s = t; s < n; s++)
                add_product(&reached[t],
                            times(row(h->fade, s, n)[t], row(h->seen, s, n)[t], h->unit),
                            row(h->dout, s, width)[i], h->unit);
        }
        for (int64_t t = n - 1; t >= 0; t--) {
            struct ball *du = &row(h->du, t, width)[i];
            for (int64_t s = t; s < n; s++) du->value += h->inverse[s * n + t] * reached[s].value;
            du->size = fabsl(du->value);
            for (int64_t s = t + 1; s < n; s++)
                reached[t].error += h->unit * row(h->fade, s, n)[t].value *
                                    row(h->same, s, n)[t].size * row(h->dheld, s, width)[i].size;
            for (int64_t s = t; s < n; s++)
                du->error += fabsl(h->inverse[s * n + t]) * reached[s].error;
            row(h->dheld, t, width)[i] = times(h->beta[t], *du, h->unit);
        }
    }
}

static void score_back(struct head *h) {
    const int64_t n = h->n, width = h->vwidth;
    for (int64_t t = 0; t < n; t++) {
        for (int64_t j = 0; j <= t; j++) {
            const struct ball *u = row(h->u, j, width), fade = row(h->fade, t, n)[j];
            const struct ball seen = dot(row(h->dout, t, width), u, width, h->unit);
            struct ball same = dot(row(h->dheld, t, width), u, width, h->unit);
            same.value = -same.value;
            row(h->by, t, n)[j] = times(fade, seen, h->unit);
            if (j < t) row(h->back, t, n)[j] = times(fade, same, h->unit);
        }
    }
}

// Adds to the gradients of a head's queries and keys, [n][width].
static void add_keys(struct head *h, struct ball *dq, struct ball *dk) {
    const int64_t n = h->n, width = h->width;
    for (int64_t t = 0; t < n; t++) {
        for (int64_t j = 0; j <= t; j++) {
            const struct ball by = row(h->by, t, n)[j], back = row(h->back, t, n)[j];
            for (int64_t a = 0; a < width; a++) {
                add_product(&row(dq, t, width)[a], by, row(h->k, j, width)[a], h->unit);
                add_product(&row(dk, j, width)[a], by, row(h->q, t, width)[a], h->unit);
                add_product(&row(dk, j, width)[a], back, row(h->k, t, width)[a], h->unit);
                add_product(&row(dk, t, width)[a], back, row(h->k, j, width)[a], h->unit);
            }
        }
    }
}

// decay of s is in fade of all j < s <= t. Others cancel in sums in double.
static void sum_decays(struct head *h, struct ball *ddecay) {
    const int64_t n = h->n;
    wide all = 0;
    for (int64_t t = 0; t < n; t++) {
        for (int64_t j = 0; j < t; j++) {
            struct ball term = times(row(h->by, t, n)[j], row(h->seen, t, n)[j], h->unit);
            add_product(&term, row(h->back, t, n)[j], row(h->same, t, n)[j], h->unit);
            all += term.size;
            for (int64_t s = j + 1; s <= t; s++) add_product(&ddecay[s], term, exact(1), 0);
        }
    }
    for (int64_t s = 0; s < n; s++) ddecay[s].error += (wide)(4 * n) * DBL_EPSILON * all;
}

static void check_scalars(const struct delta_case *x, struct head *h, int64_t b, int64_t head,
                          const real *dv) {
    const struct hk_delta_dims *d = &x->dims;
    const real *ddecay = dv + value_size(d), *dbeta = ddecay + scalar_size(d);
    struct ball *by_decay = balls(h->n);
    sum_decays(h, by_decay);
    for (int64_t t = 0; t < h->n; t++) {
        const int64_t at = (b * h->n + t) * d->heads + head;
        const struct ball by_beta =
            dot(row(h->du, t, h->vwidth), row(h->held, t, h->vwidth), h->vwidth, h->unit);
        for (int64_t i = 0; i < h->vwidth; i++) {
            const struct ball want = row(h->dheld, t, h->vwidth)[i];
            assert_value_near("dv", at * h->vwidth + i, dv[at * h->vwidth + i], want.value,
                              (double)want.error);
        }
        assert_value_near("dbeta", at, dbeta[at], by_beta.value, (double)by_beta.error);
        assert_value_near("ddecay", at, ddecay[at], by_decay[t].value, (double)by_decay[t].error);
    }
}

static void check_group(const struct delta_case *x, const real *grad, int64_t b, int64_t group) {
    const struct hk_delta_dims *d = &x->dims;
    const int64_t heads = d->heads / d->groups, n = d->positions;
    const real *dk = grad + key_size(d), *dv = dk + key_size(d);
    struct ball *by_q = balls(n * d->width), *by_k = balls(n * d->width);
    for (int64_t head = group * heads; head < (group + 1) * heads; head++) {
        struct head h = forward_of(x, b, head);
        solve_back(&h);
        score_back(&h);
        add_keys(&h, by_q, by_k);
        check_scalars(x, &h, b, head, dv);
    }
    for (int64_t i = 0; i < n * d->width; i++) {
        const int64_t at = ((b * n + i / d->width) * d->groups + group) * d->width + i % d->width;
        const double sums = (double)heads * EPSILON;
        assert_value_near("dq", at, grad[at], by_q[i].value,
                          (double)(by_q[i].error + sums * by_q[i].size));
        assert_value_near("dk", at, dk[at], by_k[i].value,
                          (double)(by_k[i].error + sums * by_k[i].size));
    }
}

static void gradients_are_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < 2 * COUNT(shapes); s++) {
        struct delta_case x = delta_case(s / 2, s % 2);
        const struct hk_delta_dims *d = &x.dims;
        real *out = test_nans(value_size(d) + chunks_of(d) * state_size(d));
        run(&x, out);
        x.states = out + value_size(d);
        const int64_t count = grad_size(d) + state_size(d);
        real *grad = test_nans(count);
        run_with_threads(run_gradient, &x, grad, count);
        for (int64_t i = 0; i < d->batch * d->groups; i++)
            check_group(&x, grad, i / d->groups, i % d->groups);
        test_free_all();
    }
}

struct differences {
    struct hk_delta_dims dims;
    const double *dout;
    double *q, *k, *v, *decay, *beta, *out;
};

static double loss(const void *context) {
    const struct differences *x = context;
    const int64_t count = value_size(&x->dims);
    double sum = 0;
    hk_delta_rule_f64(x->out, x->out + count, x->q, x->k, x->v, x->decay, x->beta, x->dims);
    for (int64_t i = 0; i < count; i++) sum += x->dout[i] * x->out[i];
    return sum;
}

static void gradients_match_central_differences(void **state) {
    (void)state;
    struct delta_case x = delta_case(1, true);
    const struct hk_delta_dims *d = &x.dims;
    real *out = test_nans(value_size(d) + chunks_of(d) * state_size(d));
    run(&x, out);
    x.states = out + value_size(d);
    real *grad = test_nans(grad_size(d) + state_size(d));
    run_gradient(&x, grad);
    struct differences l = {*d,
                            test_widened(x.dout, value_size(d)),
                            test_widened(x.q, key_size(d)),
                            test_widened(x.k, key_size(d)),
                            test_widened(x.v, value_size(d)),
                            test_widened(x.decay, scalar_size(d)),
                            test_widened(x.beta, scalar_size(d)),
                            test_doubles(value_size(d) + chunks_of(d) * state_size(d))};
    const double rounding = 1000 * EPSILON;
    const real *dk = grad + key_size(d), *dv = dk + key_size(d), *ddecay = dv + value_size(d);
    check_gradient("dq", grad, l.q, key_size(d), loss, &l, rounding);
    check_gradient("dk", dk, l.k, key_size(d), loss, &l, rounding);
    check_gradient("dv", dv, l.v, value_size(d), loss, &l, rounding);
    check_gradient("ddecay", ddecay, l.decay, scalar_size(d), loss, &l, rounding);
    check_gradient("dbeta", ddecay + scalar_size(d), l.beta, scalar_size(d), loss, &l, rounding);
    test_free_all();
}

// Keys of length 1 and beta 1: states stay bounded over thousands of positions.
static void long_sequences_stay_finite(void **state) {
    (void)state;
    struct delta_case x = {.dims = {1, 3000, 1, 1, 4, 4, 64, 1, NULL}};
    const struct hk_delta_dims *d = &x.dims;
    real *k = test_reals(key_size(d), 2), *decay = test_reals(scalar_size(d), 4);
    real *beta = test_reals(scalar_size(d), 5);
    for (int64_t t = 0; t < d->positions; t++) {
        double length = 0;
        for (int i = 0; i < 4; i++) length += (double)k[4 * t + i] * (double)k[4 * t + i];
        for (int i = 0; i < 4; i++) k[4 * t + i] /= (real)sqrt(length);
        decay[t] = (real)(t % 100 == 99 ? -90 : 0), beta[t] = 1;
    }
    x.q = test_reals(key_size(d), 1), x.k = k, x.v = test_reals(value_size(d), 3);
    x.decay = decay, x.beta = beta, x.dout = test_reals(value_size(d), 6);
    const int64_t count = value_size(d) + chunks_of(d) * state_size(d);
    real *out = test_nans(count), *grad = test_nans(grad_size(d) + state_size(d));
    run(&x, out);
    x.states = out + value_size(d);
    run_gradient(&x, grad);
    for (int64_t i = 0; i < value_size(d); i++) assert_true(fabs((double)out[i]) < 100);
    for (int64_t i = 0; i < grad_size(d); i++) assert_true(isfinite((double)grad[i]));
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(gradients_are_within_the_bound),
        cmocka_unit_test(gradients_match_central_differences),
        cmocka_unit_test(long_sequences_stay_finite),
    };
    return RUN_KERNEL_TESTS(tests);
}
