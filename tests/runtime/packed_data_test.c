// Unit test of runtime/data: files of sequences of whole documents.
#include "runtime/data/data.h"

#include <unistd.h>

#include "tests/runtime/support/case.h"

enum { T = 4 };

static bool open_data(struct hrt_data *data, const char *train, const char *validation,
                      struct hrt_error *error) {
    const struct hrt_data_request request = {
        .train = &train,
        .trains = 1,
        .validation = &validation,
        .validations = validation != NULL,
        .format = HRT_DATA_FORMAT_llmc,
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

// Two sequences of T, of whole documents: the last token of a file, and the first of a document, are nobody's target.
static void packed_sequences_stay_as_they_are(void **state) {
    (void)state;
    static const uint32_t token[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const bool counts[] = {1, 1, 0, 1, 1, 1, 1, 0};
    struct hrt_error error = {0};
    struct hrt_data data;
    int32_t ids[T], targets[T];
    test_write_llmc("packed", (struct test_llmc){20240520, 1, 8, 2, token, 8, 0});
    test_pack_llmc("packed", T, 0, counts, 8);
    assert_true(open_data(&data, "packed", "packed", &error));
    assert_int_equal(data.validation.windows, 2);
    assert_int_equal(hrt_data_epoch(&data), 2);
    bool seen[2] = {0};
    for (uint64_t n = 0; n < 64; n++) { // Drawn with replacement.
        assert_true(hrt_data_draw(&data, 1, n, ids, targets, &error));
        assert_true(ids[0] == 1 || ids[0] == 5);
        seen[ids[0] == 5] = true;
    }
    assert_true(seen[0] && seen[1]);
    assert_true(hrt_data_window(&data, 0, ids, targets, &error));
    assert_memory_equal(ids, ((int32_t[]){1, 2, 3, 4}), sizeof ids);
    assert_memory_equal(targets, ((int32_t[]){2, -1, 4, 5}), sizeof targets);
    assert_true(hrt_data_window(&data, 1, ids, targets, &error));
    assert_memory_equal(targets, ((int32_t[]){6, 7, -1, -1}), sizeof targets);
    double count;
    assert_true(hrt_data_window_targets(&data, 0, 2, &count, &error));
    assert_true(count == 5);
    hrt_data_close(&data);
}

static void unusable_packed_files_are_refused(void **state) {
    (void)state;
    static const uint32_t token[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const bool counts[8] = {0};
    const struct test_llmc file = {20240520, 1, 8, 2, token, 8, 0};
    test_write_llmc("packed", file);
    test_pack_llmc("packed", 8, 0, counts, 8);
    expect_refusal("packed",
                   "'packed' has whole documents in sequences of 8 tokens, and the model has 4 "
                   "positions: hecate-data with --pack=4 makes those");
    test_pack_llmc("packed", 3, 0, counts, 8);
    expect_refusal("packed",
                   "'packed' is damaged: its header says 8 tokens in sequences of 3, of which 1 "
                   "belong together");
    test_pack_llmc("packed", T, 3, counts, 8);
    expect_refusal("packed",
                   "'packed' is damaged: its header says 8 tokens in sequences of 4, of which 3 "
                   "belong together");
    test_pack_llmc("packed", T, 2, counts, 8);
    expect_refusal("packed",
                   "'packed' has pairs of a chosen and a rejected answer, which only a model with "
                   "train.objective = dpo learns from");
    test_pack_llmc("packed", T, 0, counts, 8);
    unlink("packed.weights");
    expect_refusal("packed",
                   "'packed' has padding, and no weights beside it ('packed.weights'), which tell "
                   "it");
    test_pack_llmc("packed", T, 0, counts, 8);
    test_write_llmc("packed2", file);
    expect_refusal("packe*[d2]",
                   "'packed' and 'packed2' are read as one, and only one of them has whole "
                   "documents in its sequences");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_sequences_stay_as_they_are),
        cmocka_unit_test(unusable_packed_files_are_refused),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
