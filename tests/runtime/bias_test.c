// The update of selection biases, on two layers of four experts.
#include "runtime/train/bias.h"

#include "tests/runtime/support/case.h"

enum { LAYERS = 2, EXPERTS = 4, PADDING = 16 };

static const struct hrt_set set = {
    .name = "s", .experts = EXPERTS, .topk = 1, .layers = LAYERS, .chunk_elements = 1};
static const struct hrt_param param = {.symbol = "s.select_bias",
                                       .layers = LAYERS,
                                       .rows = 1,
                                       .columns = EXPERTS,
                                       .elements = PADDING,
                                       .set = -1,
                                       .offset = 3};

static void check(int select_bias, const double (*expected)[EXPERTS]) {
    const struct hrt_loads load = {.select_bias = select_bias, .bias_rate = 0.25};
    const struct hrt_program program = {.precision = HRT_FP64,
                                        .params = 1,
                                        .param = &param,
                                        .sets = 1,
                                        .set = &set,
                                        .loads = 1,
                                        .load = &load};
    double params[3 + LAYERS * PADDING] = {0};
    params[3] = 1;
    struct hrt_state state = {.program = &program, .values = {params}};
    int64_t count[LAYERS * EXPERTS] = {9, 5, 2, 4, 7, 7, 7, 7}; // Means 5 and 7.
    const struct hrt_load_counts loads = {
        .program = &program, .count = count, .counts = LAYERS * EXPERTS};
    hrt_train_bias_update(&state, &loads);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (int e = 0; e < EXPERTS; e++) {
            assert_true(params[3 + layer * PADDING + e] == expected[layer][e]);
        }
    }
    assert_true(params[0] == 0 && params[3 + EXPERTS] == 0);
}

static void the_busy_lose_and_the_idle_win(void **state) {
    (void)state;
    const double moved[LAYERS][EXPERTS] = {{0.75, 0, 0.25, 0.25}, {0, 0, 0, 0}};
    check(0, moved);
}

static void without_a_rate_nothing_moves(void **state) {
    (void)state;
    const double kept[LAYERS][EXPERTS] = {{1, 0, 0, 0}, {0, 0, 0, 0}};
    check(-1, kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_busy_lose_and_the_idle_win),
        cmocka_unit_test(without_a_rate_nothing_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
