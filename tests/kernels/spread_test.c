// spread copies or adds vectors; its gradient adds rows in ascending order, exact to the bit, where the target does
// (ASCENDING), and else within the bound of a sum.
#include "kernels/spread/spread.h"

#include "tests/kernels/kernel_case.h"

enum { experts = 6, offset = 5, rows = 37 };

static const int32_t first[experts + 1] = {0, 0, 4, 4, 30, 37, 37}; // Three without rows.
static const int64_t widths[] = {1, 7, 64, 200, 1100};

struct spread_case {
    int64_t n;
    enum hk_write write;
    const int32_t *first;
    real **chunk;
    real **grad; // For run_gradient's output.
    const real *dy;
};

static void run(const void *context, real *out) {
    const struct spread_case *x = context;
    HK(spread, out, (const real *const *)x->chunk, offset, x->first, experts, x->n, x->write);
}

static void run_gradient(const void *context, real *out) {
    const struct spread_case *x = context;
    for (int e = 0; e < experts; e++) x->grad[e] = out + e * (offset + x->n);
    HK(spread_grad, x->grad, offset, x->dy, x->first, experts, x->n, x->write);
}

static void check(int64_t n, enum hk_write write) {
    int32_t *begin = test_ints(experts + 1, 1, 1);
    memcpy(begin, first, sizeof first);
    struct spread_case x = {.n = n,
                            .write = write,
                            .first = begin,
                            .chunk = (real **)test_pointers(experts),
                            .grad = (real **)test_pointers(experts),
                            .dy = test_reals(rows * n, 1)};
    real *y = write == HK_ADD ? test_reals(rows * n, 2) : test_nans(rows * n);
    real *y_want = test_copy(y, rows * n);
    const int64_t size = experts * (offset + n);
    real *grad = test_reals(size, 3), *grad_want = test_copy(grad, size);
    for (int e = 0; e < experts; e++) {
        x.chunk[e] = test_reals(offset + n, (uint64_t)(10 + e));
        real *to = grad_want + e * (offset + n) + offset;
        for (int64_t j = 0; j < n; j++) {
            real sum = 0;
            for (int64_t r = first[e]; r < first[e + 1]; r++) {
                const real old = write == HK_ADD ? y_want[r * n + j] : 0;
                y_want[r * n + j] = test_value(old + x.chunk[e][offset + j]);
                sum += x.dy[r * n + j];
            }
            to[j] = (write == HK_ADD ? to[j] : 0) + sum;
        }
    }
    run_with_threads(run, &x, y, rows * n);
    assert_same_bits("y", y, y_want, rows * n);
    run_with_threads(run_gradient, &x, grad, size);
    if (ASCENDING) assert_same_bits("grad", grad, grad_want, size);
    // At most 1 each: the rows of an expert and what they are added to.
    for (int64_t i = 0; i < size; i++)
        assert_near("grad", i, grad[i], grad_want[i], 2 * EPSILON * (rows + 1) * (rows + 1));
    test_free_all();
}

static void every_row_gets_its_experts_vector(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(widths); s++) {
        check(widths[s], HK_STORE);
        check(widths[s], HK_ADD);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_gets_its_experts_vector)};
    return RUN_KERNEL_TESTS(tests);
}
