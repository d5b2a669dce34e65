// The chosen experts that a limit leaves.
#include "kernels/launchers.h"
#include "tests/kernels/kernel_case.h"

static void what_has_no_row_has_no_expert(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 300, 1025};
    for (int64_t c = 0; c < COUNT(counts); c++) {
        const int64_t count = counts[c], limited = count - count / 4;
        const int32_t *ids = test_ints(count, 9, 1);
        int32_t *slot = test_ints(count, 5, 2), *kept = test_ints(count + 1, 1, 0);
        for (int64_t p = 0; p < count; p++) slot[p]--;
        kept[count] = -7;
        HK_INTS(limit_ids, kept, ids, slot, limited, count);
        for (int64_t p = 0; p < count; p++)
            assert_int_equal(kept[p], p < limited && slot[p] >= 0 ? ids[p] : -1);
        assert_int_equal(kept[count], -7);
        test_free_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_has_no_row_has_no_expert)};
    return RUN_KERNEL_TESTS(tests);
}
