// The sum of many arrays by one launch: the bits of additions one by one, and nothing beside it changes.
#include "kernels/cuda/terms.h"

#include "kernels/bf16.h"
#include "tests/kernels/kernel_case.h"

enum { ROOM = 5000 };

static float number_of(const struct hkc_term *term, int64_t i) {
    return term->narrow ? hk_bf16_float(((const hk_bf16 *)term->from)[i])
                        : ((const float *)term->from)[i];
}

// Arrays begin `shift` elements behind a multiple of 16 bytes; every `each`-th is of bf16, 0: none.
static void check(int terms, int64_t count, int64_t shift, int each, bool adds) {
    struct hkc_term term[HKC_TERMS_MOST];
    real *to = test_reals(ROOM, 1), *want = test_copy(to, ROOM);
    for (int t = 0; t < terms; t++) {
        real *from = test_reals(ROOM, (uint64_t)t + 500);
        hk_bf16 *narrow = (hk_bf16 *)test_reals(ROOM, 2);
        for (int64_t i = 0; i < ROOM; i++) narrow[i] = hk_bf16_round(from[i]);
        term[t].narrow = each && t % each == each - 1;
        term[t].from =
            term[t].narrow ? (const void *)(narrow + shift) : (const void *)(from + shift);
    }
    for (int64_t i = 0; i < count; i++) {
        float sum = adds ? want[shift + i] : number_of(&term[0], i);
        for (int t = adds ? 0 : 1; t < terms; t++) sum += number_of(&term[t], i);
        want[shift + i] = sum;
    }
    hkc_sum_terms(test_lane(), to + shift, adds, term, terms, count);
    memset(term, 0, sizeof term); // It has been read.
    test_join("terms");
    assert_same_bits("sum", to, want, ROOM);
    test_free_all();
}

static void sums_are_those_of_additions_one_by_one(void **state) {
    (void)state;
    static const int64_t counts[] = {1, 7, 8, 13, 4096, 4099};
    static const int64_t shifts[] = {0, 1, 4, 8}; // 4: floats are in whole vectors, bf16 are not.
    for (size_t i = 0; i < COUNT(counts) * COUNT(shifts); i++) {
        const int64_t count = counts[i / COUNT(shifts)], shift = shifts[i % COUNT(shifts)];
        check(1, count, shift, 0, false);
        check(2, count, shift, 2, true);
        check(5, count, shift, 2, false);
    }
}

static void as_many_as_a_launch_takes(void **state) {
    (void)state;
    check(HKC_TERMS_MOST, 100, 0, 3, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_those_of_additions_one_by_one),
                                       cmocka_unit_test(as_many_as_a_launch_takes)};
    return RUN_KERNEL_TESTS(tests);
}
