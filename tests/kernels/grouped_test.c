// grouped against matmul, expert by expert: the contract promises the same bits.
#include "kernels/grouped/grouped.h"

#include "kernels/matmul/matmul.h"
#include "tests/kernels/weights.h"

enum { experts = 7, offset = 64 };

// Some experts without rows, and one with so many that gradients of weights are summed in several parts.
static const int32_t ragged[experts + 1] = {0, 0, 1, 4, 21, 21, 150, 331};
static const int32_t crowded[experts + 1] = {0, 0, 2100, 2103, 2103, 2103, 2103, 2120};
static const enum hk_layout layout = (enum hk_layout)(LAYOUTS - 1);

struct grouped_case {
    struct hk_grouped_dims dims;
    enum hk_write write;
    const real *a, *c;
    const int32_t *first;
    const real **chunk;
    int64_t chunk_size;
};

static void run_nn(const void *context, real *out) {
    const struct grouped_case *x = context;
    HK(grouped_nn, out, x->a, x->chunk, offset, x->first, x->dims, x->write, NULL);
}

static void run_nt(const void *context, real *out) {
    const struct grouped_case *x = context;
    HK(grouped_nt, out, x->c, x->chunk, offset, x->first, x->dims, x->write, NULL);
}

static void run_tn(const void *context, real *out) {
    const struct grouped_case *x = context;
    real **grad = (real **)test_pointers(experts);
    for (int e = 0; e < experts; e++) grad[e] = out + e * x->chunk_size;
    HK(grouped_tn, grad, offset, x->a, x->c, x->first, x->dims, x->write);
}

static struct grouped_case grouped_case(const int32_t *firsts, int64_t k, int64_t n,
                                        enum hk_write write) {
    const int64_t rows = firsts[experts];
    struct grouped_case x = {
        .dims = {.experts = experts, .n = n, .k = k},
        .write = write,
        .a = test_reals(rows * k, 1),
        .c = test_reals(rows * n, 2),
        .chunk = (const real **)test_pointers(experts),
        .chunk_size = offset + weights_size(layout, k, n),
    };
    int32_t *first = test_ints(experts + 1, 1, 0);
    memcpy(first, firsts, sizeof ragged);
    x.first = first;
    for (int e = 0; e < experts; e++) {
        real *chunk = test_nans(x.chunk_size);
        weights_fill(chunk + offset, layout, k, n, (uint64_t)(10 + e));
        x.chunk[e] = chunk;
    }
    return x;
}

static void check(const int32_t *firsts, int64_t k, int64_t n, enum hk_write write) {
    const int64_t rows = firsts[experts];
    if (rows * k * n > WORK_MAX) return;
    const struct grouped_case x = grouped_case(firsts, k, n, write);
    real *nn = test_reals(rows * n, 3), *nn_want = test_copy(nn, rows * n);
    real *nt = test_reals(rows * k, 4), *nt_want = test_copy(nt, rows * k);
    const int64_t size = experts * x.chunk_size;
    real *tn = test_reals(size, 5), *tn_want = test_copy(tn, size);
    for (int e = 0; e < experts; e++) {
        const struct hk_matmul_dims d = {.m = firsts[e + 1] - firsts[e], .n = n, .k = k};
        const real *b = x.chunk[e] + offset;
        const real *a = x.a + firsts[e] * k, *c = x.c + firsts[e] * n;
        HK(matmul_nn, nn_want + firsts[e] * n, a, b, layout, d, write, NULL);
        HK(matmul_nt, nt_want + firsts[e] * k, c, b, layout, d, write, NULL);
        HK(matmul_tn, tn_want + e * x.chunk_size + offset, a, c, layout, d, write);
    }
    run_with_threads(run_nn, &x, nn, rows * n);
    assert_same_bits("nn", nn, nn_want, rows * n);
    run_with_threads(run_nt, &x, nt, rows * k);
    assert_same_bits("nt", nt, nt_want, rows * k);
    run_with_threads(run_tn, &x, tn, size);
    assert_same_bits("tn", tn, tn_want, size);
    test_free_all();
}

static void each_expert_gets_its_own_product(void **state) {
    (void)state;
    check(ragged, 64, 64, HK_STORE);
    check(ragged, 35, 70, HK_ADD);
    check(ragged, 100, 70, HK_STORE);
    check(ragged, 100, 70, HK_ADD);
    check(ragged, 300, 200, HK_ADD);
    check(crowded, 36, 20, HK_STORE);
    check(crowded, 33, 17, HK_ADD);
}

static void an_expert_without_rows_gets_zeros(void **state) {
    (void)state;
    const struct grouped_case x = grouped_case(ragged, 20, 30, HK_STORE);
    real *tn = test_nans(experts * x.chunk_size);
    run_tn(&x, tn);
    for (int64_t i = 0; i < x.chunk_size; i++) {
        if (i < offset) {
            assert_true(isnan(tn[i])); // Not the matrix: not written.
        } else {
            assert_true(tn[i] == 0);
        }
    }
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_expert_gets_its_own_product),
        cmocka_unit_test(an_expert_without_rows_gets_zeros),
    };
    return RUN_KERNEL_TESTS(tests);
}
