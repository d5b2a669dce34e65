// Unit test of runtime/data/teacher: the format, refusals, which file belongs to which, sequences.
#include "runtime/data/teacher.h"

#include <libdeflate.h>
#include <math.h>
#include <unistd.h>

#include "runtime/data/data.h"
#include "tests/runtime/support/case.h"

enum { T = 4, TOKENS = 40, VOCABULARY = 300 };

// A file of three entries for each of `text`'s tokens: entry k of token t is token 7 t + k, of the log-probability -t - k / 4.
static struct hrt_teacher_file file_of(const char *text, int64_t tokens) {
    return (struct hrt_teacher_file){.entries = 3,
                                     .tokens = tokens,
                                     .vocabulary = VOCABULARY,
                                     .checksum = libdeflate_crc32(0, text, (size_t)tokens),
                                     .id_bytes = 2,
                                     .log_bytes = 4};
}

// -t - k / 4 as IEEE half: of 0 to 40 exact.
static uint16_t half_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value == 0) return (uint16_t)(bits >> 16);
    return (uint16_t)((bits >> 16 & 0x8000) | ((bits >> 13) - ((127 - 15) << 10)) % 0x8000);
}

static void write_teacher(const char *path, const struct hrt_teacher_file *file) {
    FILE *out = fopen(path, "w");
    unsigned char header[HRT_TEACHER_HEADER];
    assert_non_null(out);
    hrt_data_teacher_header(file, header);
    fwrite(header, 1, sizeof header, out);
    for (int64_t t = 0; t < file->tokens; t++) {
        for (int64_t k = 0; k < file->entries; k++) {
            const uint32_t id = (uint32_t)(7 * t + k) % VOCABULARY;
            fwrite(&id, (size_t)file->id_bytes, 1, out);
        }
        for (int64_t k = 0; k < file->entries; k++) {
            const float wide = (float)-t - (float)k / 4;
            const uint16_t narrow = half_of(wide);
            fwrite(file->log_bytes == 2 ? (const void *)&narrow : &wide, (size_t)file->log_bytes, 1,
                   out);
        }
    }
    fclose(out);
}

// Writes TOKENS letters, from `first` on, and returns them.
static const char *write_text(const char *path, char first) {
    static char text[TOKENS + 1];
    for (int i = 0; i < TOKENS; i++) text[i] = (char)(first + i % 20);
    test_write(path, text, TOKENS);
    return text;
}

static enum hrt_data_order order = HRT_DATA_ORDER_random;

static bool open_data(struct hrt_data *data, const char *const *text, int texts,
                      const char *const *teacher, int teachers, struct hrt_error *error) {
    const struct hrt_data_request request = {.train = text,
                                             .trains = texts,
                                             .teacher = teacher,
                                             .teachers = teachers,
                                             .order = order,
                                             .positions = T,
                                             .vocabulary = VOCABULARY};
    *error = (struct hrt_error){0};
    return hrt_data_open(data, &request, error);
}

// Where a sequence of ids starts in the text that begins with `first`, of which no five letters come again within 20.
static void check_rows(const int32_t *said, const float *log_probs, int64_t start) {
    for (int64_t i = 0; i < 3 * T; i++) {
        const int64_t t = start + i / 3, k = i % 3;
        assert_int_equal(said[i], (7 * t + k) % VOCABULARY);
        assert_true(log_probs[i] == (float)-t - (float)k / 4);
    }
}

static void every_form_is_read(void **state) {
    (void)state;
    const char *const text = "text", *const teacher = "said";
    for (int form = 0; form < 4; form++) {
        struct hrt_teacher_file file = file_of(write_text("text", 'A'), TOKENS);
        struct hrt_data data;
        struct hrt_error error;
        int32_t ids[T], targets[T], said[3 * T];
        float log_probs[3 * T];
        file.id_bytes = form & 1 ? 4 : 2;
        file.log_bytes = form & 2 ? 4 : 2;
        write_teacher("said", &file);
        assert_true(open_data(&data, &text, 1, &teacher, 1, &error));
        assert_int_equal(data.teachers.entries, 3);
        for (uint64_t n = 0; n < 20; n++) {
            assert_true(hrt_data_draw(&data, 5, n, ids, targets, &error));
            assert_true(hrt_data_draw_teacher(&data, 5, n, said, log_probs, &error));
            int64_t start = ids[0] - 'A'; // Or 20 further on.
            if (said[0] != 7 * start) start += 20;
            check_rows(said, log_probs, start);
        }
        hrt_data_close(&data);
    }
}

// The last token of the data has no entry: its teacher has not said which one follows in the ring.
static void the_last_token_of_a_file_teaches_nothing(void **state) {
    (void)state;
    const char *const text = "text", *const teacher = "said";
    struct hrt_teacher_file file = file_of(write_text("text", 'A'), TOKENS);
    struct hrt_data data;
    struct hrt_error error;
    int32_t said[3 * T];
    float log_probs[3 * T];
    int ends = 0;
    write_teacher("said", &file);
    order = HRT_DATA_ORDER_sequential;
    assert_true(open_data(&data, &text, 1, &teacher, 1, &error));
    for (int64_t n = 0; n < 3 * TOKENS / T; n++) {
        assert_true(hrt_data_draw_teacher(&data, 5, (uint64_t)n, said, log_probs, &error));
        for (int64_t i = 0; i < 3 * T; i++) {
            const int64_t t = (n * T + i / 3) % data.train.tokens, k = i % 3;
            const bool last = t == data.train.tokens - 1;
            assert_int_equal(said[i], (7 * t + k) % VOCABULARY);
            assert_true(log_probs[i] == (last ? -INFINITY : (float)-t - (float)k / 4));
            ends += last;
        }
    }
    assert_true(ends >= 3);
    hrt_data_close(&data);
    order = HRT_DATA_ORDER_random;
}

static void validation_windows_have_their_rows(void **state) {
    (void)state;
    struct hrt_teacher_file file = file_of(write_text("text", 'A'), TOKENS);
    static const char *const path = "text", *const teacher = "said";
    const struct hrt_data_request request = {.validation = &path,
                                             .validations = 1,
                                             .teacher = &teacher,
                                             .teachers = 1,
                                             .positions = T,
                                             .vocabulary = VOCABULARY};
    struct hrt_data data;
    struct hrt_error error = {0};
    int32_t said[3 * T], tail[T];
    float log_probs[3 * T];
    write_teacher("said", &file);
    assert_true(hrt_data_open(&data, &request, &error));
    for (int64_t window = 0; window < data.validation.windows; window++) {
        assert_true(hrt_data_window_teacher(&data, window, said, log_probs, &error));
        check_rows(said, log_probs, T * window);
    }
    assert_true(hrt_data_tail(&data, tail, &error));
    assert_memory_equal(tail, ((int32_t[]){'A' + 16, 'A' + 17, 'A' + 18, 'A' + 19}), sizeof tail);
    hrt_data_close(&data);
}

// With any names and in any order.
static void files_are_found_by_their_tokens(void **state) {
    (void)state;
    static const char *const texts[] = {"one", "two"}, *const pattern = "said_*";
    struct hrt_teacher_file one = file_of(write_text("one", 'A'), TOKENS);
    write_teacher("said_b", &one);
    struct hrt_teacher_file two = file_of(write_text("two", 'a'), TOKENS);
    write_teacher("said_a", &two);
    struct hrt_data data;
    struct hrt_error error;
    assert_true(open_data(&data, texts, 2, &pattern, 1, &error));
    assert_string_equal(data.teachers.file[data.teachers.of[0]].path, "said_b");
    assert_string_equal(data.teachers.file[data.teachers.of[1]].path, "said_a");
    hrt_data_close(&data);

    write_teacher("said_c", &two);
    test_expect_error(open_data(&data, texts, 2, &pattern, 1, &error), &error, HRT_EXIT_FAILED,
                      "'said_a' and 'said_c' both speak of 'two'");
    two.entries = 2;
    write_teacher("said_c", &two);
    test_expect_error(open_data(&data, texts, 2, &pattern, 1, &error), &error, HRT_EXIT_FAILED,
                      "'said_c' has 2 entries for a token, 'said_a' 3");
    assert_int_equal(unlink("said_c"), 0);
    assert_int_equal(unlink("said_a"), 0);
    write_teacher("said_d", &one);
    assert_int_equal(unlink("said_b"), 0);
    test_expect_error(open_data(&data, texts, 2, &pattern, 1, &error), &error, HRT_EXIT_FAILED,
                      "'said_d' is of other tokens than 'two': of 40 with the checksum "
                      "c95dff27, not 40 with 2aeff932");
    assert_int_equal(unlink("said_d"), 0);
    test_expect_error(open_data(&data, texts, 2, &pattern, 1, &error), &error, HRT_EXIT_FAILED,
                      "no file matches 'said_*'");
}

static void expect_refusal(const struct hrt_teacher_file *file, const char *text) {
    struct hrt_teacher_file opened;
    struct hrt_error error = {0};
    write_teacher("bad", file);
    test_expect_error(hrt_data_teacher_file_open(&opened, "bad", VOCABULARY, &error), &error,
                      HRT_EXIT_FAILED, text);
}

static void unusable_files_are_refused(void **state) {
    (void)state;
    struct hrt_teacher_file opened, file;
    struct hrt_error error = {0};
    const struct hrt_teacher_file good = file_of(write_text("text", 'A'), TOKENS);
    test_expect_error(hrt_data_teacher_file_open(&opened, "absent", VOCABULARY, &error), &error,
                      HRT_EXIT_FAILED, "cannot open 'absent': No such file or directory");
    test_expect_error(hrt_data_teacher_file_open(&opened, ".", VOCABULARY, &error), &error,
                      HRT_EXIT_FAILED, "'.' is not a regular file");
    test_expect_error(hrt_data_teacher_file_open(&opened, "text", VOCABULARY, &error), &error,
                      HRT_EXIT_FAILED,
                      "'text' is too short: 40 bytes, and the header alone has 64");
    char other[200] = "hecteacH";
    test_write("other", other, sizeof other);
    test_expect_error(hrt_data_teacher_file_open(&opened, "other", VOCABULARY, &error), &error,
                      HRT_EXIT_FAILED,
                      "'other' is no teacher file: it does not begin with \"hecteach\" "
                      "(eval --write-teacher makes one)");
    memcpy(other, "hecteach\2", 9);
    test_write("other", other, sizeof other);
    test_expect_error(hrt_data_teacher_file_open(&opened, "other", VOCABULARY, &error), &error,
                      HRT_EXIT_FAILED, "'other' has version 2 of its format; known is version 1");
    file = good, file.entries = 0;
    expect_refusal(&file, "'bad' has 0 entries for a token, not 1 to 4096");
    file = good, file.entries = 4097, file.tokens = 0;
    expect_refusal(&file, "'bad' has 4097 entries for a token, not 1 to 4096");
    file = good, file.id_bytes = 1;
    expect_refusal(&file, "'bad' has ids of 1 and log-probabilities of 4 bytes, not 2 or 4");
    file = good, file.vocabulary = 301;
    expect_refusal(&file, "'bad' is of a vocabulary of 301, the model's has 300");
    write_teacher("bad", &good);
    assert_int_equal(truncate("bad", 64 + 40 * 18 - 1), 0);
    test_expect_error(
        hrt_data_teacher_file_open(&opened, "bad", VOCABULARY, &error), &error, HRT_EXIT_FAILED,
        "'bad' is damaged: its header says 40 tokens of 18 bytes, and 719 bytes follow");
}

// Writes `bytes` at `offset` of a good file, opens it, and expects that it cannot be read.
static void expect_unread(const void *bytes, size_t count, long offset, const char *text) {
    const struct hrt_teacher_file good = file_of(write_text("text", 'A'), TOKENS);
    struct hrt_teacher_file file;
    struct hrt_error error = {0};
    int32_t ids[3 * TOKENS];
    float log_probs[3 * TOKENS];
    write_teacher("bad", &good);
    FILE *out = fopen("bad", "r+");
    assert_non_null(out);
    assert_int_equal(fseek(out, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, count, out), count);
    fclose(out);
    assert_true(hrt_data_teacher_file_open(&file, "bad", VOCABULARY, &error));
    test_expect_error(hrt_data_teacher_file_read(&file, 0, TOKENS, ids, log_probs, &error), &error,
                      HRT_EXIT_FAILED, text);
    hrt_data_teacher_file_close(&file);
}

static void what_is_read_is_checked(void **state) {
    (void)state;
    const uint16_t id = 300;
    const float nan = NAN, infinite = INFINITY, none = -INFINITY;
    expect_unread(&id, 2, 64 + 5 * 18 + 2,
                  "'bad' has the id 300 at token 5, outside of its vocabulary of 300");
    expect_unread(&nan, 4, 64 + 39 * 18 + 6, "'bad' has the log-probability nan at token 39");
    expect_unread(&infinite, 4, 64 + 7 * 18 + 10, "'bad' has the log-probability inf at token 7");

    const struct hrt_teacher_file good = file_of(write_text("text", 'A'), TOKENS);
    struct hrt_teacher_file file;
    struct hrt_error error = {0};
    int32_t ids[3];
    float log_probs[3];
    write_teacher("short", &good);
    assert_true(hrt_data_teacher_file_open(&file, "short", VOCABULARY, &error));
    FILE *out = fopen("short", "r+");
    assert_int_equal(fseek(out, 64 + 6, SEEK_SET), 0);
    fwrite(&none, 4, 1, out); // No entry is one.
    fclose(out);
    assert_true(hrt_data_teacher_file_read(&file, 0, 1, ids, log_probs, &error));
    assert_true(log_probs[0] == -INFINITY && log_probs[1] == -0.25f);
    assert_int_equal(truncate("short", 100), 0);
    test_expect_error(hrt_data_teacher_file_read(&file, 2, 1, ids, log_probs, &error), &error,
                      HRT_EXIT_FAILED, "'short' became shorter while it was in use");
    hrt_data_teacher_file_close(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(the_last_token_of_a_file_teaches_nothing),
        cmocka_unit_test(validation_windows_have_their_rows),
        cmocka_unit_test(files_are_found_by_their_tokens),
        cmocka_unit_test(unusable_files_are_refused),
        cmocka_unit_test(what_is_read_is_checked),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
