// Unit test of lang/number.c.
#include "lang/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect(const char *text, double value, enum hec_measure measure) {
    struct hec_number number;
    assert_true(hec_number_read(text, &number));
    assert_true(number.value == value);
    assert_int_equal(number.measure, measure);
    assert_int_equal(number.integral, value == (double)(long long)value);
}

static void prefixes_are_decimal_or_binary(void **state) {
    (void)state;
    expect("4096", 4096, HEC_PLAIN);
    expect("4k", 4000, HEC_PLAIN);
    expect("4Ki", 4096, HEC_PLAIN);
    expect("1.5Mi", 1572864, HEC_PLAIN);
    expect("2T", 2e12, HEC_PLAIN);
    expect("1e-5", 1e-5, HEC_PLAIN);
}

static void units_give_base_units(void **state) {
    (void)state;
    expect("80GB", 80e9, HEC_BYTES);
    expect("8GiB", 8589934592.0, HEC_BYTES);
    expect("450GB/s", 450e9, HEC_BYTES_PER_SECOND);
    expect("100Gbit/s", 12.5e9, HEC_BYTES_PER_SECOND);
    expect("989TFLOPS", 989e12, HEC_FLOPS);
    expect("2us", 2e-6, HEC_SECONDS);
    expect("3s", 3, HEC_SECONDS);
}

static void unknown_units_are_refused(void **state) {
    (void)state;
    struct hec_number number;
    static const char *const wrong[] = {"3Q", "3Kib", "3GBs", "3kus", "3Gi/s", "1e999", "3 GB"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(hec_number_read(wrong[i], &number));
}

static void counts_are_whole(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t count;
    } good[] = {
        {"1e15", 1000000000000000}, {"1.5KiB", 1536}, {"9007199254740992", 1ll << 53}, {"0", 0}};
    static const char *const wrong[] = {"", "auto", "1.5", "1e16", "4 ", "1,2"};
    int64_t count;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(hec_count_read(good[i].text, &count) && count == good[i].count);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(hec_count_read(wrong[i], &count));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_whole),
        cmocka_unit_test(prefixes_are_decimal_or_binary),
        cmocka_unit_test(units_give_base_units),
        cmocka_unit_test(unknown_units_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
