// Unit test of lang/base/diag.c and source.c. The looks are tested by rendering.test.
#include "lang/base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct hec_arena arena;
    struct hec_sources sources;
    const struct hec_source *source;
    struct hec_diag diag;
    char *printed;
    size_t bytes;
};

static void set_up(struct fixture *f, const char *text) {
    *f = (struct fixture){.sources = {.arena = &f->arena}};
    f->source = hec_source_add(&f->sources, "a.moe", text, strlen(text));
    f->diag.out = open_memstream(&f->printed, &f->bytes);
    assert_non_null(f->diag.out);
}

static struct hec_span at(const struct fixture *f, uint32_t line, uint32_t column,
                          uint32_t length) {
    return (struct hec_span){f->source, line, column, length};
}

static void expect_and_tear_down(struct fixture *f, const char *expected) {
    hec_diag_flush(&f->diag);
    fclose(f->diag.out);
    assert_string_equal(f->printed, expected);
    free(f->printed);
    hec_diag_free(&f->diag);
    hec_arena_free(&f->arena);
}

static void a_range_ends_with_its_line(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, "use fnn\nnext");
    hec_diag_report(&f.diag, HEC_ERROR, at(&f, 1, 5, 1000), "unknown layer `%s`", "fnn");
    expect_and_tear_down(&f, "a.moe:1:5: error: unknown layer `fnn`\nuse fnn\n    ^~~\n"
                             "1 error generated.\n");
}

static void a_place_past_the_end_still_prints(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, "use");
    hec_diag_report(&f.diag, HEC_ERROR, at(&f, 9, 4, 1), "late");
    expect_and_tear_down(&f, "a.moe:9:4: error: late\n\n^\n1 error generated.\n");
}

static void complaints_come_in_the_order_of_the_source(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, "one\ntwo\n");
    hec_diag_report(&f.diag, HEC_ERROR, at(&f, 2, 1, 1), "second");
    hec_diag_detail(&f.diag, "detail of second");
    hec_diag_report(&f.diag, HEC_WARNING, at(&f, 1, 2, 1), "first");
    hec_diag_report(&f.diag, HEC_NOTE, at(&f, 2, 3, 1), "note of first");
    expect_and_tear_down(&f, "a.moe:1:2: warning: first\none\n ^\n"
                             "a.moe:2:3: note: note of first\ntwo\n  ^\n"
                             "a.moe:2:1: error: second\ntwo\n^\n  detail of second\n"
                             "1 warning and 1 error generated.\n");
}

static void the_same_complaint_is_made_once(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, "one");
    for (int i = 0; i < 3; i++) {
        hec_diag_report(&f.diag, HEC_ERROR, at(&f, 1, 1, 3), "same");
        hec_diag_report(&f.diag, HEC_NOTE, HEC_NOWHERE, "its note");
    }
    assert_int_equal(f.diag.errors, 1);
    assert_int_equal(f.diag.raised, 3);
    expect_and_tear_down(&f, "a.moe:1:1: error: same\none\n^~~\n  note: its note\n"
                             "1 error generated.\n");
}

static void strict_makes_warnings_errors_and_quiet_drops_them(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, "one");
    f.diag.quiet = true;
    hec_diag_report(&f.diag, HEC_WARNING, at(&f, 1, 1, 1), "dropped");
    hec_diag_detail(&f.diag, "dropped, too");
    assert_int_equal(f.diag.warnings, 0);
    f.diag.strict = true;
    hec_diag_report(&f.diag, HEC_WARNING, at(&f, 1, 1, 1), "kept");
    assert_int_equal(f.diag.errors, 1);
    expect_and_tear_down(&f, "a.moe:1:1: error: kept\none\n^\n1 error generated.\n");
}

static void spans_join_and_give_their_text(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, "a = b + c\nd\n");
    const struct hec_span joined = hec_span_join(at(&f, 1, 5, 1), at(&f, 1, 9, 1));
    assert_string_equal(hec_span_text(&f.arena, joined), "b + c");
    const struct hec_span over = hec_span_join(at(&f, 1, 5, 1), at(&f, 2, 1, 1));
    assert_string_equal(hec_span_text(&f.arena, over), "b + c");
    assert_string_equal(hec_span_text(&f.arena, hec_span_after(joined)), "");
    expect_and_tear_down(&f, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_ends_with_its_line),
        cmocka_unit_test(a_place_past_the_end_still_prints),
        cmocka_unit_test(complaints_come_in_the_order_of_the_source),
        cmocka_unit_test(the_same_complaint_is_made_once),
        cmocka_unit_test(strict_makes_warnings_errors_and_quiet_drops_them),
        cmocka_unit_test(spans_join_and_give_their_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
