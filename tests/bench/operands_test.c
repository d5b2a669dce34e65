// Operands of gpu_bench: random in every array, up to the last number, and other ones in each.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/gpu_bench.h"

// More than the host draws, and no multiple of it.
enum { COUNT = (1 << 22) + (1 << 20) + 7 };

// Mean, variance and how often a number is that before it, of the numbers from `first` on.
static void check_normal(const float *value, int64_t first, int64_t count) {
    double sum = 0, squares = 0;
    int64_t same = 0;
    for (int64_t i = first; i < first + count; i++) {
        sum += value[i];
        squares += (double)value[i] * value[i];
        same += i > first && value[i] == value[i - 1];
    }
    const double n = (double)count, mean = sum / n, error = 1 / sqrt(n);
    assert_true(fabs(mean) < 5 * error);
    assert_true(fabs(squares / n - mean * mean - 1) < 10 * error);
    assert_true(same < count / 100);
}

static void floats_are_normal(void **state) {
    (void)state;
    const float *a = gpu_floats(COUNT), *b = gpu_floats(COUNT);
    check_normal(a, 0, COUNT);
    check_normal(a, COUNT - 4096, 4096);
    int64_t same = 0;
    for (int64_t i = 0; i < COUNT; i++) same += a[i] == b[i];
    assert_true(same < COUNT / 100);
    gpu_free_all();
    const float *again = gpu_floats(5),
                first[5] = {again[0], again[1], again[2], again[3], again[4]};
    gpu_free_all();
    assert_memory_equal(gpu_floats(5), first, sizeof first);
    gpu_free_all();
}

static void values_are_those_of_bf16(void **state) {
    (void)state;
    const hk_bf16 *a = gpu_values(COUNT);
    float *wide = malloc(COUNT * sizeof *wide);
    assert_non_null(wide);
    for (int64_t i = 0; i < COUNT; i++) wide[i] = hk_bf16_float(a[i]);
    check_normal(wide, 0, COUNT);
    check_normal(wide, COUNT - 4096, 4096);
    free(wide);
    gpu_free_all();
}

static void results_begin_as_zeros(void **state) {
    (void)state;
    static const char zeros[1000];
    assert_memory_equal(gpu_room(sizeof zeros), zeros, sizeof zeros);
    gpu_free_all();
}

static void numbers_are_below_the_bound(void **state) {
    (void)state;
    const int32_t *draw = gpu_draw(4096, 7);
    int64_t of[7] = {0};
    for (int64_t i = 0; i < 4096; i++) {
        assert_in_range(draw[i], 0, 6);
        of[draw[i]]++;
    }
    for (int i = 0; i < 7; i++) assert_in_range(of[i], 480, 690);
    gpu_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_normal),
        cmocka_unit_test(values_are_those_of_bf16),
        cmocka_unit_test(results_begin_as_zeros),
        cmocka_unit_test(numbers_are_below_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
