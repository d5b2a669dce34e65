// dropout: the share that is dropped, the factor of the rest, and the numbers that it depends on.
#include "kernels/dropout/dropout.h"

#define FILL(y, of, layer, sequences, width)                                                       \
    HK(dropout, y, of, layer, sequences, tokens, width, 0.1)
#define FILL_ON_CPU(y, of, layer, sequences, width)                                                \
    HK_NAME(dropout)(y, of, layer, sequences, tokens, width, 0.1)
#include "tests/kernels/factors_case.h"

// Five standard errors of a count of independent draws.
static void a_share_is_dropped(void **state) {
    (void)state;
    const struct hk_noise noise = {.on = true, .seed = 7, .first = 100};
    real *y = test_nans(count);
    int dropped = 0;
    run_with_threads(run, &noise, y, count);
    for (int i = 0; i < count; i++) {
        assert_true(y[i] == 0 || y[i] == (real)(1 / 0.9));
        dropped += y[i] == 0;
    }
    assert_true(fabs(dropped - 0.1 * count) < 5 * sqrt(0.1 * 0.9 * count));
    HK(dropout, y, noise, 5, sequences, tokens, width, 0.75);
    dropped = 0;
    for (int i = 0; i < count; i++) {
        assert_true(y[i] == 0 || y[i] == 4);
        dropped += y[i] == 0;
    }
    assert_true(fabs(dropped - 0.75 * count) < 5 * sqrt(0.75 * 0.25 * count));
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_is_dropped),
        FACTORS_TESTS,
    };
    return RUN_KERNEL_TESTS(tests);
}
