// Every form of matmul with bf16 operands against the sum that defines it: operands rounded to
// 8 significant bits, everything else exact.
//
// Bound: products of bf16 numbers are exact in float, so only additions round, as in
// matmul_test.c: k * u / (1 - k * u) * sum |a b|. HK_ADD is one more term.
#include "kernels/matmul/matmul.h"

#include "tests/kernels/kernel_case.h"

static const struct hk_matmul_dims shapes[] = {
    {.m = 1, .n = 1, .k = 1},      {.m = 0, .n = 70, .k = 5},    {.m = 3, .n = 0, .k = 4},
    {.m = 4, .n = 66, .k = 0},     {.m = 6, .n = 64, .k = 64},   {.m = 1, .n = 1130, .k = 300},
    {.m = 7, .n = 17, .k = 1257},  {.m = 13, .n = 63, .k = 65},  {.m = 97, .n = 96, .k = 31},
    {.m = 200, .n = 129, .k = 70}, {.m = 301, .n = 40, .k = 97}, {.m = 16, .n = 300, .k = 8},
    {.m = 1050, .n = 66, .k = 34}, {.m = 16, .n = 300, .k = 48},
};

struct matmul_case {
    struct hk_matmul_dims dims;
    enum hk_layout layout;
    enum hk_write write;
    const real *a, *c;
    const hk_bf16 *b;
};

static double rounded(real x) {
    int exponent;
    const double mantissa = frexp((double)x, &exponent);
    return ldexp(nearbyint(ldexp(mantissa, 8)), exponent - 8);
}

static void run_nn(const void *context, real *out) {
    const struct matmul_case *x = context;
    hk_matmul_nn_bf16(out, x->a, x->b, x->layout, x->dims, x->write, NULL);
}

static void run_nt(const void *context, real *out) {
    const struct matmul_case *x = context;
    hk_matmul_nt_bf16(out, x->c, x->b, x->layout, x->dims, x->write, NULL);
}

static void run_tn(const void *context, real *out) {
    const struct matmul_case *x = context;
    hk_matmul_tn_bf16(out, x->a, x->c, x->layout, x->dims, x->write);
}

// A sum of `terms` products, term i of x[i * x_step] and y[i * y_step], against one element.
static void check(const char *what, int64_t at, real got, const double *x, int64_t x_step,
                  const double *y, int64_t y_step, int64_t terms, const real *old) {
    wide value = 0, magnitude = 0;
    for (int64_t i = 0; i < terms; i++) {
        const wide term = (wide)x[i * x_step] * y[i * y_step];
        value += term;
        magnitude += fabsl(term);
    }
    if (old) {
        value += *old;
        magnitude += fabsl((wide)*old);
    }
    assert_near(what, at, got, value, (double)(terms + 2) * EPSILON * (double)magnitude);
}

static double *all_rounded(const real *from, int64_t count) {
    double *to = test_doubles(count);
    for (int64_t i = 0; i < count; i++) to[i] = rounded(from[i]);
    return to;
}

static void check_shape(struct hk_matmul_dims d, enum hk_layout layout, enum hk_write write) {
    const int64_t m = d.m, n = d.n, k = d.k;
    const int64_t size = layout == HK_ROWS ? k * n : hk_panels_size(k, n);
    const bool adds = write == HK_ADD;
    const real *a = test_reals(m * k, 1), *b = test_reals(k * n, 2), *c = test_reals(m * n, 3);
    const double *a16 = all_rounded(a, m * k), *b16 = all_rounded(b, k * n);
    const double *c16 = all_rounded(c, m * n);
    real *panels = test_nans(hk_panels_size(k, n));
    hk_bf16 *weights = (hk_bf16 *)test_nans(hk_panels_size_bf16(k, n));
    hk_panels_pack_f32(panels, b, k, n);
    if (layout == HK_ROWS) {
        hk_round_bf16(weights, b, k * n);
    } else {
        hk_round_panels_bf16(weights, panels, k, n);
    }
    const struct matmul_case x = {d, layout, write, a, c, weights};

    real *nn = adds ? test_reals(m * n, 9) : test_nans(m * n), *old = test_copy(nn, m * n);
    run_with_threads(run_nn, &x, nn, m * n);
    for (int64_t i = 0; i < m * n; i++) {
        check("nn", i, nn[i], a16 + i / n * k, 1, b16 + i % n, n, k, adds ? &old[i] : NULL);
    }
    real *nt = adds ? test_reals(m * k, 9) : test_nans(m * k);
    old = test_copy(nt, m * k);
    run_with_threads(run_nt, &x, nt, m * k);
    for (int64_t i = 0; i < m * k; i++) {
        check("nt", i, nt[i], c16 + i / k * n, 1, b16 + i % k * n, 1, n, adds ? &old[i] : NULL);
    }
    // The old values of a sum: panels have their padding already.
    real *tn = adds ? test_copy(layout == HK_ROWS ? b : panels, size) : test_nans(size);
    old = test_copy(tn, size);
    run_with_threads(run_tn, &x, tn, size);
    for (int64_t i = 0; i < size; i++) {
        const int64_t row = layout == HK_ROWS ? i / n : i / HK_PANEL % k;
        const int64_t column = layout == HK_ROWS ? i % n : i / HK_PANEL / k * HK_PANEL + i % 64;
        const int64_t terms = column < n ? m : 0; // The padding stays zero: the bound asks for it.
        check("tn", i, tn[i], a16 + row, k, c16 + column, n, terms, adds ? &old[i] : NULL);
    }
    test_free_all();
}

static void every_form_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 4; s++) {
        check_shape(shapes[s / 4], s % 2 ? HK_PANELS : HK_ROWS, s / 2 % 2 ? HK_ADD : HK_STORE);
    }
}

static void check_rows(struct hk_matmul_dims all) {
    const struct hk_matmul_dims one = {.m = 1, .n = all.n, .k = all.k};
    real *a = test_reals(all.m * all.k, 1), *c = test_reals(all.m * all.n, 2);
    real *panels = test_nans(hk_panels_size(all.k, all.n));
    hk_bf16 *b = (hk_bf16 *)test_nans(hk_panels_size_bf16(all.k, all.n));
    real *nn = test_nans(all.m * all.n), *nt = test_nans(all.m * all.k);
    hk_panels_pack_f32(panels, test_reals(all.k * all.n, 3), all.k, all.n);
    hk_round_panels_bf16(b, panels, all.k, all.n);
    hk_matmul_nn_bf16(nn, a, b, HK_PANELS, all, HK_STORE, NULL);
    hk_matmul_nt_bf16(nt, c, b, HK_PANELS, all, HK_STORE, NULL);
    for (int64_t i = 0; i < all.m; i++) {
        real *row = test_nans(all.n), *back = test_nans(all.k);
        hk_matmul_nn_bf16(row, a + i * all.k, b, HK_PANELS, one, HK_STORE, NULL);
        assert_same_bits("nn", nn + i * all.n, row, all.n);
        hk_matmul_nt_bf16(back, c + i * all.n, b, HK_PANELS, one, HK_STORE, NULL);
        assert_same_bits("nt", nt + i * all.k, back, all.k);
    }
    test_free_all();
}

// 16 rows and 304 columns: where rows are few, another order of loops computes nt.
static void a_row_does_not_depend_on_the_others(void **state) {
    (void)state;
    check_rows((struct hk_matmul_dims){.m = 400, .n = 150, .k = 301});
    check_rows((struct hk_matmul_dims){.m = 16, .n = 300, .k = 304});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_within_the_bound),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
    };
    return RUN_KERNEL_TESTS(tests);
}
