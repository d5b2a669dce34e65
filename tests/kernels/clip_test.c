// clip: the norm, the factor, and the numbers that stop updates for good.
#include "kernels/clip/clip.h"

#include "tests/kernels/kernel_case.h"

static struct hk_clipped *unclipped(void) {
    struct hk_clipped *clipped = (struct hk_clipped *)test_doubles(4);
    *clipped = (struct hk_clipped){0};
    return clipped;
}

static void gradients_are_scaled_to_the_norm(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 31, 257, 4001};
    static const double clips[] = {0, 1, 1e9};
    for (int64_t c = 0; c < COUNT(counts); c++) {
        double *sums = test_doubles(counts[c]), sum = 0;
        for (int64_t i = 0; i < counts[c]; i++) sum += sums[i] = 1 + (double)(i % 7);
        for (int64_t k = 0; k < COUNT(clips); k++) {
            struct hk_clipped *clipped = unclipped();
            HK_INTS(clip, clipped, sums, counts[c], NULL, 0, clips[k], 0);
            const double norm = sqrt(sum);
            assert_near("norm", c, (real)clipped->norm, norm, 4 * EPSILON * norm);
            const double scale = clips[k] == 1 && norm > 1 ? 1 / norm : 1;
            assert_near("scale", c, (real)clipped->scale, scale, 4 * EPSILON * scale);
            assert_true(clipped->scale == 1 || clips[k] == 1);
            assert_int_equal(clipped->stopped, 0);
        }
        test_free_all();
    }
}

static void what_is_not_finite_stops_all_that_follows(void **state) {
    (void)state;
    enum { SUMS = 300, NUMBERS = 270 };
    double *sums = test_doubles(SUMS);
    float *numbers = (float *)test_reals(NUMBERS, 1); // With more room for doubles.
    for (int i = 0; i < SUMS; i++) sums[i] = 1;
    for (int i = 0; i < NUMBERS; i++) numbers[i] = 1;
    static const double strange[] = {NAN, INFINITY, 1};
    struct hk_clipped *clipped = unclipped();
    for (int64_t s = 0; s < 4; s++) { // The last time nothing is strange any more.
        if (s == 3) *clipped = (struct hk_clipped){0};
        sums[SUMS - 1] = s < 3 ? strange[s] : 1;
        HK_INTS(clip, clipped, sums, SUMS, numbers, NUMBERS, 1, 0);
        assert_int_equal(clipped->stopped, s < 3 ? HK_STEP_STOPPED : HK_STEP_TAKEN);
    }
    numbers[NUMBERS - 1] = -INFINITY;
    HK_INTS(clip, clipped, sums, SUMS, numbers, NUMBERS, 1, 0);
    assert_int_equal(clipped->stopped, HK_STEP_STOPPED);
    test_free_all();
}

static void as_many_as_may_be_are_skipped(void **state) {
    (void)state;
    double *sums = test_doubles(1);
    float *numbers = (float *)test_reals(1, 1);
    struct hk_clipped *clipped = unclipped();
    static const bool finite[] = {false, false, true, false, false, false, true};
    static const int is[] = {HK_STEP_SKIPPED, HK_STEP_SKIPPED, HK_STEP_TAKEN,  HK_STEP_SKIPPED,
                             HK_STEP_SKIPPED, HK_STEP_STOPPED, HK_STEP_STOPPED};
    numbers[0] = 1;
    for (int64_t s = 0; s < COUNT(is); s++) {
        sums[0] = finite[s] ? 4 : NAN;
        HK_INTS(clip, clipped, sums, 1, numbers, 1, 1, 2);
        assert_int_equal(clipped->stopped, is[s]);
    }
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_scaled_to_the_norm),
        cmocka_unit_test(what_is_not_finite_stops_all_that_follows),
        cmocka_unit_test(as_many_as_may_be_are_skipped),
    };
    return RUN_KERNEL_TESTS(tests);
}
