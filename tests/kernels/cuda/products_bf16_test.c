// Products of bf16 values, which only CUDA has: of one matrix and of every expert's, against the sums
// that define them.
//
// Bound: products of bf16 numbers are exact in float, so only additions round (matmul_test.c), and the
// result once more where it is bf16: half a unit in the last of 8 bits.
#include "kernels/launchers.h"
#include "tests/kernels/kernel_case.h"

#define HK_BF16(name, ...) (hkc_##name##_bf16(test_lane(), __VA_ARGS__), test_join(#name))

enum { experts = 7, offset = 8 };

// Rows of experts: none, few, more than tiles stand in a column and two slices have, and more than are summed twice at
// once for a gradient.
static const int32_t ragged[experts + 1] = {0, 0, 1, 4, 21, 21, 150, 331};
static const int32_t crowded[experts + 1] = {0, 0, 2100, 2103, 2103, 2103, 2103, 2120};
static const int32_t long_ones[experts + 1] = {0, 0, 8200, 8203, 8203, 8203, 8203, 8220};
static const int32_t few[experts + 1] = {0, 0, 1, 4, 21, 21, 151, 155};

struct product_case {
    struct hk_grouped_dims dims;
    enum hk_write write;
    bool dense; // All rows are of expert 0, and the product is matmul's.
    const int32_t *first;
    const hk_bf16 *a, *c;
    const hk_bf16 **chunk;
    int64_t chunk_size; // Elements, offset included.
};

// Seeded values that bf16 can hold.
static hk_bf16 *values(int64_t count, uint64_t seed) {
    const real *from = test_reals(count, seed);
    hk_bf16 *to = (hk_bf16 *)test_nans((count + 1) / 2);
    for (int64_t i = 0; i < count; i++) to[i] = hk_bf16_round(from[i]);
    return to;
}

// Results are compared as bf16 or float; both lie in an array of floats.
static void run_nn(const void *context, real *out) {
    const struct product_case *x = context;
    const struct hk_matmul_dims all = {.m = x->first[experts], .n = x->dims.n, .k = x->dims.k};
    if (x->dense) {
        HK_BF16(matmul_nn, (hk_bf16 *)out, x->a, x->chunk[0] + offset, HK_ROWS, all, x->write,
                NULL);
    } else {
        HK_BF16(grouped_nn, (hk_bf16 *)out, x->a, x->chunk, offset, x->first, x->dims, x->write,
                NULL);
    }
}

static void run_nt(const void *context, real *out) {
    const struct product_case *x = context;
    const struct hk_matmul_dims all = {.m = x->first[experts], .n = x->dims.n, .k = x->dims.k};
    if (x->dense) {
        HK_BF16(matmul_nt, (hk_bf16 *)out, x->c, x->chunk[0] + offset, HK_ROWS, all, x->write,
                NULL);
    } else {
        HK_BF16(grouped_nt, (hk_bf16 *)out, x->c, x->chunk, offset, x->first, x->dims, x->write,
                NULL);
    }
}

static void run_tn(const void *context, real *out) {
    const struct product_case *x = context;
    const struct hk_matmul_dims all = {.m = x->first[experts], .n = x->dims.n, .k = x->dims.k};
    real **grad = (real **)test_pointers(experts);
    for (int e = 0; e < experts; e++) grad[e] = out + e * x->chunk_size;
    if (x->dense) {
        HK_BF16(matmul_tn, grad[0] + offset, x->a, x->c, HK_ROWS, all, x->write);
    } else {
        HK_BF16(grouped_tn, grad, offset, x->a, x->c, x->first, x->dims, x->write);
    }
}

// A sum of `terms` products, term i of x[i * x_step] and y[i * y_step], against one element.
static void check(const char *what, int64_t at, double got, const hk_bf16 *x, int64_t x_step,
                  const hk_bf16 *y, int64_t y_step, int64_t terms, double old, double result) {
    double value = old, magnitude = fabs(old);
    for (int64_t i = 0; i < terms; i++) {
        const double term = (double)hk_bf16_float(x[i * x_step]) * hk_bf16_float(y[i * y_step]);
        value += term;
        magnitude += fabs(term);
    }
    const double bound = (double)(terms + 2) * EPSILON * magnitude;
    assert_near(what, at, (real)got, value, bound + (fabs(value) + bound) * result);
}

static const double once = 0x1p-8; // The relative error of rounding to bf16; more than half a unit.

static struct product_case product_case(const int32_t *firsts, int64_t k, int64_t n,
                                        enum hk_write write, bool dense) {
    const int64_t rows = firsts[experts];
    int32_t *first = test_ints(experts + 1, 1, 0);
    for (int e = 1; e <= experts; e++) first[e] = dense ? firsts[experts] : firsts[e];
    const struct product_case x = {
        .dims = {.experts = experts, .n = n, .k = k},
        .write = write,
        .dense = dense,
        .first = first,
        .a = values(rows * k, 1),
        .c = values(rows * n, 2),
        .chunk = (const hk_bf16 **)test_pointers(experts),
        .chunk_size = offset + k * n,
    };
    for (int e = 0; e < experts; e++) x.chunk[e] = values(x.chunk_size, (uint64_t)(10 + e));
    return x;
}

// nn if `forward`, otherwise nt: the result of expert e, whose rows begin at `first`.
static void check_rows(const struct product_case *x, bool forward) {
    const int64_t n = x->dims.n, k = x->dims.k, rows = x->first[experts];
    const int64_t width = forward ? n : k, terms = forward ? k : n;
    hk_bf16 *out = values(rows * width, 3);
    const hk_bf16 *old = (hk_bf16 *)test_copy((real *)out, (rows * width + 1) / 2);
    run_with_threads(forward ? run_nn : run_nt, x, (real *)out, (rows * width + 1) / 2);
    for (int e = 0; e < experts; e++) {
        const hk_bf16 *weights = x->chunk[e] + offset;
        for (int64_t i = x->first[e] * width; i < x->first[e + 1] * width; i++) {
            const int64_t row = i / width, column = i % width;
            check(forward ? "nn" : "nt", i, hk_bf16_float(out[i]),
                  (forward ? x->a : x->c) + row * terms, 1,
                  weights + (forward ? column : column * n), forward ? n : 1, terms,
                  x->write == HK_ADD ? hk_bf16_float(old[i]) : 0, once);
        }
    }
}

static void check_tn(const struct product_case *x) {
    const int64_t n = x->dims.n, k = x->dims.k, size = experts * x->chunk_size;
    real *out = test_reals(size, 4), *old = test_copy(out, size);
    run_with_threads(run_tn, x, out, size);
    for (int e = 0; e < (x->dense ? 1 : experts); e++) {
        const int64_t first = x->first[e], rows = x->first[e + 1] - first;
        for (int64_t i = 0; i < k * n; i++) {
            const int64_t at = e * x->chunk_size + offset + i;
            check("tn", at, out[at], x->a + first * k + i / n, k, x->c + first * n + i % n, n, rows,
                  x->write == HK_ADD ? old[at] : 0, 0);
        }
        assert_same_bits("before", out + e * x->chunk_size, old + e * x->chunk_size, offset);
    }
}

// One of them adds to what is there: the dense product, or that of experts.
static void check_both(const int32_t *firsts, int64_t k, int64_t n, bool dense_adds) {
    for (int dense = 0; dense < 2; dense++) {
        const struct product_case x =
            product_case(firsts, k, n, (dense == 1) == dense_adds ? HK_ADD : HK_STORE, dense == 1);
        check_rows(&x, true);
        check_rows(&x, false);
        check_tn(&x);
        test_free_all();
    }
}

static void check_every_product(void) {
    check_both(ragged, 35, 131, true);
    check_both(ragged, 136, 40, false);
    check_both(crowded, 24, 264, true); // A block has several tiles of each column.
    check_both(long_ones, 17, 9, false);
}

// A row alone, and all rows as those of one expert among others, whose tiles are as wide as they may be: the same bits.
static void check_single_rows(void) {
    struct product_case x = product_case(ragged, 264, 272, HK_STORE, true);
    const int64_t n = x.dims.n, k = x.dims.k, rows = x.first[experts];
    hk_bf16 *nn = values(rows * n, 3), *nt = values(rows * k, 4), *one = values(n + k, 5);
    run_nn(&x, (real *)nn);
    run_nt(&x, (real *)nt);
    for (int64_t i = 0; i < rows; i += 37) {
        const struct hk_matmul_dims alone = {.m = 1, .n = n, .k = k};
        const hk_bf16 *weights = x.chunk[0] + offset;
        HK_BF16(matmul_nn, one, x.a + i * k, weights, HK_ROWS, alone, HK_STORE, NULL);
        HK_BF16(matmul_nt, one + n, x.c + i * n, weights, HK_ROWS, alone, HK_STORE, NULL);
        assert_memory_equal(one, nn + i * n, (size_t)n * sizeof *one);
        assert_memory_equal(one + n, nt + i * k, (size_t)k * sizeof *one);
    }
    hk_bf16 *grouped_nn = values(rows * n, 6), *grouped_nt = values(rows * k, 7);
    x.dense = false;
    run_nn(&x, (real *)grouped_nn);
    run_nt(&x, (real *)grouped_nt);
    if (ROWS_ALONE) {
        assert_memory_equal(grouped_nn, nn, (size_t)(rows * n) * sizeof *nn);
        assert_memory_equal(grouped_nt, nt, (size_t)(rows * k) * sizeof *nt);
    }
    test_free_all();
}

static void every_product_is_within_the_bound(void **state) {
    (void)state;
    check_every_product();
}

// More columns and terms than one tile and all of its stages hold.
static void so_are_wide_ones(void **state) {
    (void)state;
    check_both(few, 328, 392, true);
    check_both(few, 130, 515, false);
}

static void a_row_does_not_depend_on_the_others(void **state) {
    (void)state;
    check_single_rows();
}

// With instructions that every device has, on any device.
static void so_it_is_with_common_instructions(void **state) {
    (void)state;
    test_lane()->warpgroups = false;
    check_every_product();
    check_single_rows();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_product_is_within_the_bound),
        cmocka_unit_test(so_are_wide_ones),
        cmocka_unit_test(a_row_does_not_depend_on_the_others),
        cmocka_unit_test(so_it_is_with_common_instructions),
    };
    return RUN_KERNEL_TESTS(tests);
}
