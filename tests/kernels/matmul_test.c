// Every form of matmul against the defining sum.
//
// Bound: a sum of k products, in any order and with or without fused multiply-add, is within
// k * u / (1 - k * u) * sum |a b| of the exact one (Higham, "Accuracy and Stability of Numerical
// Algorithms", section 3.1), u = EPSILON / 2. HK_ADD is one more term.
#include "kernels/matmul/matmul.h"

#include "tests/kernels/weights.h"

static const struct hk_matmul_dims shapes[] = {
    {.m = 1, .n = 1, .k = 1},      {.m = 0, .n = 70, .k = 5},     {.m = 3, .n = 0, .k = 4},
    {.m = 4, .n = 66, .k = 0},     {.m = 6, .n = 64, .k = 64},    {.m = 1, .n = 130, .k = 300},
    {.m = 7, .n = 17, .k = 257},   {.m = 13, .n = 63, .k = 65},   {.m = 97, .n = 96, .k = 31},
    {.m = 200, .n = 129, .k = 70}, {.m = 301, .n = 40, .k = 97},  {.m = 16, .n = 300, .k = 8},
    {.m = 16, .n = 300, .k = 32},  {.m = 46, .n = 70, .k = 80},   {.m = 190, .n = 0, .k = 16},
    {.m = 63, .n = 513, .k = 528}, {.m = 2100, .n = 24, .k = 17},
};

struct matmul_case {
    struct hk_matmul_dims dims;
    enum hk_layout layout;
    enum hk_write write;
    const real *a, *b, *c;
};

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
            add(&sum, x->a[i / n * k + p], x->b[weights_at(x->layout, k, n, p, i % n)]);
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
            add(&sum, x->c[i / k * n + p], x->b[weights_at(x->layout, k, n, i % k, p)]);
        }
        check("nt", i, out[i], sum, n, old[i], x->write);
    }
}

static void check_tn(const struct matmul_case *x) {
    const int64_t m = x->dims.m, n = x->dims.n, k = x->dims.k;
    const int64_t size = weights_size(x->layout, k, n);
    real *out = destination(size, x->write), *old;
    const int64_t padded = x->layout == HK_PANELS ? (n + HK_PANEL - 1) / HK_PANEL * HK_PANEL : n;
    for (int64_t i = 0; i < k && x->write == HK_ADD; i++) {
        for (int64_t j = n; j < padded; j++) out[weights_at(x->layout, k, n, i, j)] = 0;
    }
    old = test_copy(out, size);
    run_with_threads(run_tn, x, out, size);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < padded; j++) {
            const int64_t here = weights_at(x->layout, k, n, i, j);
            struct sum sum = {0, 0}; // Stays 0 in the padding: the bound then asks for 0.
            for (int64_t p = 0; p < m && j < n; p++) add(&sum, x->a[p * k + i], x->c[p * n + j]);
            check("tn", here, out[here], sum, m, old[here], x->write);
        }
    }
}

static void every_form_is_within_the_bound(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 2 * LAYOUTS; s++) {
        const struct hk_matmul_dims d = shapes[s / LAYOUTS / 2];
        if (d.m * d.n * d.k > WORK_MAX) continue;
        const enum hk_layout layout = (enum hk_layout)(s % LAYOUTS);
        const struct matmul_case x = {
            .dims = d,
            .layout = layout,
            .write = s / LAYOUTS % 2 ? HK_ADD : HK_STORE,
            .a = test_reals(d.m * d.k, 1),
            .b = weights_of(layout, d.k, d.n, 2),
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
    if (all.m * all.n * all.k > WORK_MAX) return;
    const enum hk_layout layout = (enum hk_layout)(LAYOUTS - 1);
    real *a = test_reals(all.m * all.k, 1), *c = test_reals(all.m * all.n, 2);
    real *b = weights_of(layout, all.k, all.n, 3);
    real *nn = test_reals(all.m * all.n, 4), *nt = test_reals(all.m * all.k, 5);
    real *row = test_copy(nn, all.m * all.n), *back = test_copy(nt, all.m * all.k);
    HK(matmul_nn, nn, a, b, layout, all, write, NULL);
    HK(matmul_nt, nt, c, b, layout, all, write, NULL);
    for (int64_t i = 0; i < all.m; i += APART) {
        HK(matmul_nn, row + i * all.n, a + i * all.k, b, layout, one, write, NULL);
        HK(matmul_nt, back + i * all.k, c + i * all.n, b, layout, one, write, NULL);
        assert_same_bits("nn", nn + i * all.n, row + i * all.n, all.n);
        assert_same_bits("nt", nt + i * all.k, back + i * all.k, all.k);
    }
    test_free_all();
}

// However many there are, and therefore whichever operand nt turns.
static void a_row_does_not_depend_on_the_others(void **state) {
    (void)state;
    if (!ROWS_ALONE) skip();
    for (enum hk_write write = HK_STORE; write <= HK_ADD; write++) {
        check_rows((struct hk_matmul_dims){.m = 150, .n = 70, .k = 100}, write);
        check_rows((struct hk_matmul_dims){.m = 400, .n = 150, .k = 300}, write);
        check_rows((struct hk_matmul_dims){.m = 62, .n = 530, .k = 304}, write);
        check_rows((struct hk_matmul_dims){.m = 16, .n = 530, .k = 528}, write);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_within_the_bound),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
    };
    return RUN_KERNEL_TESTS(tests);
}
