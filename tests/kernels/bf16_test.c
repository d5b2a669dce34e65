// Rounding to bf16: one number against exact arithmetic, and the passes against one number.
#include "kernels/bf16.h"

#include "tests/kernels/kernel_case.h"

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// The nearest number of 8 significant bits; nearbyint breaks ties to even.
static double nearest(double x) {
    int exponent;
    const double mantissa = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(mantissa, 8)), exponent - 8);
}

static void every_bf16_number_stays(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 1 << 16; i++) {
        const hk_bf16 x = {(uint16_t)i};
        const bool denormal = (i & 0x7f80) == 0, nan = (i & 0x7fff) > 0x7f80;
        const uint32_t want = denormal ? i & 0x8000 : nan ? i | 0x40 : i;
        assert_int_equal(hk_bf16_round(hk_bf16_float(x)).bits, want);
    }
}

static void what_lies_between_goes_to_the_nearest(void **state) {
    (void)state;
    static const uint32_t below[] = {1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (uint32_t i = 0x0080; i < 0x7f7f; i++) {
        for (int64_t j = 0; j < COUNT(below); j++) {
            const float x = float_of(i << 16 | below[j]);
            assert_true((double)hk_bf16_float(hk_bf16_round(x)) == nearest((double)x));
            assert_true((double)hk_bf16_float(hk_bf16_round(-x)) == -nearest((double)x));
        }
    }
}

static void ends_of_the_range(void **state) {
    (void)state;
    assert_int_equal(hk_bf16_round(FLT_MAX).bits, 0x7f80);
    assert_int_equal(hk_bf16_round(-INFINITY).bits, 0xff80);
    assert_int_equal(hk_bf16_round(float_of(0x7f800001)).bits, 0x7fc0); // Not infinity.
    assert_int_equal(hk_bf16_round(float_of(0x007fffff)).bits, 0);
    assert_int_equal(hk_bf16_round(float_of(0x80000001)).bits, 0x8000);
}

static void arrays_and_panels_round_each_number(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {{1, 1}, {2, 64}, {3, 65}, {7, 130}, {300, 200}, {0, 5}};
    for (int64_t s = 0; s < COUNT(shapes); s++) {
        const int64_t k = shapes[s][0], n = shapes[s][1];
        const int64_t size = hk_panels_size(k, n), rounded = hk_panels_size_bf16(k, n);
        const real *from = test_reals(size, 1);
        // Twice as many bytes as needed, full of NaN: unwritten bytes show.
        hk_bf16 *to = (hk_bf16 *)test_nans(rounded), *flat = (hk_bf16 *)test_nans(size);
        HK_INTS(round_bf16, flat, from, size);
        for (int64_t i = 0; i < size; i++) {
            assert_int_equal(flat[i].bits, hk_bf16_round(from[i]).bits);
        }
        if ((int)HK_PANELS < LAYOUTS) hk_round_panels_bf16(to, from, k, n);
        for (int64_t i = 0; i < rounded && (int)HK_PANELS < LAYOUTS; i++) {
            const int64_t pairs = (k + 1) / 2, row = i / 128 % pairs * 2 + i % 2;
            const int64_t panel = i / 128 / pairs, column = i / 2 % 64;
            const real want = row < k ? from[(panel * k + row) * 64 + column] : 0;
            assert_int_equal(to[i].bits, hk_bf16_round(want).bits);
        }
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bf16_number_stays),
        cmocka_unit_test(what_lies_between_goes_to_the_nearest),
        cmocka_unit_test(ends_of_the_range),
        cmocka_unit_test(arrays_and_panels_round_each_number),
    };
    return RUN_KERNEL_TESTS(tests);
}
