// Unit test of lang/base/arena.c, vec.c: one function per promise.
#include "lang/base/arena.h"
#include "lang/base/vec.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void memory_is_zeroed_and_aligned(void **state) {
    (void)state;
    struct hec_arena arena = {0};
    for (size_t bytes = 1; bytes < 200000; bytes = bytes * 3 + 1) {
        unsigned char *memory = hec_arena_alloc(&arena, bytes, 1);
        assert_int_equal((uintptr_t)memory % alignof(max_align_t), 0);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(memory[i], 0);
        memset(memory, 0xAB, bytes); // Must not show up in what is handed out next.
    }
    hec_arena_free(&arena);
}

static void objects_do_not_overlap(void **state) {
    (void)state;
    struct hec_arena arena = {0};
    enum { COUNT = 5000 };
    static uint64_t *object[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        object[i] = hec_arena_alloc(&arena, 5, sizeof(uint64_t));
        for (int j = 0; j < 5; j++) object[i][j] = i;
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        for (int j = 0; j < 5; j++) assert_int_equal(object[i][j], i);
    }
    hec_arena_free(&arena);
}

static void a_freed_arena_can_be_used_again(void **state) {
    (void)state;
    struct hec_arena arena = {0};
    hec_arena_copy(&arena, "abc", 3);
    hec_arena_free(&arena);
    assert_null(arena.newest);
    assert_string_equal(hec_arena_copy(&arena, "abcdef", 3), "abc");
    assert_string_equal(hec_arena_format(&arena, "%d-%s", 7, "x"), "7-x");
    hec_arena_free(&arena);
}

static void a_vector_keeps_what_is_pushed(void **state) {
    (void)state;
    struct hec_arena arena = {0};
    HEC_VEC(int) numbers = {0};
    for (int i = 0; i < 1000; i++) HEC_PUSH(&arena, &numbers, i * i);
    assert_int_equal(numbers.count, 1000);
    for (int i = 0; i < 1000; i++) assert_int_equal(numbers.item[i], i * i);
    hec_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(objects_do_not_overlap),
        cmocka_unit_test(a_freed_arena_can_be_used_again),
        cmocka_unit_test(a_vector_keeps_what_is_pushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
