// Matrices from rows to panels and back.
#include "kernels/matmul/matmul.h"

#include "tests/kernels/weights.h"

static void panels_hold_the_matrix_and_zeros(void **state) {
    (void)state;
    const int64_t k = 5, n = 130;
    real *rows = test_reals(k * n, 1), *back = test_nans(k * n);
    real *panels = test_nans(hk_panels_size(k, n));
    HK(panels_pack, panels, rows, k, n);
    assert_int_equal(hk_panels_size(k, n), 3 * 64 * k);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = 0; j < 192; j++) {
            assert_true(panels[weights_at(HK_PANELS, k, n, i, j)] == (j < n ? rows[i * n + j] : 0));
        }
    }
    HK(panels_unpack, back, panels, k, n);
    assert_same_bits("unpack", back, rows, k * n);
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(panels_hold_the_matrix_and_zeros)};
    return RUN_KERNEL_TESTS(tests);
}
