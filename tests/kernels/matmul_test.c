// Every form of matmul against the defining sum.
//
// Bound: a sum of k products, in any order and with or without fused multiply-add, is within
// k * u / (1 - k * u) * sum |a b| of the exact one (Higham, "Accuracy and Stability of Numerical
// Algorithms", section 3.1), u = EPSILON / 2. HK_ADD is one more term.
#include "kernels/matmul/matmul.h"

#include "tests/kernels/kernel_case.h"

static const struct hk_matmul_dims shapes[] = {
    {.m = 1, .n = 1, .k = 1},      {.m = 0, .n = 70, .k = 5},    {.m = 3, .n = 0, .k = 4},
    {.m = 4, .n = 66, .k = 0},     {.m = 6, .n = 64, .k = 64},   {.m = 1, .n = 130, .k = 300},
    {.m = 7, .n = 17, .k = 257},   {.m = 13, .n = 63, .k = 65},  {.m = 97, .n = 96, .k = 31},
    {.m = 200, .n = 129, .k = 70}, {.m = 301, .n = 40, .k = 97}, {.m = 16, .n = 300, .k = 8},
    {.m = 16, .n = 300, .k = 32},  {.m = 46, .n = 70, .k = 80},  {.m = 190, .n = 0, .k = 16},
    {.m = 63, .n = 513, .k = 528},
};

struct matmul_case {
    struct hk_matmul_dims dims;
    enum hk_layout layout;
    enum hk_write write;
    const real *a, *b, *c;
};

static int64_t at(enum hk_layout layout, int64_t k, int64_t n, int64_t i, int64_t j) {
    return layout == HK_ROWS ? i * n + j : (j / HK_PANEL * k + i) * HK_PANEL + j % HK_PANEL;
}

static int64_t size_of_b(enum hk_layout layout, int64_t k, int64_t n) {
    return layout == HK_ROWS ? k * n : hk_panels_size(k, n);
}

static void run_nn(const void *context, real *out) {
    const struct matmul_case *x = context;
    HK(matmul_nn, out, x->a, x->b, x->layout, x->dims, x->write, NULL);
}

static void run_nt(const void *context, real *out) {
    const struct matmul_case *x = context;
    HK(matmul_nt, out, x->c, x->b, x->layout, x->dims, x->write, NULL);
}

static void run_tn(const void *context, real *out) {
    const struct matmul_case *x = context;
    HK(matmul_tn, out, x->a, x->c, x->layout, x->dims, x->write);
}

// A sum under construction, with the sum of magnitudes that its bound needs.
struct sum {
    wide value, magnitude;
};

static void add(struct sum *sum, wide a, wide b) {
    sum->value += a * b;
    sum->magnitude += fabsl(a * b);
}

static void check(const char *what, int64_t i, real got, struct sum sum, int64_t terms, real old,
                  enum hk_write write) {
    if (write == HK_ADD) add(&sum, old, 1);
    assert_near(what, i, got, sum.value, (double)(terms + 2) * EPSILON * (double)sum.magnitude);
}

static real *destination(int64_t count, enum hk_write write) {
    return write == HK_ADD ? test_reals(count, 9) : test_nans(count);
}

static void check_nn(const struct matmul_case *x) {
    const int64_t m = x->dims.m, n = x->dims.n, k = x->dims.k;
    real *out = destination(m * n, x->write), *old = test_copy(out, m * n);
    run_with_threads(run_nn, x, out, m * n);
    for (int64_t i = 0; i < m * n; i++) {
        struct sum sum = {0, 0};
        for (int64_t p = 0; p < k; p++) {
            add(&sum, x->a[i / n * k + p], x->b[at(x->layout, k, n, p, i % n)]);
        }
        check("nn", i, out[i], sum, k, old[i], x->write);
    }
}

static void check_nt(const struct matmul_case *x) {
    const int64_t m = x->dims.m, n = x->dims.n, k = x->dims.k;
    real *out = destination(m * k, x->write), *old = test_copy(out, m * k);
    run_with_threads(run_nt, x, out, m * k);
    for (int64_t i = 0; i < m * k; i++) {
        struct sum sum = {0, 0};
        for (int64_t p = 0; p < n; p++) {
            add(&sum, x->c[i / k * n + p], x->b[at(x->layout, k, n, i % k, p)]);
        }
        check("nt", i, out[i], sum, n, old[i], x->write);
    }
}

static void check_tn(const struct matmul_case *x) {
    const int64_t m = x->dims.m, n = x->dims.n, k = x->dims.k;
    const int64_t size = size_of_b(x->layout, k, n);
    real *out = destination(size, x->write), *old;
    const int64_t padded = x->layout == HK_PANELS ? (n + HK_PANEL - 1) / HK_PANEL * HK_PANEL : n;
    for (int64_t i = 0; i < k && x->write == HK_ADD; i++) {
        for (int64_t j = n; j < padded; j++) out[at(x->layout, k, n, i, j)] = 0;
    }
    old = test_copy(out, size);
    run_with_threads(run_tn, x, out, size);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < padded; j++) {
            const int64_t here = at(x->layout, k, n, i, j);
            struct sum sum = {0, 0}; // Stays 0 in the padding: the bound then asks for 0.
            for (int64_t p = 0; p < m && j < n; p++) add(&sum, x->a[p * k + i], x->c[p * n + j]);
            check("tn", here, out[here], sum, m, old[here], x->write);
        }
    }
}

static void every_form_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 4; s++) {
        const struct hk_matmul_dims d = shapes[s / 4];
        real *rows = test_reals(d.k * d.n, 2), *panels = test_nans(hk_panels_size(d.k, d.n));
        HK(panels_pack, panels, rows, d.k, d.n);
        const enum hk_layout layout = s % 2 ? HK_PANELS : HK_ROWS;
        const struct matmul_case x = {
            .dims = d,
            .layout = layout,
            .write = s / 2 % 2 ? HK_ADD : HK_STORE,
            .a = test_reals(d.m * d.k, 1),
            .b = layout == HK_PANELS ? panels : rows,
            .c = test_reals(d.m * d.n, 3),
        };
        check_nn(&x);
        check_nt(&x);
        check_tn(&x);
        test_free_all();
    }
}

static void check_rows(struct hk_matmul_dims all, enum hk_write write) {
    const struct hk_matmul_dims one = {.m = 1, .n = all.n, .k = all.k};
    real *a = test_reals(all.m * all.k, 1), *c = test_reals(all.m * all.n, 2);
    real *b = test_nans(hk_panels_size(all.k, all.n));
    real *nn = test_reals(all.m * all.n, 4), *nt = test_reals(all.m * all.k, 5);
    real *row = test_copy(nn, all.m * all.n), *back = test_copy(nt, all.m * all.k);
    HK(panels_pack, b, test_reals(all.k * all.n, 3), all.k, all.n);
    HK(matmul_nn, nn, a, b, HK_PANELS, all, write, NULL);
    HK(matmul_nt, nt, c, b, HK_PANELS, all, write, NULL);
    for (int64_t i = 0; i < all.m; i++) {
        HK(matmul_nn, row + i * all.n, a + i * all.k, b, HK_PANELS, one, write, NULL);
        HK(matmul_nt, back + i * all.k, c + i * all.n, b, HK_PANELS, one, write, NULL);
    }
    assert_same_bits("nn", nn, row, all.m * all.n);
    assert_same_bits("nt", nt, back, all.m * all.k);
    test_free_all();
}

// However many there are, and therefore whichever operand nt turns.
static void a_row_does_not_depend_on_the_others(void **state) {
    (void)state;
    for (enum hk_write write = HK_STORE; write <= HK_ADD; write++) {
        check_rows((struct hk_matmul_dims){.m = 400, .n = 150, .k = 300}, write);
        check_rows((struct hk_matmul_dims){.m = 62, .n = 530, .k = 304}, write);
        check_rows((struct hk_matmul_dims){.m = 16, .n = 530, .k = 528}, write);
    }
}

static void panels_hold_the_matrix_and_zeros(void **state) {
    (void)state;
    const int64_t k = 5, n = 130;
    real *rows = test_reals(k * n, 1), *back = test_nans(k * n);
    real *panels = test_nans(hk_panels_size(k, n));
    HK(panels_pack, panels, rows, k, n);
    assert_int_equal(hk_panels_size(k, n), 3 * 64 * k);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < 192; j++) {
            assert_true(panels[at(HK_PANELS, k, n, i, j)] == (j < n ? rows[i * n + j] : 0));
        }
    }
    HK(panels_unpack, back, panels, k, n);
    assert_same_bits("unpack", back, rows, k * n);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_within_the_bound),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
        cmocka_unit_test(panels_hold_the_matrix_and_zeros),
    };
    return RUN_KERNEL_TESTS(tests);
}
