// select_bias: biases move against the load, one rate at a time, and only those of the router's experts.
#include "kernels/select_bias/select_bias.h"

#include "kernels/clip/clip.h"
#include "tests/kernels/kernel_case.h"

enum { LAYERS = 3 };

static const int64_t experts_of[] = {1, 4, 33, 300};

static void biases_move_against_the_load(void **state) {
    (void)state;
    struct hk_clipped *stopped = (struct hk_clipped *)test_doubles(4);
    for (int64_t s = 0; s < COUNT(experts_of); s++) {
        const int64_t experts = experts_of[s], stride = experts + 5, count = LAYERS * experts;
        int64_t *counts = (int64_t *)test_doubles(count);
        for (int iteration = 0; iteration < 3; iteration++) {
            const int32_t *loads = test_ints(LAYERS * stride, 9, (uint64_t)iteration + 1);
            HK_INTS(add_counts, counts, loads, LAYERS, experts, stride,
                    iteration ? HK_ADD : HK_STORE);
        }
        const int32_t *a = test_ints(LAYERS * stride, 9, 1), *b = test_ints(LAYERS * stride, 9, 2),
                      *c = test_ints(LAYERS * stride, 9, 3);
        real *bias = test_reals((LAYERS - 1) * stride + experts, 4);
        const real *before = test_copy(bias, (LAYERS - 1) * stride + experts);
        *stopped = (struct hk_clipped){.stopped = HK_STEP_SKIPPED};
        HK(select_bias, bias, counts, LAYERS, experts, stride, 0.25, stopped);
        assert_same_bits("stopped", before, bias, (LAYERS - 1) * stride + experts);
        *stopped = (struct hk_clipped){0};
        HK(select_bias, bias, counts, LAYERS, experts, stride, 0.25, stopped);
        for (int64_t at = 0; at < (LAYERS - 1) * stride + experts; at++) {
            const int64_t layer = at / stride, e = at % stride;
            int64_t sum = 0;
            if (e >= experts) { // Between layers.
                assert_true(bias[at] == before[at]);
                continue;
            }
            for (int64_t i = 0; i < experts; i++) {
                const int64_t load = layer * stride + i;
                assert_int_equal(counts[layer * experts + i], a[load] + b[load] + c[load]);
                sum += counts[layer * experts + i];
            }
            const int64_t own = counts[layer * experts + e] * experts;
            const double move = own > sum ? -0.25 : own < sum ? 0.25 : 0;
            assert_true(bias[at] == (real)((double)before[at] + move));
        }
    }
    test_free_all();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(biases_move_against_the_load)};
    return RUN_KERNEL_TESTS(tests);
}
