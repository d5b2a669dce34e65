// Unit test of runtime/data: weights of tokens, bits and halves.
#include "runtime/data/data.h"

#include "runtime/data/weights.h"
#include "tests/runtime/support/case.h"

enum { T = 4 };

static bool open_data(struct hrt_data *data, const char *train, const char *validation,
                      struct hrt_error *error) {
    const struct hrt_data_request request = {
        .train = &train,
        .trains = 1,
        .validation = &validation,
        .validations = validation != NULL,
        .format = HRT_DATA_FORMAT_bytes,
        .order = HRT_DATA_ORDER_random, // The others have a test of their own.
        .positions = T,
        .vocabulary = 256,
    };
    return hrt_data_open(data, &request, error);
}

static void expect_refusal(const char *train, const char *text) {
    struct hrt_data data;
    struct hrt_error error = {0};
    test_expect_error(open_data(&data, train, NULL, &error), &error, HRT_EXIT_FAILED, text);
}

// Weights of five tokens: 1, 0, 0, 1, 1.
static const char weights[17] = "hcweight\x05\0\0\0\0\0\0\0\x19";

static void tokens_of_weight_0_are_no_targets(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    int32_t ids[T], targets[T];
    double count;
    test_write("weighted", "abcde", 5);
    test_write("weighted.weights", weights, sizeof weights);
    test_write("plain", "fghij", 5);
    assert_true(open_data(&data, "weighted", "plain", &error));
    assert_true(data.weighted);
    assert_true(hrt_data_draw(&data, 1, 0, ids, targets, &error));
    assert_memory_equal(ids, ((int32_t[]){'a', 'b', 'c', 'd'}), sizeof ids);
    assert_memory_equal(targets, ((int32_t[]){-1, -1, 'd', 'e'}), sizeof targets);
    assert_true(hrt_data_draw_targets(&data, 1, 0, 3, &count, &error));
    assert_true(count == 3 * 2);
    assert_true(hrt_data_window(&data, 0, ids, targets, &error));
    assert_memory_equal(targets, ((int32_t[]){'g', 'h', 'i', 'j'}), sizeof targets);
    assert_true(hrt_data_window_targets(&data, 0, 1, &count, &error));
    assert_true(count == 4);
    hrt_data_close(&data);
}

// 1, the smallest half, 0, a half, and a quarter more.
static const char halves[26] = "hcwhalfs\x05\0\0\0\0\0\0\0\0\x3c\x01\0\0\0\0\x38\0\x3a";

static void weights_between_0_and_1_are_halves(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    int32_t ids[T], targets[T];
    float weight[T];
    double count;
    test_write("weighted", "abcde", 5);
    test_write("weighted.weights", halves, sizeof halves);
    test_write("plain", "fghij", 5);
    assert_true(open_data(&data, "weighted", "plain", &error));
    assert_true(data.weighted && data.fractions);
    assert_true(hrt_data_draw(&data, 1, 0, ids, targets, &error));
    assert_memory_equal(targets, ((int32_t[]){'b', -1, 'd', 'e'}), sizeof targets);
    assert_true(hrt_data_draw_weights(&data, 1, 0, weight, &error));
    assert_memory_equal(weight, ((float[]){0x1p-24f, 0, 0.5f, 0.75f}), sizeof weight);
    assert_true(hrt_data_draw_targets(&data, 1, 0, 3, &count, &error));
    assert_true(count == 3 * (1.25 + 0x1p-24)); // To the last bit.
    assert_true(hrt_data_window_weights(&data, 0, weight, &error));
    assert_memory_equal(weight, ((float[]){1, 1, 1, 1}), sizeof weight);
    hrt_data_close(&data);
    for (uint32_t half = 0; half <= HRT_DATA_WEIGHT_ONE; half++) {
        const double value = (double)hrt_data_half_value((uint16_t)half);
        assert_int_equal(hrt_data_half_of(value), half);
        if (half == HRT_DATA_WEIGHT_ONE) continue;
        const double next = (double)hrt_data_half_value((uint16_t)(half + 1));
        const uint32_t even = half + half % 2;
        assert_int_equal(hrt_data_half_of((value + next) / 2), even);
        assert_int_equal(hrt_data_half_of(value + 0.49 * (next - value)), half);
    }
}

static void weights_that_are_none_are_named(void **state) {
    (void)state;
    static const struct {
        uint16_t half;
        const char *says;
    } cases[] = {{0x3c01, "1.00098"}, {0x7c00, "inf"},  {0x7e00, "nan"}, {0x8000, "-0"},
                 {0xb800, "-0.5"},    {0xfc00, "-inf"}, {0xfe00, "-nan"}};
    test_write("weighted", "abcde", 5);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hrt_data data;
        struct hrt_error error = {0};
        int32_t ids[T], targets[T];
        char wrong[sizeof halves], text[128];
        memcpy(wrong, halves, sizeof wrong);
        memcpy(wrong + 16 + 2 * 3, &cases[i].half, 2);
        test_write("weighted.weights", wrong, sizeof wrong);
        assert_true(open_data(&data, "weighted", "plain", &error));
        snprintf(text, sizeof text,
                 "'weighted.weights': the weight of token 3 (from 0) is %s; weights are from 0 to "
                 "1",
                 cases[i].says);
        test_expect_error(hrt_data_draw(&data, 1, 0, ids, targets, &error), &error, HRT_EXIT_FAILED,
                          text);
        hrt_data_close(&data);
    }
}

static void unusable_weights_are_refused(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    const char *train = "weighted";
    test_write("weighted", "abcde", 5);
    test_write("weighted.weights", weights, 15);
    expect_refusal("weighted", "'weighted.weights' is truncated: it has no header of weights");
    test_write("weighted.weights", "hcwaight\x05\0\0\0\0\0\0\0\x19", sizeof weights);
    expect_refusal("weighted",
                   "'weighted.weights' has no weights: it begins neither with hcweight nor with "
                   "hcwhalfs");
    test_write("weighted.weights", halves, sizeof halves - 1);
    expect_refusal("weighted",
                   "'weighted.weights' is of other tokens: it has 5 in 25 bytes, and the file "
                   "beside it has 5");
    test_write("weighted", "abcdef", 6);
    test_write("weighted.weights", weights, sizeof weights);
    expect_refusal("weighted",
                   "'weighted.weights' is of other tokens: it has 5 in 17 bytes, and the file "
                   "beside it has 6");
    test_write("weighted", "abcde", 5);
    const struct hrt_data_request request = {.train = &train,
                                             .trains = 1,
                                             .mask_rate = 0.15,
                                             .format = HRT_DATA_FORMAT_bytes,
                                             .positions = T,
                                             .vocabulary = 256};
    test_expect_error(hrt_data_open(&data, &request, &error), &error, HRT_EXIT_FAILED,
                      "a masked objective chooses its targets, and the data has weights");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_of_weight_0_are_no_targets),
        cmocka_unit_test(weights_between_0_and_1_are_halves),
        cmocka_unit_test(weights_that_are_none_are_named),
        cmocka_unit_test(unusable_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
