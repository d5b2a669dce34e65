// Unit test of runtime/params: the walk over tensors, names, the panel layout, initialization.
#include <math.h>
#include <omp.h>

#include "kernels/rope/rope.h"
#include "runtime/base/random.h"
#include "runtime/params/init.h"
#include "runtime/params/tensor.h"
#include "tests/runtime/support/case.h"

static void the_walk_visits_every_tensor_in_order(void **state) {
    (void)state;
    static const char *const expected[] = {
        "table",
        "gain",
        "rope_table",
        "layers.0.sparse.experts.0.bias",
        "layers.0.sparse.experts.1.bias",
        "layers.1.sparse.experts.0.bias",
        "layers.1.sparse.experts.1.bias",
    };
    struct hrt_tensor tensor = {0};
    int visited = 0;
    while (hrt_params_tensor_next(&bigram, &tensor)) {
        char path[HRT_PATH_MAX];
        hrt_params_tensor_path(&tensor, path);
        assert_true(visited < 7);
        assert_string_equal(path, expected[visited]);
        if (visited >= 3)
            assert_int_equal(tensor.offset, bigram.set[0].offset + (visited - 3) * 256);
        visited++;
    }
    assert_int_equal(visited, 7);
}

static void repeat_indices_follow_first_and_stride(void **state) {
    (void)state;
    const struct hrt_param param = {.path = "layers.{}.wq", .index_first = 3, .index_stride = 2};
    char path[HRT_PATH_MAX];
    hrt_params_tensor_path(&(struct hrt_tensor){.param = &param, .layer = 4}, path);
    assert_string_equal(path, "layers.11.wq");
}

static void a_path_that_is_too_long_is_cut(void **state) {
    (void)state;
    char longest[600], path[HRT_PATH_MAX];
    memset(longest, 'x', sizeof longest);
    memcpy(longest + HRT_PATH_MAX - 3, "{}{}", 4);
    longest[599] = '\0';
    const struct hrt_param param = {.path = longest, .index_first = 1234};
    hrt_params_tensor_path(&(struct hrt_tensor){.param = &param}, path);
    assert_int_equal(strlen(path), HRT_PATH_MAX - 1);
}

static void panels_hold_64_columns(void **state) {
    (void)state;
    const struct hrt_param param = {.layout = HRT_PANELS, .rows = 3, .columns = 70};
    assert_int_equal(hrt_params_stored_index(&param, 0), 0);
    assert_int_equal(hrt_params_stored_index(&param, 63), 63);
    assert_int_equal(hrt_params_stored_index(&param, 64), 3 * 64); // Row 0, second panel.
    assert_int_equal(hrt_params_stored_index(&param, 70), 64);     // Row 1, first panel.
    assert_int_equal(hrt_params_stored_index(&param, 2 * 70 + 69), 5 * 64 + 5);
}

static struct hrt_placement bigram_here = {.program = &bigram};

// Fills a buffer with the initial parameters of the bigram model.
static float *initialized(uint64_t seed) {
    float *params = calloc((size_t)bigram.param_elements, sizeof *params);
    assert_non_null(params);
    hrt_params_init(TEST_BUFFER(&bigram_here, params), seed);
    return params;
}

static void constants_and_rope_tables_are_filled_in(void **state) {
    (void)state;
    float *params = initialized(1), rope[16 * 4];
    for (int i = 0; i < 256; i++) assert_true(params[bigram.param[1].offset + i] == 1);
    for (int i = 0; i < 4 * 256; i++) assert_true(params[bigram.set[0].offset + i] == 0);
    hk_rope_table_f32(rope, 0, 16, 4, (struct hk_rope_rule){.theta = 10000});
    assert_memory_equal(params + bigram.param[2].offset, rope, sizeof rope);
    free(params);
}

static void normal_numbers_are_keyed_by_path_and_logical_element(void **state) {
    (void)state;
    float *params = initialized(5);
    const struct hrt_stream stream = hrt_stream_make(5, "init", "table");
    double squares = 0;
    for (int64_t i = 0; i < 256 * 256; i++) {
        double normal[4];
        hrt_draw_normals(stream, (uint64_t)i / 4, normal);
        const float got = params[hrt_params_stored_index(&bigram.param[0], i)];
        assert_true(got == (float)(0.02 * normal[i % 4]));
        squares += (double)got * (double)got;
    }
    assert_true(fabs(sqrt(squares) / 256 - 0.02) < 0.0003);
    free(params);
}

static void the_number_of_threads_changes_no_bit(void **state) {
    (void)state;
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    float *one = initialized(9);
    omp_set_num_threads(3);
    float *three = initialized(9);
    omp_set_num_threads(threads);
    assert_memory_equal(one, three, (size_t)bigram.param_elements * sizeof *one);
    free(one);
    free(three);
}

static void padding_stays_zero(void **state) {
    (void)state;
    const struct hrt_param param = {.symbol = "w",
                                    .path = "w",
                                    .rank = 2,
                                    .dim = {"A", "B"},
                                    .shape = {3, 70},
                                    .layers = 1,
                                    .index_first = -1,
                                    .init = HRT_INIT_NORMAL,
                                    .init_value = 1,
                                    .trainable = true,
                                    .layout = HRT_PANELS,
                                    .rows = 3,
                                    .columns = 70,
                                    .elements = 2 * 64 * 3,
                                    .set = -1};
    const struct hrt_program program = {.precision = HRT_FP32, .params = 1, .param = &param};
    float params[2 * 64 * 3] = {0};
    const struct hrt_placement here = {.program = &program};
    hrt_params_init(TEST_BUFFER(&here, params), 1);
    for (int row = 0; row < 3; row++) {
        for (int column = 0; column < 128; column++) {
            const float value = params[column / 64 * 192 + row * 64 + column % 64];
            assert_true((value != 0) == (column < 70));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_walk_visits_every_tensor_in_order),
        cmocka_unit_test(repeat_indices_follow_first_and_stride),
        cmocka_unit_test(a_path_that_is_too_long_is_cut),
        cmocka_unit_test(panels_hold_64_columns),
        cmocka_unit_test(constants_and_rope_tables_are_filled_in),
        cmocka_unit_test(normal_numbers_are_keyed_by_path_and_logical_element),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),
        cmocka_unit_test(padding_stays_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
