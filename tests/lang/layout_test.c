// Unit test of lang/layout.c: where statements end.
#include "lang/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// The tokens of `text` as they stand there, separated by blanks; a `;` nobody wrote is "¶".
static void expect_tokens(const char *text, const char *expected) {
    struct hec_arena arena = {0};
    struct hec_names names = {.arena = &arena};
    struct hec_sources sources = {.arena = &arena};
    struct hec_diag diag = {.out = stderr};
    struct hec_scan scan = {.arena = &arena, .names = &names, .diag = &diag};
    hec_scan_open(&scan, hec_source_add(&sources, "a.moe", text, strlen(text)), 0);
    const char *tokens = "";
    for (struct hec_token t = hec_scan_token(&scan); t.kind; t = hec_scan_token(&scan)) {
        const char *word = t.automatic ? "¶" : hec_span_text(&arena, t.at);
        tokens = hec_arena_format(&arena, "%s%s%s", tokens, *tokens ? " " : "", word);
    }
    hec_scan_close(&scan);
    assert_string_equal(tokens, expected);
    hec_diag_free(&diag);
    hec_arena_free(&arena);
}

static void a_newline_ends_what_can_end(void **state) {
    (void)state;
    expect_tokens("x = a\ny = 1\n", "x = a ¶ y = 1 ¶");
    expect_tokens("x = a +\n b\n\n\n", "x = a + b ¶");
    expect_tokens("x = f(a) # why\ny", "x = f ( a ) ¶ y ¶");
    expect_tokens("a = 1; b = 2", "a = 1 ; b = 2 ¶");
    expect_tokens("t { a = true, b = \"s\" }", "t { a = true , b = \"s\" ¶ }");
}

static void brackets_span_lines(void **state) {
    (void)state;
    expect_tokens("x = f(\n a,\n b = [1,\n 2]\n)\n", "x = f ( a , b = [ 1 , 2 ] ) ¶");
    expect_tokens("x = (a\n + b)", "x = ( a + b ) ¶");
}

static void a_lost_bracket_ends_with_its_statement(void **state) {
    (void)state;
    expect_tokens("param w[D, H\nreturn x", "param w [ D , H ¶ return x ¶");
    expect_tokens("x = f(a\ny = 2\n", "x = f ( a ¶ y = 2 ¶");
    expect_tokens("x = f(a {\ny = 2\n}", "x = f ( a { y = 2 ¶ }");
}

static void else_goes_on_behind_a_brace(void **state) {
    (void)state;
    expect_tokens("if a { b = 1 }\nelse { }", "if a { b = 1 ¶ } else { }");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newline_ends_what_can_end),
        cmocka_unit_test(brackets_span_lines),
        cmocka_unit_test(a_lost_bracket_ends_with_its_statement),
        cmocka_unit_test(else_goes_on_behind_a_brace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
