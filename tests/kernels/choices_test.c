// Unit test of kernels/cuda/choices: which products of a GPU a table gives to a library.
#include "kernels/cuda/choices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct hkc_shape shape(enum hkc_form form, bool bf16, int64_t m, int64_t n, int64_t k) {
    return (struct hkc_shape){.form = form, .bf16 = bf16, .dims = {.m = m, .n = n, .k = k}};
}

static bool chosen(const struct hkc_choices *choices, enum hkc_form form, bool bf16, int64_t m,
                   int64_t n, int64_t k) {
    const struct hkc_shape of = shape(form, bf16, m, n, k);
    return hkc_choose(choices, &of);
}

static void the_nearest_line_decides(void **state) {
    (void)state;
    static struct hkc_choices choices = {
        .count = 4,
        .choice = {{.shape = {HKC_NN, true, {1024, 512, 512}}, .by_library = true},
                   {.shape = {HKC_NN, true, {4096, 512, 512}}, .by_library = false},
                   {.shape = {HKC_TN, true, {1024, 512, 512}}, .by_library = false},
                   {.shape = {HKC_NT, false, {1024, 512, 512}}, .by_library = true}},
    };
    assert_true(chosen(&choices, HKC_NN, true, 1024, 512, 512));
    assert_true(chosen(&choices, HKC_NN, true, 2000, 512, 512));
    assert_true(chosen(&choices, HKC_NN, true, 2048, 512, 512)); // As far from both.
    assert_false(chosen(&choices, HKC_NN, true, 2100, 512, 512));
    assert_true(chosen(&choices, HKC_NN, true, 512, 256, 300));
    assert_false(chosen(&choices, HKC_NN, true, 512, 128, 128)); // Nothing is near.
    assert_false(chosen(&choices, HKC_NN, false, 1024, 512, 512));
    assert_false(chosen(&choices, HKC_TN, true, 1024, 512, 512));
    assert_true(chosen(&choices, HKC_NT, false, 1024, 512, 512));
    assert_false(chosen(&choices, HKC_NN, true, 0, 512, 512));
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void expect_refused(const char *path, const char *text, const char *why) {
    static struct hkc_choices choices;
    char said[256] = "", expected[256];
    write_text(path, text);
    assert_false(hkc_choices_read(&choices, path, 90, said, sizeof said));
    snprintf(expected, sizeof expected, "%s:%s", path, why);
    assert_string_equal(said, expected);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    static struct hkc_choices written = {
        .count = 2,
        .choice = {{.shape = {HKC_TN, true, {7, 8, 9}}, .own = 2, .library = 1, .by_library = true},
                   {.shape = {HKC_NT, false, {1, 2, 3}}, .own = 1.5, .library = 2}}};
    static struct hkc_choices read;
    char path[] = "/tmp/hecate-choices-XXXXXX", why[256] = "";
    const int opened = mkstemp(path);
    assert_true(opened >= 0);
    close(opened);
    FILE *file = fopen(path, "w");
    hkc_choices_write(file, &written, 90);
    assert_int_equal(fclose(file), 0);
    assert_true(hkc_choices_read(&read, path, 90, why, sizeof why));
    assert_int_equal(read.count, 2);
    assert_true(chosen(&read, HKC_TN, true, 7, 8, 9));
    assert_false(chosen(&read, HKC_NT, false, 1, 2, 3));
    assert_false(hkc_choices_read(&read, path, 80, why, sizeof why));
    assert_non_null(strstr(why, "measured on sm_90, but this GPU is sm_80"));
    const char *line = "hecate-products 1 sm_90\nbf16 nn m=1 n=1 k=1 own=1 cublaslt=1 ";
    char text[256];
    snprintf(text, sizeof text, "%smaybe\n", line);
    expect_refused(path, text, "2: not a choice for a GEMM");
    snprintf(text, sizeof text, "%sown", line); // Cut off.
    expect_refused(path, text, "2: not a choice for a GEMM");
    expect_refused(path, "hecate-products 2 sm_90\n", "1: not a table of GEMMs");
    unlink(path);
    assert_false(hkc_choices_read(&read, path, 90, why, sizeof why));
    assert_non_null(strstr(why, "No such file"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_line_decides),
        cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
