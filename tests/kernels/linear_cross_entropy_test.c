// linear_cross_entropy against the kernels that it is made of, called for all tokens at once: the same bits for every
// size of block. Only dw is a sum over tokens: where blocks cut it elsewhere than matmul_tn does, it is as near to the exact
// sum as that is.
//
// Bound of dw then: k * u * sum |a b| of both, with u half of EPSILON, for a sum of k terms in any order; a
// sum that is added to is one term more.
#include "kernels/linear_cross_entropy/linear_cross_entropy.h"

#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/matmul/matmul.h"
#include "tests/kernels/kernel_case.h"

static const struct hk_head_dims shapes[] = {
    {.m = 1, .n = 1, .k = 1, .block = 1},        {.m = 7, .n = 70, .k = 5, .block = 3},
    {.m = 33, .n = 129, .k = 24, .block = 33},   {.m = 33, .n = 130, .k = 17, .block = 64},
    {.m = 1100, .n = 66, .k = 34, .block = 512}, {.m = 300, .n = 40, .k = 97, .block = 128},
};

struct head_case {
    struct hk_head_dims dims;
    enum hk_layout layout;
    enum hk_write write;
    const real *x, *w, *scale, *dloss;
    const int32_t *targets;
    const float *weights; // Or NULL.
    real *block;
};

static int64_t width(const struct hk_head_dims *d) {
    return d->turned ? d->n : d->k;
}

static int64_t words(const struct hk_head_dims *d) {
    return d->turned ? d->k : d->n;
}

// Elements of a matrix as the case has it.
static int64_t size_of(const struct head_case *c) {
    const struct hk_head_dims *d = &c->dims;
    return c->layout == HK_ROWS ? d->k * d->n : hk_panels_size(d->k, d->n);
}

static struct head_case head_case(struct hk_head_dims d, enum hk_layout layout,
                                  enum hk_write write) {
    struct head_case c = {.dims = d, .layout = layout, .write = write};
    const real *w = test_reals(d.k * d.n, 2);
    int32_t *targets = test_ints(d.m, (int32_t)words(&d), 3);
    for (int64_t t = 2; t < d.m; t += 3) targets[t] = -1;
    c.x = test_reals(d.m * width(&d), 1);
    c.targets = targets;
    float *weights = test_array(d.m, sizeof *weights);
    for (int64_t t = 0; t < d.m; t++) weights[t] = (float)(t * 5 % 9) / 8;
    c.weights = d.m % 2 ? weights : NULL;
    c.scale = test_reals(1, 4);
    c.dloss = test_reals(1, 5);
    c.block = test_nans(d.block * words(&d));
    if (layout == HK_PANELS) {
        real *panels = test_nans(hk_panels_size(d.k, d.n));
        HK_NAME(panels_pack)(panels, w, d.k, d.n);
        w = panels;
    }
    c.w = w;
    return c;
}

static struct hk_matmul_dims all_rows(const struct head_case *c) {
    return (struct hk_matmul_dims){.m = c->dims.m, .n = c->dims.n, .k = c->dims.k};
}

// ---- what is compared with: all tokens at once

static real *logits_of(const struct head_case *c) {
    real *logits = test_nans(c->dims.m * words(&c->dims));
    if (c->dims.turned)
        HK(matmul_nt, logits, c->x, c->w, c->layout, all_rows(c), HK_STORE, NULL);
    else
        HK(matmul_nn, logits, c->x, c->w, c->layout, all_rows(c), HK_STORE, NULL);
    return logits;
}

static void gradients_of(const struct head_case *c, real *d, const real *lse, real *dx, real *dw) {
    HK(cross_entropy_grad, d, c->dloss, d, lse, c->targets, c->weights, c->scale, c->dims.m,
       words(&c->dims));
    if (c->dims.turned) {
        HK(matmul_nn, dx, d, c->w, c->layout, all_rows(c), c->write, NULL);
        HK(matmul_tn, dw, d, c->x, c->layout, all_rows(c), c->write);
    } else {
        HK(matmul_nt, dx, d, c->w, c->layout, all_rows(c), c->write, NULL);
        HK(matmul_tn, dw, c->x, d, c->layout, all_rows(c), c->write);
    }
}

// ---- forward

static void run(const void *context, real *out) {
    const struct head_case *c = context;
    HK(linear_cross_entropy, out, out + 1, c->block, c->x, c->w, c->layout, c->targets, c->weights,
       c->scale, c->dims, NULL);
}

static void check_some_logits(const struct head_case *c, const real *logits) {
    const int64_t wide = words(&c->dims);
    for (int64_t first = 0; first < c->dims.m; first += c->dims.m / 3 + 1) {
        const int64_t left = c->dims.m - first;
        const struct hk_tokens only = {first, left < c->dims.block ? left : c->dims.block};
        HK(linear_cross_entropy, NULL, NULL, c->block, c->x, c->w, c->layout, NULL, NULL, NULL,
           c->dims, &only);
        assert_same_bits("logits", c->block, logits + first * wide, only.count * wide);
    }
}

static void check_forward(const struct head_case *c) {
    const int64_t m = c->dims.m;
    real *got = test_nans(1 + m), *want = test_nans(1 + m), *logits = logits_of(c);
    HK(cross_entropy, want, want + 1, logits, c->targets, c->weights, c->scale, m, words(&c->dims));
    run_with_threads(run, c, got, 1 + m);
    assert_same_bits("loss and lse", got, want, 1 + m);
    check_some_logits(c, logits);
}

// ---- gradient

struct gradient_case {
    const struct head_case *head;
    const real *lse;
    bool both;
};

static void run_gradient(const void *context, real *out) {
    const struct gradient_case *g = context;
    const struct head_case *c = g->head;
    HK(linear_cross_entropy_grad, out, g->both ? out + c->dims.m * width(&c->dims) : NULL, c->block,
       c->dloss, c->x, c->w, c->layout, g->lse, c->targets, c->weights, c->scale, c->dims, c->write,
       c->write);
}

// Element (i, j) of dw, [k, n], from gradients of all logits.
static void check_element(const struct head_case *c, const real *d, const real *dw, const real *old,
                          int64_t i, int64_t j) {
    const struct hk_head_dims *s = &c->dims;
    const int64_t at =
        c->layout == HK_ROWS ? i * s->n + j : (j / HK_PANEL * s->k + i) * HK_PANEL + j % HK_PANEL;
    wide sum = old[at], magnitude = fabs((double)old[at]);
    for (int64_t t = 0; t < s->m; t++) {
        const wide a = s->turned ? d[t * s->k + i] : c->x[t * s->k + i];
        const wide b = s->turned ? c->x[t * s->n + j] : d[t * s->n + j];
        sum += a * b;
        magnitude += fabsl(a * b);
    }
    assert_near("dw", at, dw[at], sum, (double)(s->m + 2) * EPSILON * (double)magnitude);
}

static void check_gradient_of(const struct head_case *c) {
    const int64_t m = c->dims.m, of_x = m * width(&c->dims), all = of_x + size_of(c);
    real *loss = test_nans(1), *lse = test_nans(m), *d = logits_of(c);
    HK(cross_entropy, loss, lse, d, c->targets, c->weights, c->scale, m, words(&c->dims));
    const real *old = test_reals(all, 6);
    const bool adds = c->write == HK_ADD;
    real *got = adds ? test_copy(old, all) : test_nans(all);
    real *want = adds ? test_copy(old, all) : test_nans(all);
    gradients_of(c, d, lse, want, want + of_x);
    struct gradient_case g = {c, lse, true};
    run_with_threads(run_gradient, &g, got, all);
    assert_same_bits("dx", got, want, of_x);
    if (c->dims.block >= m || (ASCENDING && c->dims.block % 512 == 0)) {
        assert_same_bits("dw", got + of_x, want + of_x, size_of(c));
    } else {
        real *none = test_copy(old, all);
        for (int64_t i = 0; !adds && i < all; i++) none[i] = 0;
        for (int64_t i = 0; i < c->dims.k; i += 3) {
            for (int64_t j = 0; j < c->dims.n; j += 5)
                check_element(c, d, got + of_x, none + of_x, i, j);
        }
    }
    g.both = false; // For a head that is not trained.
    real *alone = adds ? test_copy(old, of_x) : test_nans(of_x);
    run_gradient(&g, alone);
    assert_same_bits("dx alone", alone, want, of_x);
}

static void blocks_leave_every_bit(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        if (shapes[s].m * shapes[s].n * shapes[s].k > WORK_MAX / 3) continue; // Products of a case.
        for (int way = 0; way < 8; way++) {
            if (LAYOUTS == 1 && way & 2) continue;
            struct hk_head_dims dims = shapes[s];
            dims.turned = way & 1;
            const struct head_case c =
                head_case(dims, way & 2 ? HK_PANELS : HK_ROWS, way & 4 ? HK_ADD : HK_STORE);
            check_forward(&c);
            check_gradient_of(&c);
            test_free_all();
        }
    }
}

#if HK_BITS == 32 && !defined HK_TARGET_CUDA
// Products that round: the same, with those in place of the others.
static void blocks_of_rounded_products_leave_every_bit(void **state) {
    (void)state;
    const struct hk_head_dims dims = {.m = 1100, .n = 66, .k = 34, .block = 512};
    const struct head_case c = head_case(dims, HK_ROWS, HK_STORE);
    const int64_t wide = dims.n, of_x = dims.m * dims.k, all = of_x + dims.k * dims.n;
    hk_bf16 *w = (hk_bf16 *)test_nans(dims.k * dims.n);
    hk_round_bf16(w, c.w, dims.k * dims.n);
    real *logits = test_nans(dims.m * wide), *got = test_nans(1 + dims.m),
         *want = test_nans(1 + dims.m), *d = test_nans(all), *other = test_nans(all);
    hk_matmul_nn_bf16(logits, c.x, w, HK_ROWS, all_rows(&c), HK_STORE, NULL);
    hk_cross_entropy_f32(want, want + 1, logits, c.targets, c.weights, c.scale, dims.m, wide);
    hk_linear_cross_entropy_bf16(got, got + 1, c.block, c.x, w, HK_ROWS, c.targets, c.weights,
                                 c.scale, dims, NULL);
    assert_same_bits("loss and lse", got, want, 1 + dims.m);
    hk_cross_entropy_grad_f32(logits, c.dloss, logits, want + 1, c.targets, c.weights, c.scale,
                              dims.m, wide);
    hk_matmul_nt_bf16(d, logits, w, HK_ROWS, all_rows(&c), HK_STORE, NULL);
    hk_matmul_tn_bf16(d + of_x, c.x, logits, HK_ROWS, all_rows(&c), HK_STORE);
    hk_linear_cross_entropy_grad_bf16(other, other + of_x, c.block, c.dloss, c.x, w, HK_ROWS,
                                      want + 1, c.targets, c.weights, c.scale, dims, HK_STORE,
                                      HK_STORE);
    assert_same_bits("dx and dw", other, d, all);
    test_free_all();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_leave_every_bit),
#if HK_BITS == 32 && !defined HK_TARGET_CUDA
        cmocka_unit_test(blocks_of_rounded_products_leave_every_bit),
#endif
    };
    return RUN_KERNEL_TESTS(tests);
}
