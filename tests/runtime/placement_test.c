// Unit test of runtime/params: the ranks' tensors together are all of the parameters, each owned expert once,
// in any layout and with any cut into pieces.
#include "runtime/params/part.h"
#include "runtime/params/placement.h"
#include "runtime/params/tensor.h"
#include "tests/runtime/support/case.h"

enum { RANKS = 3, EXPERTS = 5, LAYERS = 2, ROWS = 3, COLUMNS = 70, PANELS = 2 * 64 * ROWS };
enum { PLAIN = 6, SET_OFFSET = 16, W2_OFFSET = PANELS, CHUNK = PANELS + 12 };
enum { ELEMENTS = SET_OFFSET + LAYERS * EXPERTS * CHUNK, PIECE = 7 };

static const struct hrt_param param[] = {
    {.path = "plain", .layers = 2, .rows = 2, .columns = 3, .elements = 8, .set = -1},
    {.path = "e.{}.{e}.w1",
     .layers = LAYERS,
     .layout = HRT_PANELS,
     .rows = ROWS,
     .columns = COLUMNS,
     .elements = PANELS},
    {.path = "e.{}.{e}.w2",
     .layers = LAYERS,
     .rows = 2,
     .columns = 5,
     .elements = 10,
     .offset = W2_OFFSET},
};
static const int32_t first_owner[LAYERS * EXPERTS] = {2, 0, 0, 1, 2, 1, 1, 0, 2, 0};
static const struct hrt_set set = {
    .name = "e",
    .experts = EXPERTS,
    .layers = LAYERS,
    .offset = SET_OFFSET,
    .chunk_elements = CHUNK,
    .owner = first_owner,
};
static const struct hrt_program program = {
    .precision = HRT_FP32,
    .params = 3,
    .param = param,
    .sets = 1,
    .set = &set,
    .param_elements = ELEMENTS,
    .world = RANKS,
    .owned = true,
};

// Adds 1 to all elements that the rank holds, in pieces.
static void count_rank(const struct hrt_placement *placement, float *visits) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next_here(placement, &tensor)) {
        const int64_t size = hrt_params_size(tensor.param);
        const struct hrt_params_part here =
            hrt_params_part(&program, &tensor, HRT_PARAMETERS, placement->rank);
        for (int64_t first = 0; first < size; first += PIECE) {
            const int64_t left = size - first, count = left < PIECE ? left : PIECE;
            float piece[PIECE];
            hrt_params_tensor_read(&program, visits, tensor.param, &here, first, count, piece);
            for (int64_t i = 0; i < count; i++) piece[i] += 1;
            hrt_params_tensor_write(&program, visits, tensor.param, &here, first, count, piece);
        }
    }
}

// The visits that the layouts imply, worked out apart from the code under test.
static float expected_visits(int64_t at) {
    if (at < SET_OFFSET) return at % 8 < PLAIN ? RANKS : 0;
    const int64_t in_chunk = (at - SET_OFFSET) % CHUNK;
    if (in_chunk >= W2_OFFSET) return in_chunk < W2_OFFSET + 10 ? 1 : 0;
    return in_chunk / (64 * ROWS) * 64 + in_chunk % 64 < COLUMNS ? 1 : 0;
}

static void check_visits(const int32_t *owner) {
    static float visits[ELEMENTS];
    struct hrt_error error = {0};
    memset(visits, 0, sizeof visits);
    for (int rank = 0; rank < RANKS; rank++) {
        struct hrt_placement placement;
        assert_true(hrt_params_placement_create(&placement, &program, rank, &error));
        memcpy(placement.owner[0], owner, sizeof first_owner);
        count_rank(&placement, visits);
        hrt_params_placement_destroy(&placement);
    }
    for (int64_t at = 0; at < ELEMENTS; at++) assert_true(visits[at] == expected_visits(at));
}

static void every_element_is_reached_once(void **state) {
    (void)state;
    check_visits(first_owner);
}

static void owners_may_change(void **state) {
    (void)state;
    const int32_t later[LAYERS * EXPERTS] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 2};
    check_visits(later);
}

static void first_owners_are_the_programs(void **state) {
    (void)state;
    struct hrt_placement placement;
    struct hrt_error error = {0};
    assert_true(hrt_params_placement_create(&placement, &program, 1, &error));
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        for (int64_t expert = 0; expert < EXPERTS; expert++) {
            const int32_t owner = first_owner[layer * EXPERTS + expert];
            const struct hrt_tensor tensor =
                hrt_params_tensor_at(&program, &param[1], layer, expert);
            assert_int_equal(hrt_params_owner(&placement, 0, layer, expert), owner);
            assert_int_equal(hrt_params_tensor_rank(&placement, &tensor), owner);
            assert_true(hrt_params_owns(&placement, 0, layer, expert) == (owner == 1));
        }
    }
    // The fullest rank has 4 chunks.
    const int64_t chunks = 4 * program.set[0].chunk_elements,
                  others = hpl_held_bytes(&placement.held, HPL_PARAMETERS) / 4 - chunks;
    assert_int_equal(others, program.param[0].layers * program.param[0].elements);
    hrt_params_placement_destroy(&placement);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_reached_once),
        cmocka_unit_test(owners_may_change),
        cmocka_unit_test(first_owners_are_the_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
