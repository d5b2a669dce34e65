// sdpa with bf16 products and its gradient against the definition with rounded operands. Weights and
// their gradients are rounded, too, as they come out of the computation: each moves by at most 2^-8 of
// itself.
#define SDPA hk_sdpa_bf16
#define SDPA_GRAD hk_sdpa_grad_bf16
#define WEIGHT_ROUNDING 0x1p-8
#define operand(x) ((wide)hk_bf16_float(hk_bf16_round(x)))

#include "tests/kernels/sdpa_case.h"

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_within_the_bound),
        cmocka_unit_test(extreme_sinks_take_all_or_nothing),
        cmocka_unit_test(large_scores_do_not_overflow),
        cmocka_unit_test(a_nan_in_a_key_shows),
        cmocka_unit_test(a_causal_row_does_not_depend_on_later_positions),
        cmocka_unit_test(gradients_are_within_the_bound),
    };
    return RUN_KERNEL_TESTS(tests);
}
