// The gradient of sinks against its definition in long double.
#include "kernels/sinks/sinks.h"

#include "tests/kernels/kernel_case.h"

struct sinks_case {
    int64_t batch, positions, heads, width;
    enum hk_write write;
    const real *dout, *out, *lse, *sinks;
};

static void run(const void *context, real *to) {
    const struct sinks_case *x = context;
    HK(sinks_grad, to, x->dout, x->out, x->lse, x->sinks, x->batch, x->positions, x->heads,
       x->width, x->write);
}

// A row's term is off by its sum over the width, its exp (of a difference of numbers up to 1) and itself; then
// there is a sum over all rows.
static void check(struct sinks_case x) {
    const int64_t rows = x.batch * x.positions, count = rows * x.heads;
    x.dout = test_reals(count * x.width, 1), x.out = test_reals(count * x.width, 2);
    x.lse = test_reals(count, 3), x.sinks = test_reals(x.heads, 4);
    real *to = x.write == HK_ADD ? test_reals(x.heads, 5) : test_nans(x.heads);
    const real *before = test_copy(to, x.heads);
    run_with_threads(run, &x, to, x.heads);
    for (int64_t h = 0; h < x.heads; h++) {
        wide want = x.write == HK_ADD ? before[h] : 0, size = fabsl(want);
        for (int64_t row = 0; row < rows; row++) {
            const int64_t t = row % x.positions, b = row / x.positions;
            const wide share = expl((wide)x.sinks[h] - x.lse[(b * x.heads + h) * x.positions + t]);
            for (int64_t c = 0; c < x.width; c++) {
                const int64_t at = (row * x.heads + h) * x.width + c;
                const wide term = share * x.dout[at] * x.out[at];
                want -= term;
                size += fabsl(term);
            }
        }
        assert_near("dsinks", h, to[h], want,
                    EPSILON * (double)(x.width + rows + 12) * (double)size);
    }
    test_free_all();
}

static void gradients_are_within_the_bound(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {
        {1, 1, 1, 1}, {2, 5, 3, 7}, {3, 40, 2, 64}, {1, 130, 5, 70}, {0, 4, 2, 3}};
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        const int64_t *n = shapes[s];
        check((struct sinks_case){n[0], n[1], n[2], n[3], HK_STORE, NULL, NULL, NULL, NULL});
        check((struct sinks_case){n[0], n[1], n[2], n[3], HK_ADD, NULL, NULL, NULL, NULL});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_within_the_bound)};
    return RUN_KERNEL_TESTS(tests);
}
