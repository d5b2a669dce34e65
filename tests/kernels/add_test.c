// add adds each element, for any number and alignment.
#include "kernels/add/add.h"

#include "tests/kernels/kernel_case.h"

static void elements_are_added(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 3, 4, 17, 128, 4099};
    for (int64_t c = 0; c < COUNT(counts); c++) {
        for (int64_t shift = 0; shift < 2; shift++) {
            const int64_t count = counts[c], all = count + shift;
            real *sum = test_reals(all, 1), *want = test_copy(sum, all);
            const real *term = test_reals(all, 2);
            for (int64_t i = 0; i < count; i++) want[shift + i] += term[shift + i];
            HK(add, sum + shift, term + shift, count);
            assert_same_bits("sum", sum, want, all);
            test_free_all();
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(elements_are_added)};
    return RUN_KERNEL_TESTS(tests);
}
