// sum_rows adds in ascending order, exact to the bit, where the target does (ASCENDING); all other sums are within the
// bound of a sum.
#include "kernels/sum/sum.h"

#include "tests/kernels/kernel_case.h"

static const int64_t shapes[][2] = {{1, 1},    {0, 9},     {9, 0},  {33, 65},
                                    {5, 1200}, {130, 257}, {70, 66}};

struct sum_case {
    int64_t m, n;
    enum hk_write write;
    const real *x;
};

static void run_rows(const void *context, real *out) {
    const struct sum_case *x = context;
    HK(sum_rows, out, x->x, x->m, x->n, x->write);
}

static void run_columns(const void *context, real *out) {
    const struct sum_case *x = context;
    HK(sum_columns, out, x->x, x->m, x->n, x->write);
}

static void check(const struct sum_case *x) {
    const int64_t m = x->m, n = x->n;
    const bool add = x->write == HK_ADD;
    real *rows = add ? test_reals(n, 2) : test_nans(n), *want = test_copy(rows, n);
    real *columns = add ? test_reals(m, 3) : test_nans(m), *old = test_copy(columns, m);
    run_with_threads(run_rows, x, rows, n);
    for (int64_t j = 0; j < n; j++) {
        const double old_row = add ? (double)want[j] : 0;
        real sum = 0;
        wide exact = old_row, magnitude = fabs(old_row);
        for (int64_t i = 0; i < m; i++) {
            sum += x->x[i * n + j];
            exact += x->x[i * n + j];
            magnitude += fabsl(x->x[i * n + j]);
        }
        want[j] = (add ? want[j] : 0) + sum;
        assert_near("rows", j, rows[j], exact, (double)(m + 1) * EPSILON * (double)magnitude);
    }
    if (ASCENDING) assert_same_bits("rows", rows, want, n);

    run_with_threads(run_columns, x, columns, m);
    for (int64_t i = 0; i < m; i++) {
        wide sum = add ? old[i] : 0, magnitude = fabsl(sum);
        for (int64_t j = 0; j < n; j++) {
            sum += x->x[i * n + j];
            magnitude += fabsl(x->x[i * n + j]);
        }
        assert_near("columns", i, columns[i], sum, (double)(n + 1) * EPSILON * (double)magnitude);
        real *one = test_copy(old + i, 1);
        HK(sum_columns, one, x->x + i * n, 1, n, x->write);
        assert_same_bits("row", columns + i, one, 1);
    }
    test_free_all();
}

static void sums_are_right(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(shapes) * 2; s++) {
        const int64_t m = shapes[s / 2][0], n = shapes[s / 2][1];
        const struct sum_case x = {m, n, s % 2 ? HK_ADD : HK_STORE, test_reals(m * n, 1)};
        check(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_right)};
    return RUN_KERNEL_TESTS(tests);
}
