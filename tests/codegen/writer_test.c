// The writer of emitted text: wrapping, comments, blank lines.
#include "codegen/text/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct hec_arena arena;

static struct hec_writer fresh(int indent) {
    return (struct hec_writer){.arena = &arena, .indent = indent};
}

static void short_line_stays(void **state) {
    (void)state;
    struct hec_writer w = fresh(1);
    hec_line(&w, "y[%d] = x;", 3);
    assert_string_equal(w.text, "    y[3] = x;\n");
}

// Long calls break after commas of the outermost brackets first, below the bracket.
static void call_breaks_between_arguments(void **state) {
    (void)state;
    struct hec_writer w = fresh(1);
    hec_line(&w,
             "hk_matmul_nn_f32(result_of_it, left_operand_of_it, right_operand_of_it, HK_PANELS, "
             "(struct hk_matmul_dims){.m = batch * T, .n = H * A, .k = D}, HK_STORE);");
    assert_string_equal(
        w.text,
        "    hk_matmul_nn_f32(result_of_it, left_operand_of_it, right_operand_of_it, HK_PANELS,\n"
        "                     (struct hk_matmul_dims){.m = batch * T, .n = H * A, .k = D}, "
        "HK_STORE);\n");
}

static void no_line_is_too_long(void **state) {
    (void)state;
    for (int indent = 0; indent < 6; indent++) {
        for (int words = 1; words < 60; words++) {
            struct hec_writer line = fresh(0), w = fresh(indent);
            hec_write(&line, "function(first");
            for (int i = 0; i < words; i++) hec_write(&line, i % 3 ? ", word%d" : " + (term%d", i);
            for (int i = 0; i < words; i += 3) hec_write(&line, ")");
            hec_write(&line, ");");
            hec_line(&w, "%s", line.text);
            size_t bytes = 0;
            for (const char *at = w.text; *at; at += strcspn(at, "\n") + 1) {
                assert_true(strcspn(at, "\n") <= HEC_COLUMNS);
            }
            for (const char *c = w.text; *c; c++) bytes += *c != ' ' && *c != '\n';
            size_t expected = 0;
            for (const char *c = line.text; *c; c++) expected += *c != ' ';
            assert_int_equal(bytes, expected); // Nothing is lost.
        }
    }
}

static void strings_stay_whole(void **state) {
    (void)state;
    struct hec_writer w = fresh(0);
    const char *text = "\"a, b, c // d, e + f, g, h, i, j, k, l, m, n, o, \\\\ \\\" p, q\\\\\"";
    hec_line(&w, "{%s, %s},", text, text);
    const char *second = strstr(w.text, "\n");
    assert_non_null(second);
    assert_memory_equal(w.text + 1, text, strlen(text));
    assert_memory_equal(second + 2, text, strlen(text)); // Behind one blank: below the brace.
}

static void comment_of_a_long_line_moves_above(void **state) {
    (void)state;
    struct hec_writer w = fresh(1);
    hec_line(&w, "float *a_name_that_is_rather_long_for_a_pointer = "
                 "m->a_group_with_a_long_name.and_a_member; // [batch, T, D]");
    assert_string_equal(w.text, "    // [batch, T, D]\n"
                                "    float *a_name_that_is_rather_long_for_a_pointer = "
                                "m->a_group_with_a_long_name.and_a_member;\n");
    // In models, too, a comma in a comment is no place to break a line.
    struct hec_writer model = fresh(0);
    hec_line(&model, "a_name_that_is_rather_long_for_a_value = rope(another_one_that_is_long)"
                     "  # rotated, and more, and more");
    assert_string_equal(model.text, "# rotated, and more, and more\n"
                                    "a_name_that_is_rather_long_for_a_value = "
                                    "rope(another_one_that_is_long)\n");
}

// A comment cannot swallow the next line, for any source line.
static void comments_end_with_their_line(void **state) {
    (void)state;
    struct hec_writer w = fresh(0);
    hec_comment(&w, "x = \"\\n\" \\ \\");
    hec_comment(&w, "a\nb\tc\x01");
    assert_string_equal(w.text, "// x = \"\\n\"\n// abc\n");

    struct hec_writer cut = fresh(1);
    char text[300];
    for (size_t i = 0; i + 2 < sizeof text; i += 2) memcpy(text + i, "\xc3\xa9", 3); // e acute
    hec_comment(&cut, "%s", text);
    assert_true(strlen(cut.text) <= HEC_COLUMNS + 1);
    const char *dots = strstr(cut.text, "...\n");
    assert_non_null(dots);
    assert_int_equal((unsigned char)dots[-1], 0xa9); // Whole characters only.
}

static void blank_lines_do_not_pile_up(void **state) {
    (void)state;
    struct hec_writer w = fresh(0);
    hec_blank(&w);
    hec_open(&w, "{");
    hec_blank(&w);
    hec_line(&w, "a;");
    hec_blank(&w);
    hec_blank(&w);
    hec_close(&w, "}");
    assert_string_equal(w.text, "{\n    a;\n\n}\n");
}

static void comments_align(void **state) {
    (void)state;
    struct hec_writer w = fresh(0);
    hec_line(&w, "a; // one");
    hec_line(&w, "\"b // b\"; // two");
    hec_line(&w, "c;");
    hec_line(&w, "d; // three");
    hec_align_comments(&w);
    assert_string_equal(w.text, "a;        // one\n\"b // b\"; // two\nc;\nd; // three\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_line_stays),
        cmocka_unit_test(call_breaks_between_arguments),
        cmocka_unit_test(no_line_is_too_long),
        cmocka_unit_test(strings_stay_whole),
        cmocka_unit_test(comment_of_a_long_line_moves_above),
        cmocka_unit_test(comments_end_with_their_line),
        cmocka_unit_test(blank_lines_do_not_pile_up),
        cmocka_unit_test(comments_align),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hec_arena_free(&arena);
    return failed;
}
