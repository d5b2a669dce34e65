// Numbers that go along with a launch, and numbers that lie apart.
#include "kernels/cuda/store.h"

#include "tests/kernels/kernel_case.h"

static void words_are_stored(void **state) {
    (void)state;
    for (int words = 0; words <= HKC_STORE_MOST; words++) {
        int32_t from[HKC_STORE_MOST];
        int32_t *to = test_ints(words + 1, 1, 0);
        for (int i = 0; i < HKC_STORE_MOST; i++) from[i] = 100 + i;
        to[words] = -7;
        hkc_store(test_lane(), to, from, words);
        memset(from, 0, sizeof from); // It has been read.
        test_join("store");
        for (int i = 0; i < words; i++) assert_int_equal(to[i], 100 + i);
        assert_int_equal(to[words], -7);
        test_free_all();
    }
}

static void numbers_are_collected(void **state) {
    (void)state;
    for (int count = 0; count <= HKC_COLLECT_MOST; count++) {
        const float *from[HKC_COLLECT_MOST] = {0};
        real *to = test_reals(count + 1, 1);
        const real behind = to[count];
        for (int i = 0; i < count; i++)
            from[i] = (const float *)test_reals(3, (uint64_t)i + 2) + i % 3;
        hkc_collect(test_lane(), (float *)to, from, count);
        test_join("collect");
        for (int i = 0; i < count; i++) assert_true((float)to[i] == *from[i]);
        assert_true(to[count] == behind);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_stored),
                                       cmocka_unit_test(numbers_are_collected)};
    return RUN_KERNEL_TESTS(tests);
}
