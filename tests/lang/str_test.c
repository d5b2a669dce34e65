// Unit test of lang/base/str.c.
#include "lang/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void equal_text_is_one_pointer(void **state) {
    (void)state;
    struct hec_arena arena = {0};
    struct hec_names names = {.arena = &arena};
    const char *dim = hec_intern(&names, "Dim", 1);
    assert_string_equal(dim, "D");
    assert_ptr_equal(dim, hec_intern_text(&names, "D"));
    assert_ptr_not_equal(dim, hec_intern_text(&names, "DD"));
    assert_ptr_not_equal(dim, hec_intern_text(&names, ""));
    hec_arena_free(&arena);
}

static void pointers_survive_growth(void **state) {
    (void)state;
    struct hec_arena arena = {0};
    struct hec_names names = {.arena = &arena};
    const char *first[3000];
    for (int i = 0; i < 3000; i++)
        first[i] = hec_intern_text(&names, hec_arena_format(&arena, "n%d", i));
    assert_int_equal(names.count, 3000);
    for (int i = 0; i < 3000; i++)
        assert_ptr_equal(first[i], hec_intern_text(&names, hec_arena_format(&arena, "n%d", i)));
    assert_int_equal(names.count, 3000);
    hec_arena_free(&arena);
}

static void expect_closest(const char *word, const char *meant) {
    static const char *const known[] = {"rmsnorm", "rope", "steps", "tokens", "lr", "D"};
    const char *closest = hec_closest(word, known, 6);
    if (!meant)
        assert_null(closest);
    else
        assert_string_equal(closest, meant);
}

static void misspelt_words_are_recognised(void **state) {
    (void)state;
    expect_closest("rmsnrm", "rmsnorm");
    expect_closest("rmsnorn", "rmsnorm");
    expect_closest("setps", "steps"); // Two neighbours swapped are one slip.
    expect_closest("STEPS", "steps");
    expect_closest("lrr", "lr");
}

static void other_words_are_not(void **state) {
    (void)state;
    expect_closest("banana", NULL);
    expect_closest("E", NULL); // One letter for another says nothing.
    expect_closest("token_budget_per_step", NULL);
    char endless[200];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    expect_closest(endless, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_text_is_one_pointer),
        cmocka_unit_test(pointers_survive_growth),
        cmocka_unit_test(misspelt_words_are_recognised),
        cmocka_unit_test(other_words_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
