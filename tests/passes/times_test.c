// Times of kernels between the sizes that were measured, and beyond them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above.
#include <cmocka.h>
#include <math.h>

#include "passes/cost/measured.h"

static const struct hec_times grid = {
    .length = {3, 2, 1},
    .at = {{10, 100, 1000}, {4, 16}, {1}},
    .us = {1, 3, 5, 20, 40, 200},
};

static const double linear[HEC_TIMES_AXES] = {1, 1, 1};

static void expect(double rows, double columns, double us) {
    const double found = hec_times_us(&grid, (const double[]){rows, columns, 1}, linear);
    if (fabs(found - us) > 1e-9 * us) fail_msg("%g, %g: %.12g, not %g", rows, columns, found, us);
}

static void test_measured(void **state) {
    (void)state;
    expect(10, 4, 1);
    expect(10, 16, 3);
    expect(100, 4, 5);
    expect(100, 16, 20);
    expect(1000, 4, 40);
    expect(1000, 16, 200);
}

static void test_between(void **state) {
    (void)state;
    expect(10, 8, sqrt(1 * 3));
    expect(10 * sqrt(10), 4, sqrt(1 * 5));
    expect(100 * sqrt(10), 16, sqrt(20 * 200));
    expect(10 * sqrt(10), 8, sqrt(sqrt(1 * 3 * 5 * 20)));
}

static void test_beyond(void **state) {
    (void)state;
    expect(1, 1, 1); // Below the least, the least's.
    expect(1, 16, 3);
    expect(3000, 4, 3 * 40); // Beyond the largest in proportion.
    expect(2000, 160, 20 * 200);
    const double squared[HEC_TIMES_AXES] = {2, 0, 0};
    const double us = hec_times_us(&grid, (const double[]){3000, 99, 1}, squared);
    assert_true(fabs(us - 9 * 200) < 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_between),
        cmocka_unit_test(test_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
