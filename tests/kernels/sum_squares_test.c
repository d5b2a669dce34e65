// sum_squares against the plain sum; the same bits for any number of threads.
#include "kernels/sum_squares/sum_squares.h"

#include "tests/kernels/kernel_case.h"
#include "tests/kernels/target.h"

static const int64_t counts[] = {0, 1, 31, 1000, 1024, 1025, 700003, 1100000};

#ifdef HK_TARGET_CUDA // Its launcher stores the sum.
static double sum_squares(const real *x, int64_t count) {
    double *sum = test_doubles(1);
    HK(sum_squares, sum, x, count, 1);
    return *sum;
}

static void many_arrays_have_the_sums_of_each(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {
        {0, 3}, {1, 7}, {4100, 5}, {8200, 2}, {1, 1030}}; // count, arrays
    for (int64_t s = 0; s < COUNT(sizes); s++) {
        const int64_t count = sizes[s][0], arrays = sizes[s][1], step = arrays > 9 ? 343 : 1;
        const real *x = test_reals(count * arrays, 2);
        double *sum = test_doubles(arrays + 1);
        sum[arrays] = -7;
        HK(sum_squares, sum, x, count, arrays);
        for (int64_t a = 0; a < arrays; a += step) {
            const real *one =
                test_copy(x + a * count, count); // Which lies at another multiple of 16 bytes.
            assert_near("sum", a, (real)sum[a], sum_squares(one, count), 1e-6 * sum[a]);
            if (count % 4 != 0) continue;
            const double alone = sum_squares(one, count);
            assert_memory_equal(&alone, &sum[a], sizeof alone);
        }
        assert_true(sum[arrays] == -7);
        test_free_all();
    }
}
#else
static double sum_squares(const real *x, int64_t count) {
    return HK(sum_squares, x, count);
}
#endif

static void sums_are_right(void **state) {
    (void)state;
    for (int64_t s = 0; s < COUNT(counts); s++) {
        const int64_t count = counts[s];
        const real *x = test_reals(count, 1);
        wide want = 0;
        for (int64_t i = 0; i < count; i++) want += (wide)x[i] * x[i];
        target_vary(0);
        const double got = sum_squares(x, count);
        // In double, for any input: terms of one sign, at most 3072 / 32 one after another,
        // then 512 blocks.
        const double bound = (96 + 32 + 512) * DBL_EPSILON * (double)want;
        if (!(fabs(got - (double)want) <= bound)) fail_msg("%.17g, want %.17Lg", got, want);
        for (int threads = 2; threads <= 3; threads++) {
            target_vary(threads - 1);
            const double again = sum_squares(x, count);
            assert_memory_equal(&got, &again, sizeof got);
        }
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_right),
#ifdef HK_TARGET_CUDA
        cmocka_unit_test(many_arrays_have_the_sums_of_each),
#endif
    };
    return RUN_KERNEL_TESTS(tests);
}
