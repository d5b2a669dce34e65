// C identifiers from the names of a model.
#include "codegen/text/ident.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct hec_arena arena;

static const char *made(struct hec_idents *scope, const char *text) {
    return hec_ident(scope, mlirStringRefCreate(text, strlen(text)), "value");
}

static void plain_names_stay(void **state) {
    (void)state;
    struct hec_idents scope = {.arena = &arena};
    assert_string_equal(made(&scope, "logits"), "logits");
    assert_string_equal(made(&scope, "attention.wq"), "attention_wq");
    assert_string_equal(made(&scope, ""), "value");
    assert_string_equal(made(&scope, "2nd"), "n2nd");
}

static void equal_names_get_numbers(void **state) {
    (void)state;
    struct hec_idents scope = {.arena = &arena};
    assert_string_equal(made(&scope, "x"), "x");
    assert_string_equal(made(&scope, "x"), "x_2");
    assert_string_equal(made(&scope, "x_2"), "x_2_2");
    assert_string_equal(made(&scope, "x"), "x_3");
    assert_string_equal(made(&scope, "a.b"), "a_b");
    assert_string_equal(made(&scope, "a_b"), "a_b_2");
}

static void outer_names_are_not_hidden(void **state) {
    (void)state;
    struct hec_idents outer = {.arena = &arena};
    struct hec_idents inner = {.arena = &arena, .outer = &outer};
    made(&outer, "D");
    assert_string_equal(made(&inner, "D"), "D_2");
    assert_string_equal(made(&inner, "x"), "x");
    assert_string_equal(made(&outer, "x"), "x"); // The inner scope's names do not count outside.
}

static void words_of_c_are_avoided(void **state) {
    (void)state;
    static const char *const words[] = {"int",      "for",     "inline", "unix",   "NULL",
                                        "NAN",      "main",    "sqrtf",  "_x",     "hk_exp_f32",
                                        "HRT_FP32", "INT64_C", "true",   "typeof", "__x"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct hec_idents scope = {.arena = &arena};
        const char *name = made(&scope, words[i]);
        assert_string_not_equal(name, words[i]);
        assert_true(isalpha((unsigned char)*name));
    }
}

// Names of emitted functions end so; members of structs cannot clash with them.
static void function_names_are_kept_free(void **state) {
    (void)state;
    struct hec_idents scope = {.arena = &arena};
    struct hec_idents members = {.arena = &arena, .members = true};
    assert_string_equal(made(&scope, "attention_forward"), "attention_forward_");
    assert_string_equal(made(&members, "attention_forward"), "attention_forward");
}

// Names of a model of 20,000 lines that all set x, in no more time than it takes to write them.
static void many_names_of_one_kind_are_told_apart(void **state) {
    (void)state;
    enum { NAMES = 20000 };
    struct hec_arena own = {0};
    struct hec_idents scope = {.arena = &own};
    const char *last = NULL;
    for (int i = 0; i < NAMES; i++)
        last = hec_ident(&scope, mlirStringRefCreateFromCString("x"), "value");
    assert_string_equal(last, "x_20000");
    assert_string_equal(hec_ident(&scope, mlirStringRefCreateFromCString("x_3"), "value"), "x_3_2");
    hec_arena_free(&own);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_names_stay),
        cmocka_unit_test(equal_names_get_numbers),
        cmocka_unit_test(outer_names_are_not_hidden),
        cmocka_unit_test(words_of_c_are_avoided),
        cmocka_unit_test(function_names_are_kept_free),
        cmocka_unit_test(many_names_of_one_kind_are_told_apart),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hec_arena_free(&arena);
    return failed;
}
