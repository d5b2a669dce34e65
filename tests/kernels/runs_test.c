// runs: the list in a window of an order, and its beginning.
#include "kernels/runs/runs.h"

#include "tests/kernels/kernel_case.h"

enum { SPREAD = 20000 };

// Runs of 0 to `longest` numbers, whose places follow each other, in `peers` orders one behind the other.
static struct hk_run *draw_runs(int64_t runs, int64_t peers, int32_t longest, int32_t *numbers) {
    struct hk_run *run = test_array(runs, sizeof *run);
    const int32_t *count = test_ints(runs, longest + 1, 3);
    int32_t at = 0, from = 0;
    for (int64_t r = 0; r < runs; r++) {
        if (r % ((runs + peers - 1) / peers) == 0) at = 5; // The rows of others come first.
        run[r] = (struct hk_run){at, from, count[r]};
        at += count[r];
        from += count[r];
    }
    *numbers = from;
    return run;
}

static void check(int64_t runs, int64_t peers, int32_t longest, int64_t begin, int64_t end) {
    int32_t numbers, at = 0;
    const struct hk_run *run = draw_runs(runs, peers, longest, &numbers);
    const int32_t *map = test_ints(numbers, SPREAD, 4);
    int32_t *number = test_ints(numbers + 1, 1, 0), *mapped = test_ints(numbers + 1, 1, 0);
    number[numbers] = mapped[numbers] = -7;
    HK_INTS(list_runs, number, mapped, map, run, runs, begin, end, 2);
    for (int64_t r = 0; r < runs; r++) {
        for (int32_t i = 0; i < run[r].count; i++) {
            if (run[r].at + i < begin || run[r].at + i >= end) continue;
            assert_int_equal(number[at], run[r].from + i - 2);
            assert_int_equal(mapped[at++], map[run[r].from + i]);
        }
    }
    for (int32_t i = at; i < numbers; i++) assert_int_equal(number[i], 0);
    assert_int_equal(number[numbers], -7);
    assert_int_equal(mapped[numbers], -7);
    HK_INTS(list_runs, mapped, NULL, NULL, run, runs, begin, end, 0);
    for (int32_t i = 0; i < at; i++) assert_int_equal(mapped[i], number[i] + 2);
    test_free_all();
}

static void windows_list_what_lies_in_them(void **state) {
    (void)state;
    static const int64_t window[][2] = {{0, INT32_MAX}, {0, 5}, {0, 17}, {17, 300}, {299, 300}};
    for (int64_t w = 0; w < COUNT(window); w++) {
        check(0, 1, 0, window[w][0], window[w][1]);
        check(1, 1, 0, window[w][0], window[w][1]);
        check(9, 3, 40, window[w][0], window[w][1]);
    }
    check(150, 4, 3, 17, 80); // More than a block has threads.
    check(2, 2, 900, 17, 700);
    check(4500, 3, 4, 17, 1000); // A block has more of them than threads.
}

static void starts_are_clipped_to_the_window(void **state) {
    (void)state;
    enum { STARTS = 300 };
    int32_t *start = test_ints(STARTS, 1, 0), *first = test_ints(STARTS + 1, 1, 0);
    first[STARTS] = -7;
    for (int32_t i = 0; i < STARTS; i++) start[i] = 3 * i;
    HK_INTS(clip_starts, first, start, STARTS, 100, 400);
    for (int32_t i = 0; i < STARTS; i++)
        assert_int_equal(first[i], 3 * i < 100 ? 0 : 3 * i > 400 ? 300 : 3 * i - 100);
    assert_int_equal(first[STARTS], -7);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_list_what_lies_in_them),
        cmocka_unit_test(starts_are_clipped_to_the_window),
    };
    return RUN_KERNEL_TESTS(tests);
}
