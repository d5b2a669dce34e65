// add adds each element, for any number and alignment; so do those of messages in bf16, which become floats.
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

#if HK_BITS == 32
// Against double precision: a number in bf16 is one of double, and the sum is the double nearest to a float.
static void messages_in_bf16_are_added_and_widened(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 3, 4, 17, 128, 4099, 70000};
    for (int64_t c = 0; c < COUNT(counts); c++) {
        for (int64_t shift = 0; shift < 2; shift++) {
            const int64_t count = counts[c], all = count + shift + 1; // One behind the last.
            real *sum = test_reals(all, 1), *wide = test_nans(all);
            const real *had = test_copy(sum, all), *term = test_reals(all, 2);
            hk_bf16 *narrow = (hk_bf16 *)test_nans(all);
            for (int64_t i = 0; i < all; i++) narrow[i] = hk_bf16_round((float)term[i]);
            HK_INTS(add_bf16, sum + shift, narrow + shift, count);
            HK_INTS(widen_bf16, wide + shift, narrow + shift, count);
            for (int64_t i = 0; i < all; i++) {
                const bool inside = i >= shift && i < shift + count;
                const double value = (double)hk_bf16_float(narrow[i]);
                // Rounding to float once: half a unit in the last place, 2^-24 of the sum.
                const double exact = (double)had[i] + value, off = fabs((double)sum[i] - exact);
                assert_true(inside ? off <= ldexp(fabs(exact), -24) : sum[i] == had[i]);
                assert_true(inside ? (double)wide[i] == value : isnan(wide[i]));
                assert_true(!inside ||
                            fabs(value - (double)term[i]) <= ldexp(fabs((double)term[i]), -8));
            }
            test_free_all();
        }
    }
}

#ifndef HK_TARGET_CUDA
static void one_thread_rounds_as_all_do(void **state) {
    (void)state;
    const int64_t count = 70001;
    const real *from = test_reals(count, 3);
    hk_bf16 *to = (hk_bf16 *)test_nans(count);
    const hk_bf16 behind = to[count - 1];
    hk_narrow_bf16(to, from, count - 1);
    for (int64_t i = 0; i < count - 1; i++)
        assert_int_equal(to[i].bits, hk_bf16_round(from[i]).bits);
    assert_int_equal(to[count - 1].bits, behind.bits);
    test_free_all();
}
#endif
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_added),
#if HK_BITS == 32
        cmocka_unit_test(messages_in_bf16_are_added_and_widened),
#ifndef HK_TARGET_CUDA
        cmocka_unit_test(one_thread_rounds_as_all_do),
#endif
#endif
    };
    return RUN_KERNEL_TESTS(tests);
}
