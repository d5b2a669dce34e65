// factors_case: the promises that noise and dropout share, for noise_test.c and dropout_test.c. These define FILL, a
// call of the kernel on the target that is tested, and FILL_ON_CPU, one of the twin.
#ifndef HECATE_TESTS_KERNELS_FACTORS_CASE_H
#define HECATE_TESTS_KERNELS_FACTORS_CASE_H

#include "tests/kernels/kernel_case.h"

enum { sequences = 3, tokens = 50, width = 30 };
enum { row = tokens * width, count = sequences * row };

static void run(const void *context, real *out) {
    FILL(out, *(const struct hk_noise *)context, 5, sequences, width);
}

static void a_sequence_has_its_factors_wherever_it_is(void **state) {
    (void)state;
    struct hk_noise noise = {.on = true, .seed = 7, .first = 100};
    real *y = test_nans(count), *one = test_nans(row);
    run(&noise, y);
    for (int s = 0; s < sequences; s++) {
        noise.first = 100 + (uint64_t)s;
        FILL(one, noise, 5, 1, width);
        assert_memory_equal(one, y + s * row, row * sizeof *one);
    }
    assert_memory_not_equal(y, y + row, row * sizeof *y);
    assert_memory_not_equal(y, y + width, width * sizeof *y);
    FILL(one, noise, 6, 1, width);
    assert_memory_not_equal(one, y + 2 * row, row * sizeof *one);
    noise.seed = 8;
    FILL(one, noise, 5, 1, width);
    assert_memory_not_equal(one, y + 2 * row, row * sizeof *one);
    test_free_all();
}

static void every_target_has_the_same_bits(void **state) {
    (void)state;
    const struct hk_noise noise = {.on = true, .seed = 0x123456789abcdef, .first = 1ull << 40};
    real *y = test_nans(count), *z = test_nans(count);
    run(&noise, y);
    FILL_ON_CPU(z, noise, 5, sequences, width);
    assert_same_bits("factors", y, z, count);
    test_free_all();
}

// Four channels come from one call of the generator: 30 take as many as 32.
static void channels_do_not_depend_on_the_width(void **state) {
    (void)state;
    enum { whole = 32 };
    const struct hk_noise noise = {.on = true, .seed = 7, .first = 100};
    real *y = test_nans(count), *wide = test_nans(sequences * tokens * whole);
    run(&noise, y);
    FILL(wide, noise, 5, sequences, whole);
    for (int r = 0; r < sequences * tokens; r++) {
        assert_memory_equal(y + r * width, wide + r * whole, width * sizeof *y);
    }
    test_free_all();
}

static void outside_of_training_all_are_one(void **state) {
    (void)state;
    real *y = test_nans(row);
    FILL(y, (struct hk_noise){.seed = 7}, 5, 1, width);
    for (int i = 0; i < row; i++) assert_true(y[i] == 1);
    test_free_all();
}

static void the_first_number_may_come_later(void **state) {
    (void)state;
    struct hk_noise noise = {.on = true, .seed = 7, .first = 100};
    real *now = test_nans(row), *then = test_nans(row);
    uint64_t *first = (uint64_t *)test_doubles(1);
    FILL(now, noise, 5, 1, width);
    *first = noise.first;
    noise = (struct hk_noise){.on = true, .seed = 7, .first = 1, .first_then = first};
    FILL(then, noise, 5, 1, width);
    assert_memory_equal(then, now, row * sizeof *now);
    test_free_all();
}

// The tests of this file, for a list of tests.
#define FACTORS_TESTS                                                                              \
    cmocka_unit_test(a_sequence_has_its_factors_wherever_it_is),                                   \
        cmocka_unit_test(the_first_number_may_come_later),                                         \
        cmocka_unit_test(every_target_has_the_same_bits),                                          \
        cmocka_unit_test(channels_do_not_depend_on_the_width),                                     \
        cmocka_unit_test(outside_of_training_all_are_one)

#endif
