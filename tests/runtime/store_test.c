// Unit test of runtime/params/store: round trips, and every way in which a file can be wrong.
#include "runtime/store/weights.h"

#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/params/tensor.h"
#include "tests/runtime/support/case.h"

// A program of two parameters: w [3, 70] in panels and, per layer of two, b [2].
static const struct hrt_param params[] = {
    {.symbol = "w",
     .path = "w",
     .rank = 2,
     .dim = {"A", "B"},
     .shape = {3, 70},
     .layers = 1,
     .index_first = -1,
     .trainable = true,
     .layout = HRT_PANELS,
     .rows = 3,
     .columns = 70,
     .elements = 384,
     .set = -1,
     .offset = 0},
    {.symbol = "b",
     .path = "layers.{}.b",
     .rank = 1,
     .dim = {"C"},
     .shape = {2},
     .layers = 2,
     .index_stride = 1,
     .trainable = true,
     .layout = HRT_ROWS,
     .rows = 1,
     .columns = 2,
     .elements = 2,
     .set = -1,
     .offset = 384},
    {.symbol = "rope_table",
     .path = "rope_table",
     .rank = 2,
     .dim = {"T", "A"},
     .shape = {2, 2},
     .layers = 1,
     .index_first = -1,
     .init = HRT_INIT_ROPE,
     .layout = HRT_ROWS,
     .rows = 2,
     .columns = 2,
     .elements = 4,
     .set = -1,
     .offset = 388},
};
enum { ELEMENTS = 392 };
static const struct hrt_program single = {
    .name = "two", .version = "1", .params = 3, .param_elements = ELEMENTS, .param = params};
static const struct hrt_program twice = {.name = "two",
                                         .version = "1",
                                         .precision = HRT_FP64,
                                         .params = 3,
                                         .param_elements = ELEMENTS,
                                         .param = params};
static const struct hrt_placement single_here = {.program = &single},
                                  twice_here = {.program = &twice};

// Gives every stored element a number of its own; padding and rope tables stay zero.
static void fill(const struct hrt_program *program, void *buffer) {
    struct hrt_tensor tensor = {0};
    double value = 1;
    while (hrt_params_tensor_next(program, &tensor)) {
        if (tensor.param->init == HRT_INIT_ROPE) continue;
        for (int64_t i = 0; i < hrt_params_size(tensor.param); i++) {
            const int64_t at = tensor.offset + hrt_params_stored_index(tensor.param, i);
            hrt_params_element_set(buffer, program->precision, at, value += 0.1);
        }
    }
}

static void what_is_saved_is_loaded(void **state) {
    (void)state;
    float saved[ELEMENTS] = {0}, loaded[ELEMENTS] = {0};
    struct hrt_error error = {0};
    fill(&single, saved);
    assert_true(hrt_store_save(TEST_BUFFER(&single_here, saved), "a.st", &error));
    assert_true(hrt_store_restore(TEST_BUFFER(&single_here, loaded), "a.st", NULL, &error));
    assert_memory_equal(saved, loaded, sizeof saved);
}

static void precisions_convert(void **state) {
    (void)state;
    double saved[ELEMENTS] = {0}, loaded[ELEMENTS] = {0};
    float rounded[ELEMENTS] = {0};
    struct hrt_error error = {0};
    fill(&twice, saved);
    assert_true(hrt_store_save(TEST_BUFFER(&twice_here, saved), "b.st", &error));
    assert_true(hrt_store_restore(TEST_BUFFER(&single_here, rounded), "b.st", NULL, &error));
    for (int i = 0; i < ELEMENTS; i++) assert_true(rounded[i] == (float)saved[i]);
    assert_true(hrt_store_save(TEST_BUFFER(&single_here, rounded), "c.st", &error));
    assert_true(hrt_store_restore(TEST_BUFFER(&twice_here, loaded), "c.st", NULL, &error));
    for (int i = 0; i < ELEMENTS; i++) assert_true(loaded[i] == (double)rounded[i]);
}

// Writes x.st: `dtype` tensors whose first bytes are `head`, the rest zero, saved by the model `model`.
static void write_16(const char *dtype, const char *model, const uint16_t *head, size_t bytes) {
    char text[512];
    uint16_t data[214] = {0};
    memcpy(data, head, bytes);
    const uint64_t length = (uint64_t)snprintf(
        text, sizeof text,
        "{\"__metadata__\":{\"model\":\"%s\"},"
        "\"w\":{\"dtype\":\"%s\",\"shape\":[3,70],\"data_offsets\":[0,420]},"
        "\"layers.0.b\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[420,424]},"
        "\"layers.1.b\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[424,428]}}",
        model, dtype, dtype, dtype);
    FILE *file = fopen("x.st", "w");
    fwrite(&length, sizeof length, 1, file);
    fwrite(text, 1, length, file);
    fwrite(data, 1, sizeof data, file);
    fclose(file);
}

static void half_precisions_are_read(void **state) {
    (void)state;
    static const uint16_t f16[] = {0x3C00, 0xC000, 0x0001, 0x0400, 0x7BFF, 0x8000, 0x3555};
    static const uint16_t bf16[] = {0x3F80, 0xC000, 0x0001, 0x7F7F, 0x3EAB};
    static const float halves[] = {1, -2, 0x1p-24F, 0x1p-14F, 65504, 0, 0x1.554p-2F};
    static const float brains[] = {1, -2, 0x1p-133F, 0x1.FEp127F, 0x1.56p-2F};
    float loaded[ELEMENTS] = {0};
    struct hrt_error error = {0};
    struct hrt_store_doubts doubts;
    write_16("F16", "two", f16, sizeof f16);
    assert_true(hrt_store_restore(TEST_BUFFER(&single_here, loaded), "x.st", &doubts, &error));
    for (int i = 0; i < 7; i++) assert_true(loaded[i] == halves[i]);
    write_16("BF16", "two", bf16, sizeof bf16);
    assert_true(hrt_store_restore(TEST_BUFFER(&single_here, loaded), "x.st", &doubts, &error));
    for (int i = 0; i < 5; i++) assert_true(loaded[i] == brains[i]);
    assert_string_equal(doubts.model, "");
    assert_string_equal(doubts.values, "");
}

static void what_is_odd_is_told(void **state) {
    (void)state;
    static const uint16_t odd[] = {0x3C00, 0x7E00, 0xFC00};
    float loaded[ELEMENTS] = {0};
    struct hrt_error error = {0};
    struct hrt_store_doubts doubts;
    write_16("F16", "another", odd, sizeof odd);
    assert_true(hrt_store_restore(TEST_BUFFER(&single_here, loaded), "x.st", &doubts, &error));
    assert_string_equal(doubts.model, "'x.st' was saved by the model 'another', and this is 'two'");
    assert_string_equal(doubts.values, "'x.st': tensor 'w' has values that are not finite (nan)");
    assert_true(isnan(loaded[1]) && loaded[2] == -INFINITY);
}

static mode_t mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static void a_save_keeps_links_and_rights(void **state) {
    (void)state;
    float saved[ELEMENTS] = {0};
    struct hrt_error error = {0};
    struct stat link;
    fill(&single, saved);
    mkdir("far", 0700);
    assert_int_equal(symlink("far/real.st", "link.st"), 0); // The file is not there yet.
    assert_true(hrt_store_save(TEST_BUFFER(&single_here, saved), "link.st", &error));
    assert_int_equal(chmod("far/real.st", 0600), 0);
    assert_true(hrt_store_save(TEST_BUFFER(&single_here, saved), "link.st", &error));
    assert_int_equal(lstat("link.st", &link), 0);
    assert_true(S_ISLNK(link.st_mode));
    assert_int_equal(mode_of("far/real.st"), 0600);
}

// A killed run leaves its temporary file; the next one takes it over. One that is alive keeps others away.
static void one_temporary_file(void **state) {
    (void)state;
    float saved[ELEMENTS] = {0};
    struct hrt_error error = {0};
    const int fd = open("t.st.hecate-partial", O_WRONLY | O_CREAT, 0600);
    assert_int_equal(ftruncate(fd, 1 << 20), 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    test_expect_error(hrt_store_save(TEST_BUFFER(&single_here, saved), "t.st", &error), &error,
                      HRT_EXIT_FAILED, "cannot write 't.st': another run is writing it");
    close(fd);
    assert_true(hrt_store_save(TEST_BUFFER(&single_here, saved), "t.st", &error));
    assert_int_equal(access("t.st.hecate-partial", F_OK), -1);
}

// Read by hand as the format's description says, not by our own reader.
static void the_file_is_as_the_format_says(void **state) {
    (void)state;
    float saved[ELEMENTS] = {0};
    struct hrt_error error = {0};
    uint64_t length;
    size_t bytes;
    fill(&single, saved);
    assert_true(hrt_store_save(TEST_BUFFER(&single_here, saved), "a.st", &error));
    char *file = test_read("a.st", &bytes);
    memcpy(&length, file, sizeof length);
    assert_int_equal((8 + length) % 64, 0);
    json_t *header = json_loadb(file + 8, length, 0, NULL);
    const char *format;
    int begin, end, rows, columns;
    assert_int_equal(json_unpack(header, "{s:{s:s}}", "__metadata__", "format", &format), 0);
    assert_string_equal(format, "pt");
    assert_int_equal(json_unpack(header, "{s:{s:[ii!], s:[ii!]}}", "w", "shape", &rows, &columns,
                                 "data_offsets", &begin, &end),
                     0);
    assert_int_equal(rows, 3);
    assert_int_equal(columns, 70);
    assert_int_equal(end - begin, 3 * 70 * 4);
    const float *w = (const float *)(file + 8 + length + begin);
    assert_true(w[0] == saved[0] && w[69] == saved[192 + 5] && w[70] == saved[64]);
    assert_int_equal(8 + length + (3 * 70 + 4) * 4, bytes);
    json_decref(header);
    free(file);
}

// Writes `header`, padded to `padded` bytes if that is longer, and `data` zero bytes.
static void write_store(const char *header, size_t data) {
    char file[4096] = {0};
    const uint64_t length = strlen(header);
    memcpy(file, &length, sizeof length);
    memcpy(file + 8, header, length);
    test_write("x.st", file, 8 + length + data);
}

static void expect_refusal(const char *text) {
    float buffer[ELEMENTS] = {0};
    const float zeros[ELEMENTS] = {0};
    struct hrt_error error = {0};
    test_expect_error(hrt_store_restore(TEST_BUFFER(&single_here, buffer), "x.st", NULL, &error),
                      &error, HRT_EXIT_FAILED, text);
    assert_memory_equal(buffer, zeros, sizeof buffer);
}

#define INVALID "'x.st' is not a valid safetensors file: "

static void malformed_headers_are_refused(void **state) {
    (void)state;
    unlink("x.st");
    expect_refusal("cannot open 'x.st': No such file or directory");
    test_write("x.st", "abc", 3);
    expect_refusal(INVALID "it is shorter than 8 bytes");
    test_write("x.st", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    expect_refusal(INVALID "its header would be larger than 100 MB");
    test_write("x.st", "\x09\0\0\0\0\0\0\0{}", 10);
    expect_refusal(INVALID "it ends inside its header");
    write_store("", 0);
    expect_refusal(INVALID "its header is not JSON: it does not begin with '{'");
    write_store("{\"a\":}", 0);
    expect_refusal(INVALID "its header is not JSON: unexpected token near '}'");
    write_store("{\"a\":1,\"a\":1}", 0);
    expect_refusal(INVALID "its header is not JSON: duplicate object key near '\"a\"'");
    write_store("{\"__metadata__\":3}", 0);
    expect_refusal(INVALID "__metadata__ is not an object");
    write_store("{\"__metadata__\":{\"a\":3}}", 0);
    expect_refusal(INVALID "__metadata__ holds more than strings");
}

#define TENSOR(name, shape, begin, end)                                                            \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]}"

static void malformed_tensors_are_refused(void **state) {
    (void)state;
    write_store("{\"a\":3}", 0);
    expect_refusal(INVALID "tensor 'a' has no known dtype");
    write_store("{\"a\":{\"dtype\":\"F31\"}}", 0);
    expect_refusal(INVALID "tensor 'a' has no known dtype");
    write_store("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4);
    expect_refusal(INVALID "tensor 'a' has no two data_offsets");
    write_store("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4.0]}}", 4);
    expect_refusal(INVALID "tensor 'a' has no two data_offsets");
    write_store("{" TENSOR("a", "[1]", "0", "4") "}", 3);
    expect_refusal(INVALID "tensor 'a' lies outside the file");
    write_store("{" TENSOR("a", "[1]", "-4", "0") "}", 4);
    expect_refusal(INVALID "tensor 'a' lies outside the file");
    write_store("{" TENSOR("a", "[2]", "0", "4") "}", 4);
    expect_refusal(INVALID "tensor 'a' has a shape that does not fit its data_offsets");
    write_store("{" TENSOR("a", "[-1]", "0", "4") "}", 4);
    expect_refusal(INVALID "tensor 'a' has a shape that does not fit its data_offsets");
    write_store("{" TENSOR("a", "[4611686018427387904,4]", "0", "4") "}", 4);
    expect_refusal(INVALID "tensor 'a' has a shape that does not fit its data_offsets");
    write_store("{" TENSOR("a", "[1]", "0", "4") "," TENSOR("b", "[1]", "8", "12") "}", 12);
    expect_refusal(INVALID "tensor 'b' follows a hole");
    write_store("{" TENSOR("a", "[2]", "0", "8") "," TENSOR("b", "[1]", "4", "8") "}", 8);
    expect_refusal(INVALID "tensor 'b' overlaps the one before");
    write_store("{" TENSOR("a", "[1]", "0", "4") "}", 5);
    expect_refusal(INVALID "bytes follow the last tensor");
}

#define OTHER "'x.st' is of another model: "
#define LAYERS                                                                                     \
    TENSOR("layers.0.b", "[2]", "840", "848") "," TENSOR("layers.1.b", "[2]", "848", "856")

static void other_models_are_refused(void **state) {
    (void)state;
    write_store("{" TENSOR("w", "[3,70]", "0", "840") "}", 840);
    expect_refusal(OTHER "it has no tensor 'layers.0.b'");
    write_store("{" TENSOR("w", "[70,3]", "0", "840") "," LAYERS "}", 856);
    expect_refusal(OTHER "'w' has shape [70,3] there, and [3,70] here");
    write_store("{" TENSOR("w", "[210]", "0", "840") "," LAYERS "}", 856);
    expect_refusal(OTHER "'w' has shape [210] there, and [3,70] here");
    write_store(
        "{" TENSOR("w", "[3,70]", "0", "840") "," LAYERS "," TENSOR("z", "[0]", "0", "0") "}", 856);
    expect_refusal(OTHER "it has 4 tensors, and this one 3");
    write_store("{\"w\":{\"dtype\":\"I32\",\"shape\":[3,70],\"data_offsets\":[0,840]}," LAYERS "}",
                856);
    expect_refusal("'x.st': tensor 'w' is I32; only F64, F32, BF16 and F16 can be read");
}

static void a_failed_save_leaves_the_old_file(void **state) {
    (void)state;
    float saved[ELEMENTS] = {0};
    struct hrt_error error = {0};
    test_expect_error(hrt_store_save(TEST_BUFFER(&single_here, saved), "no/such.st", &error),
                      &error, HRT_EXIT_FAILED,
                      "cannot write 'no/such.st': No such file or directory");
    test_expect_error(hrt_store_check_writable("no/such.st", &error), &error, HRT_EXIT_FAILED,
                      "cannot write 'no/such.st': No such file or directory");
    mkdir("folder", 0700);
    test_expect_error(hrt_store_check_writable("folder", &error), &error, HRT_EXIT_FAILED,
                      "cannot write 'folder': Is a directory");
    test_expect_error(hrt_store_save(TEST_BUFFER(&single_here, saved), "folder", &error), &error,
                      HRT_EXIT_FAILED, "cannot write 'folder': Is a directory");
    assert_int_equal(rmdir("folder"), 0); // Nothing was left in it, nor put in its place,
    test_expect_error(hrt_store_check_writable("/dev/full", &error), &error, HRT_EXIT_FAILED,
                      "cannot write '/dev/full': it is not a regular file");
    assert_int_equal(mkfifo("pipe", 0600), 0);
    test_expect_error(hrt_store_save(TEST_BUFFER(&single_here, saved), "pipe", &error), &error,
                      HRT_EXIT_FAILED, "cannot write 'pipe': it is not a regular file");
    glob_t beside; // nor left beside it.
    assert_int_equal(glob("folder*", 0, NULL, &beside), GLOB_NOMATCH);
    assert_true(hrt_store_check_writable("fresh.st", &error));
    assert_int_equal(access("fresh.st", F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_loaded),
        cmocka_unit_test(precisions_convert),
        cmocka_unit_test(half_precisions_are_read),
        cmocka_unit_test(what_is_odd_is_told),
        cmocka_unit_test(a_save_keeps_links_and_rights),
        cmocka_unit_test(one_temporary_file),
        cmocka_unit_test(the_file_is_as_the_format_says),
        cmocka_unit_test(malformed_headers_are_refused),
        cmocka_unit_test(malformed_tensors_are_refused),
        cmocka_unit_test(other_models_are_refused),
        cmocka_unit_test(a_failed_save_leaves_the_old_file),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
