// Unit test of runtime/data: formats, refusals, the split, sequences.
#include "runtime/data/data.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/runtime/support/case.h"

enum { T = 4 };

// Opens training (and validation) files with a vocabulary of 256.
static bool open_data(struct hrt_data *data, const char *train, const char *validation,
                      enum hrt_data_format format, struct hrt_error *error) {
    const struct hrt_data_request request = {
        .train = &train,
        .trains = 1,
        .validation = &validation,
        .validations = validation != NULL,
        .format = format,
        .order = HRT_DATA_ORDER_random, // The others have a test of their own.
        .positions = T,
        .vocabulary = 256,
    };
    return hrt_data_open(data, &request, error);
}

static void expect_refusal(const char *train, enum hrt_data_format format, const char *text) {
    struct hrt_data data;
    struct hrt_error error = {0};
    test_expect_error(open_data(&data, train, NULL, format, &error), &error, HRT_EXIT_FAILED, text);
}

static void bytes_are_tokens(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    int32_t ids[T], targets[T];
    test_write("text",
               "\xff"
               "bcde",
               5);
    assert_true(open_data(&data, "text", NULL, HRT_DATA_FORMAT_bytes, &error));
    assert_int_equal(data.train.tokens, 5);
    assert_int_equal(data.train.starts, 1);
    assert_true(hrt_data_draw(&data, 1, 0, ids, targets, &error));
    assert_memory_equal(ids, ((int32_t[]){255, 'b', 'c', 'd'}), sizeof ids);
    assert_memory_equal(targets, ((int32_t[]){'b', 'c', 'd', 'e'}), sizeof targets);
    hrt_data_close(&data);
}

static void both_forms_of_llmc_are_read(void **state) {
    (void)state;
    static const uint32_t token[] = {5, 6, 7, 8, 255};
    const struct test_llmc forms[] = {{20240520, 1, 5, 2, token, 5, 0},
                                      {20240801, 7, 5, 4, token, 5, 0}};
    for (int i = 0; i < 2; i++) {
        struct hrt_data data;
        struct hrt_error error = {0};
        int32_t ids[T], targets[T];
        test_write_llmc("tokens.bin", forms[i]);
        assert_true(open_data(&data, "tokens.bin", NULL, HRT_DATA_FORMAT_llmc, &error));
        assert_true(hrt_data_draw(&data, 1, 0, ids, targets, &error));
        assert_memory_equal(ids, ((int32_t[]){5, 6, 7, 8}), sizeof ids);
        assert_memory_equal(targets, ((int32_t[]){6, 7, 8, 255}), sizeof targets);
        hrt_data_close(&data);
    }
}

static void unusable_files_are_refused(void **state) {
    (void)state;
    expect_refusal("absent", HRT_DATA_FORMAT_bytes,
                   "cannot open 'absent': No such file or directory");
    expect_refusal("absent*", HRT_DATA_FORMAT_bytes, "no file matches 'absent*'");
    test_write("empty", "", 0);
    expect_refusal("empty", HRT_DATA_FORMAT_bytes, "'empty' is empty");
    test_write("short", "abcd", 4);
    expect_refusal("short", HRT_DATA_FORMAT_bytes,
                   "'short' is too short: 4 tokens, and one sequence of this model needs 5");
    mkdir("folder", 0700);
    expect_refusal("folder", HRT_DATA_FORMAT_bytes, "'folder' is not a regular file");
    mkfifo("pipe", 0600);
    expect_refusal("pipe", HRT_DATA_FORMAT_bytes, "'pipe' is not a regular file");
}

static void foreign_llmc_files_are_refused(void **state) {
    (void)state;
    static const uint32_t token[8] = {0};
    test_write("text", "plain text", 10);
    expect_refusal("text", HRT_DATA_FORMAT_llmc,
                   "'text' is too short for an llm.c data file: 10 bytes, and the header alone "
                   "has 1024");
    test_write_llmc("x", (struct test_llmc){77, 1, 8, 2, token, 8, 0});
    expect_refusal("x", HRT_DATA_FORMAT_llmc,
                   "'x' is not an llm.c data file: its magic number is 77, not 20240520 or "
                   "20240801 (plain text needs --format bytes)");
    test_write_llmc("x", (struct test_llmc){20240326, 3, 8, 2, token, 8, 0});
    expect_refusal("x", HRT_DATA_FORMAT_llmc, "'x' is an llm.c model, not training data");
    test_write_llmc("x", (struct test_llmc){20240801, 1, 8, 2, token, 8, 0});
    expect_refusal("x", HRT_DATA_FORMAT_llmc,
                   "'x' has version 1 of llm.c's data format; with this magic number only version "
                   "7 is known");
    test_write_llmc("x", (struct test_llmc){20240520, 1, 8, 2, token, 8, 0});
    expect_refusal("x", HRT_DATA_FORMAT_bytes, "'x' is an llm.c data file: use --format llmc");
}

static void damaged_llmc_files_are_refused(void **state) {
    (void)state;
    static const uint32_t token[8] = {0};
    test_write_llmc("x", (struct test_llmc){20240520, 1, 9, 2, token, 8, 1});
    expect_refusal("x", HRT_DATA_FORMAT_llmc,
                   "'x' is truncated: its header says 9 tokens, but it holds 8");
    test_write_llmc("x", (struct test_llmc){20240520, 1, 8, 2, token, 8, 3});
    expect_refusal("x", HRT_DATA_FORMAT_llmc,
                   "'x' is damaged: 3 bytes follow the 8 tokens of its header");
    test_write_llmc("x", (struct test_llmc){20240520, 1, -1, 2, token, 8, 0});
    expect_refusal("x", HRT_DATA_FORMAT_llmc, "'x' is damaged: its header says -1 tokens");
}

static void expect_bad_token(const char *text) {
    struct hrt_data data;
    struct hrt_error error = {0};
    int32_t ids[T], targets[T];
    assert_true(open_data(&data, "x", NULL, HRT_DATA_FORMAT_llmc, &error));
    bool read = true;
    for (uint64_t n = 0; read && n < 20; n++)
        read = hrt_data_draw(&data, 1, n, ids, targets, &error);
    test_expect_error(read, &error, HRT_EXIT_FAILED, text);
    hrt_data_close(&data);
}

static void tokens_outside_the_vocabulary_are_refused(void **state) {
    (void)state;
    static const uint32_t token[] = {1, 2, 3, 4, 5, 256};
    static const uint32_t huge[] = {1, 2, 3, 4, 0xffffffff};
    test_write_llmc("x", (struct test_llmc){20240520, 1, 6, 2, token, 6, 0});
    expect_bad_token("'x' has token 256 at position 5, outside the model's vocabulary of 256");
    test_write_llmc("x", (struct test_llmc){20240801, 7, 5, 4, huge, 5, 0});
    expect_bad_token(
        "'x' has token 4294967295 at position 4, outside the model's vocabulary of 256");
}

// Bytes that this process has read.
static int64_t bytes_read(void) {
    int64_t bytes = 0;
    FILE *io = fopen("/proc/self/io", "r");
    assert_non_null(io);
    assert_int_equal(fscanf(io, "rchar: %" SCNd64, &bytes), 1);
    fclose(io);
    return bytes;
}

// Files of holes, 1e12 tokens in all.
enum { LARGE_FILES = 500, LARGE_TOKENS = 2000000000 };

static void write_large(void) {
    const int32_t head[256] = {20240520, 1, LARGE_TOKENS};
    for (int i = 0; i < LARGE_FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "large%03d", i);
        test_write(name, head, sizeof head);
        assert_int_equal(truncate(name, sizeof head + 2 * (off_t)LARGE_TOKENS), 0);
    }
}

static void opening_reads_no_tokens(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    int32_t ids[T], targets[T];
    write_large();
    const char *const pattern = "large*";
    struct hrt_data_request request = {.train = &pattern,
                                       .trains = 1,
                                       .format = HRT_DATA_FORMAT_llmc,
                                       .positions = T,
                                       .vocabulary = 256};
    const int64_t before = bytes_read();
    if (!hrt_data_open(&data, &request, &error)) fail_msg("%s", error.text);
    assert_true(bytes_read() - before < 4096 * LARGE_FILES);
    assert_true(hrt_data_epoch(&data) == (int64_t)LARGE_FILES * (LARGE_TOKENS / 20 * 19) / T);
    for (uint64_t n = 0; n < 100; n++)
        assert_true(hrt_data_draw(&data, 1, n, ids, targets, &error));
    hrt_data_close(&data);
    for (int i = 0; i < LARGE_FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "large%03d", i);
        remove(name);
    }
}

static void records_are_believed(void **state) {
    (void)state;
    static const uint32_t token[] = {1, 2, 3, 4, 5, 6};
    static const char large[] = "{\"tokens\": 6, \"largest\": 256}",
                      other[] = "{\"tokens\": 7, \"largest\": 256}";
    struct hrt_data data;
    struct hrt_error error = {0};
    test_write_llmc("x", (struct test_llmc){20240520, 1, 6, 2, token, 6, 0});
    test_write("x.json", large, strlen(large));
    expect_refusal("x", HRT_DATA_FORMAT_llmc,
                   "'x' has token 256, as its record says, outside the model's vocabulary of 256");
    test_write("x.json", other, strlen(other)); // Another file's.
    assert_true(open_data(&data, "x", NULL, HRT_DATA_FORMAT_llmc, &error));
    hrt_data_close(&data);
    remove("x.json");
}

static void files_that_are_no_text_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *begin;
        size_t bytes;
        const char *what;
    } files[] = {
        {"\x1f\x8b\x08", 3, "'z' is compressed by gzip: gunzip it first"},
        {"\x28\xb5\x2f\xfd", 4, "'z' is compressed by zstd: unzstd it first"},
        {"BZh91AY&SY", 10, "'z' is compressed by bzip2: bunzip2 it first"},
        {"PAR1", 4,
         "'z' is a Parquet table: python3 -c \"import pandas; "
         "pandas.read_parquet('FILE').to_json('FILE.jsonl', "
         "orient='records', lines=True)\" makes JSON lines of it"},
    };
    char text[2048];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        memset(text, 'a', sizeof text);
        memcpy(text, files[i].begin, files[i].bytes);
        test_write("z", text, sizeof text);
        expect_refusal("z", HRT_DATA_FORMAT_bytes, files[i].what);
        expect_refusal("z", HRT_DATA_FORMAT_llmc, files[i].what);
    }
    memcpy(text, "BZh is no header", 16); // Nor is this one.
    test_write("z", text, sizeof text);
    struct hrt_data data;
    struct hrt_error error = {0};
    assert_true(open_data(&data, "z", NULL, HRT_DATA_FORMAT_bytes, &error));
    hrt_data_close(&data);
}

static void the_last_twentieth_of_each_file_is_kept_for_validation(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    test_write_text("a.txt", 200); // Keeps 10 of its tokens: two windows.
    test_write_text("b.txt", 99);  // 4 would be too few for a window.
    assert_true(open_data(&data, "?.txt", NULL, HRT_DATA_FORMAT_bytes, &error));
    assert_int_equal(data.files, 2);
    assert_true(data.validation_cut);
    assert_int_equal(data.train.tokens, 190 + 99);
    assert_int_equal(data.train.starts, 190 - T + 99 - T);
    assert_int_equal(data.validation.tokens, 10);
    assert_int_equal(data.validation.windows, 2);

    int32_t ids[T], targets[T];
    char *text = test_read("a.txt", NULL);
    assert_true(hrt_data_window(&data, 1, ids, targets, &error));
    for (int i = 0; i < T; i++) {
        assert_int_equal(ids[i], text[190 + T + i]);
        assert_int_equal(targets[i], text[190 + T + i + 1]);
    }
    free(text);
    hrt_data_close(&data);
}

static void a_share_that_is_held_out_is_not_trained_on(void **state) {
    (void)state;
    static const char *const train = "held", *const validation = "other";
    struct hrt_data data;
    struct hrt_error error = {0};
    test_write_text("held", 200);
    test_write_text("other", 20);
    struct hrt_data_request request = {
        .train = &train, .trains = 1, .held_out = 0.25, .positions = T, .vocabulary = 256};
    assert_true(hrt_data_open(&data, &request, &error));
    assert_int_equal(data.train.tokens, 150);
    assert_int_equal(data.validation.tokens, 50);
    hrt_data_close(&data);
    request.validation = &validation; // Given validation data is all that is evaluated.
    request.validations = 1;
    assert_true(hrt_data_open(&data, &request, &error));
    assert_int_equal(data.train.tokens, 150);
    assert_int_equal(data.validation.tokens, 20);
    hrt_data_close(&data);
}

static void short_files_of_a_pattern_are_left_out(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    test_write_text("p1", 3);
    test_write_text("p2", 50);
    test_write_text("p3", 4);
    assert_true(open_data(&data, "p?", NULL, HRT_DATA_FORMAT_bytes, &error));
    assert_int_equal(data.files, 1);
    assert_int_equal(data.left_out, 2);
    assert_int_equal(data.train.tokens, 50);
    hrt_data_close(&data);
    expect_refusal("p[13]", HRT_DATA_FORMAT_bytes,
                   "no file that matches 'p[13]' has the 5 tokens of a sequence");
}

static void given_validation_files_leave_training_whole(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    test_write_text("train", 200);
    test_write_text("val[1]", 20); // The last window lacks a target.
    assert_true(open_data(&data, "train", "val[1]", HRT_DATA_FORMAT_bytes, &error));
    assert_false(data.validation_cut);
    assert_int_equal(data.train.tokens, 200);
    assert_int_equal(data.validation.windows, 4);
    hrt_data_close(&data);
}

static void a_sequence_depends_on_seed_and_number_alone(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    char bytes[200];
    int32_t first[T], again[T], targets[T];
    int seen[200] = {0}, distinct = 0;
    for (int i = 0; i < 200; i++) bytes[i] = (char)i; // A token tells where it stood.
    test_write("ramp", bytes, sizeof bytes);
    assert_true(open_data(&data, "ramp", "ramp", HRT_DATA_FORMAT_bytes, &error));
    for (uint64_t n = 0; n < 4000; n++) {
        assert_true(hrt_data_draw(&data, 3, n, first, targets, &error));
        assert_true(first[0] <= 200 - T - 1);
        assert_int_equal(targets[T - 1], first[0] + T);
        if (!seen[first[0]]++) distinct++;
    }
    assert_int_equal(distinct, 200 - T); // Every start occurs.
    assert_true(hrt_data_draw(&data, 3, 17, first, targets, &error));
    assert_true(hrt_data_draw(&data, 3, 5, again, targets, &error));
    assert_true(hrt_data_draw(&data, 3, 17, again, targets, &error));
    assert_memory_equal(first, again, sizeof first);
    int differing = 0;
    for (uint64_t n = 0; n < 20; n++) {
        assert_true(hrt_data_draw(&data, 3, n, first, targets, &error));
        assert_true(hrt_data_draw(&data, 4, n, again, targets, &error));
        differing += first[0] != again[0];
    }
    assert_true(differing > 15);
    hrt_data_close(&data);
}

static void masked_sequences_hide_what_they_ask_for(void **state) {
    (void)state;
    struct hrt_error error = {0};
    static const char *const path = "text";
    enum { T = 400, V = 300, COUNT = 200 };
    static int32_t ids[T], targets[T], whole[T], next[T], again[T];
    int64_t kind[3] = {0}, at[T] = {0}; // Masked, random, kept.
    struct hrt_data data, plain;
    test_write_text("text", 3000);
    struct hrt_data_request request = {
        .train = &path, .trains = 1, .positions = T, .vocabulary = V, .mask_rate = 0.15};
    assert_true(hrt_data_open(&data, &request, &error));
    request.mask_rate = 0;
    assert_true(hrt_data_open(&plain, &request, &error));
    assert_int_equal(data.targets, 60);
    assert_int_equal(plain.targets, T);
    for (uint64_t n = 0; n < COUNT; n++) {
        int64_t chosen = 0;
        assert_true(hrt_data_draw(&data, 1, n, ids, targets, &error));
        assert_true(hrt_data_draw(&plain, 1, n, whole, next, &error));
        for (int t = 0; t < T; t++) {
            if (targets[t] < 0) {
                assert_int_equal(targets[t], -1);
                assert_int_equal(ids[t], whole[t]);
                continue;
            }
            assert_int_equal(targets[t], whole[t]);
            kind[ids[t] == V - 1 ? 0 : ids[t] != whole[t] ? 1 : 2]++;
            at[t]++;
            chosen++;
        }
        assert_int_equal(chosen, 60);
    }
    // 12000 targets; four standard deviations. A random token is the old one once in 299.
    assert_in_range(kind[0], 9600 - 176, 9600 + 176);
    assert_in_range(kind[1], 1196 - 131, 1196 + 131);
    assert_in_range(kind[2], 1204 - 132, 1204 + 132);
    // Every position 30 times of 200, six standard deviations of 5.05.
    for (int t = 0; t < T; t++) assert_in_range(at[t], 0, 60);
    assert_true(at[0] > 0 && at[T - 1] > 0);

    assert_true(hrt_data_draw(&data, 1, COUNT - 1, again, next, &error));
    assert_memory_equal(ids, again, sizeof ids);
    assert_true(hrt_data_draw(&data, 2, COUNT - 1, again, next, &error));
    int64_t same = 0;
    for (int t = 0; t < T; t++) same += targets[t] >= 0 && next[t] >= 0;
    assert_in_range(same, 0, 30); // Out of 60; 9 are expected.
    hrt_data_close(&data);
    hrt_data_close(&plain);
}

static void validation_masks_belong_to_the_window(void **state) {
    (void)state;
    struct hrt_error error = {0};
    static const char *const path = "text", *const validation[2] = {"a", "text"};
    int32_t ids[2][10], targets[2][10], other[10], other_targets[10];
    test_write_text("text", 100);
    test_write_text("a", 11); // One window: the first of "text" is number 1 behind it.
    for (int files = 0; files < 2; files++) {
        struct hrt_data data;
        const struct hrt_data_request request = {.train = &path,
                                                 .trains = 1,
                                                 .validation = validation + (files ? 0 : 1),
                                                 .validations = 1 + files,
                                                 .positions = 10,
                                                 .vocabulary = 256,
                                                 .mask_rate = 0.3};
        assert_true(hrt_data_open(&data, &request, &error));
        assert_true(hrt_data_window(&data, 1, ids[files], targets[files], &error));
        assert_true(hrt_data_window(&data, 2, other, other_targets, &error));
        for (int t = 0; t < 10; t++) // The same positions, for any file.
            assert_int_equal(targets[files][t] < 0, targets[0][t] < 0);
        hrt_data_close(&data);
        int same = 0;
        for (int t = 0; t < 10; t++) same += (targets[0][t] < 0) == (other_targets[t] < 0);
        assert_true(same < 10);
    }
}

static void few_targets_are_at_least_one(void **state) {
    (void)state;
    assert_int_equal(hrt_data_mask_targets(&(struct hrt_mask){0.01, 10, 9}), 1);
    assert_int_equal(hrt_data_mask_targets(&(struct hrt_mask){0.15, 10, 9}), 2);
    assert_int_equal(hrt_data_mask_targets(&(struct hrt_mask){1, 10, 9}), 10);
    int32_t ids[10], targets[10];
    for (int t = 0; t < 10; t++) ids[t] = t % 9;
    hrt_data_mask_sequence(&(struct hrt_mask){1, 10, 9}, hrt_stream_make(1, "mask", ""), 0, ids,
                           targets);
    for (int t = 0; t < 10; t++) assert_int_equal(targets[t], t % 9);
}

static void a_mask_needs_two_tokens(void **state) {
    (void)state;
    struct hrt_error error = {0};
    struct hrt_data data;
    static const char *const path = "text";
    const struct hrt_data_request request = {
        .train = &path, .trains = 1, .positions = 4, .vocabulary = 1, .mask_rate = 0.15};
    test_expect_error(
        hrt_data_open(&data, &request, &error), &error, HRT_EXIT_FAILED,
        "a masked objective needs a mask token besides the others, and the vocabulary "
        "has one entry");
}

static void a_file_that_shrinks_is_an_error(void **state) {
    (void)state;
    struct hrt_data data;
    struct hrt_error error = {0};
    int32_t ids[T], targets[T];
    test_write_text("shrinks", 200);
    assert_true(open_data(&data, "shrinks", "shrinks", HRT_DATA_FORMAT_bytes, &error));
    assert_int_equal(truncate("shrinks", 3), 0);
    test_expect_error(hrt_data_draw(&data, 1, 0, ids, targets, &error), &error, HRT_EXIT_FAILED,
                      "'shrinks' became shorter while it was in use");
    hrt_data_close(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_tokens),
        cmocka_unit_test(both_forms_of_llmc_are_read),
        cmocka_unit_test(unusable_files_are_refused),
        cmocka_unit_test(foreign_llmc_files_are_refused),
        cmocka_unit_test(damaged_llmc_files_are_refused),
        cmocka_unit_test(tokens_outside_the_vocabulary_are_refused),
        cmocka_unit_test(opening_reads_no_tokens),
        cmocka_unit_test(records_are_believed),
        cmocka_unit_test(files_that_are_no_text_are_refused),
        cmocka_unit_test(the_last_twentieth_of_each_file_is_kept_for_validation),
        cmocka_unit_test(a_share_that_is_held_out_is_not_trained_on),
        cmocka_unit_test(short_files_of_a_pattern_are_left_out),
        cmocka_unit_test(given_validation_files_leave_training_whole),
        cmocka_unit_test(a_sequence_depends_on_seed_and_number_alone),
        cmocka_unit_test(masked_sequences_hide_what_they_ask_for),
        cmocka_unit_test(validation_masks_belong_to_the_window),
        cmocka_unit_test(few_targets_are_at_least_one),
        cmocka_unit_test(a_mask_needs_two_tokens),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
