// noise: its range and moments, and the numbers that it depends on.
#include "kernels/noise/noise.h"

#define FILL(y, of, layer, sequences, width) HK(noise, y, of, layer, sequences, tokens, width, 0.1)
#define FILL_ON_CPU(y, of, layer, sequences, width)                                                \
    HK_NAME(noise)(y, of, layer, sequences, tokens, width, 0.1)
#include "tests/kernels/factors_case.h"

static void factors_are_uniform(void **state) {
    (void)state;
    const struct hk_noise noise = {.on = true, .seed = 7, .first = 100};
    real *y = test_nans(count);
    double sum = 0, squares = 0;
    run_with_threads(run, &noise, y, count);
    for (int i = 0; i < count; i++) {
        const double d = (double)y[i] - 1;
        assert_true(fabs(d) <= 0.1 + 1e-7);
        sum += d;
        squares += d * d;
    }
    // Deviation 0.1 / sqrt(3); five standard errors.
    assert_true(fabs(sum / count) < 5 * 0.0578 / sqrt(count));
    assert_true(fabs(squares / count * 300 - 1) < 5 * 0.9 / sqrt(count));
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_uniform),
        FACTORS_TESTS,
    };
    return RUN_KERNEL_TESTS(tests);
}
