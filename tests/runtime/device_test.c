// Unit test of runtime/device, and of what the trainer does with memory that is not its own: the host, a device that is
// apart (support/apart.h), and where there is CUDA a GPU as the emulator of tests/simt has it. All of them do the same.
#include "runtime/device/device.h"
#include "runtime/train/create.h"

#include <jansson.h>
#include <math.h>

#include "runtime/base/random.h"
#include "runtime/params/init.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
#include "runtime/store/checkpoint.h"
#include "runtime/train/optimizer.h"
#include "tests/runtime/support/apart.h"
#include "tests/runtime/support/case.h"

#ifdef TEST_CUDA
static const struct hrt_device_backend *const backends[] = {&hrt_device_host, &hrt_device_cuda};
#else
static const struct hrt_device_backend *const backends[] = {&hrt_device_host, &test_device_apart};
#endif

enum { BACKENDS = sizeof backends / sizeof *backends, COUNT = 5000 };

static struct hrt_device opened(int backend) {
    struct hrt_device device;
    struct hrt_error error = {0};
    const struct hrt_program program = {.device = backends[backend]};
    assert_true(hrt_device_open(&device, &program, 0, &error));
    assert_true(device.name[0]);
    return device;
}

static struct hrt_placement placed(const struct hrt_program *program) {
    struct hrt_placement placement;
    struct hrt_error error = {0};
    assert_true(hrt_params_placement_create(&placement, program, 0, &error));
    return placement;
}

static int64_t waits_of(const struct hrt_device *device) {
    int64_t calls = 0;
    for (int i = 0; i < HRT_WHYS; i++) calls += device->wait[i].calls;
    return calls;
}

static void memory_is_zeroed_and_goes_to_and_fro(void **state) {
    (void)state;
    for (int b = 0; b < BACKENDS; b++) {
        struct hrt_device device = opened(b);
        int32_t here[COUNT];
        int32_t *there = device.backend->take(&device, HRT_OF_DEVICE, sizeof here, false);
        int32_t *both = device.backend->take(&device, HRT_OF_BOTH, sizeof here, true);
        assert_non_null(there);
        assert_non_null(both);
        assert_int_equal((uintptr_t)there % 256, 0);
        assert_int_equal((uintptr_t)both % 256, 0);
        hrt_device_read(&device, here, there, sizeof here, HRT_WHY_VALUES);
        for (int i = 0; i < COUNT; i++) assert_true(here[i] == 0 && both[i] == 0);
        for (int i = 0; i < COUNT; i++) here[i] = i;
        hrt_device_write(&device, there, here, sizeof here);
        for (int i = 0; i < COUNT; i++) here[i] = -1; // The write took the values of its call.
        hrt_device_read(&device, here, there, sizeof here, HRT_WHY_VALUES);
        for (int i = 0; i < COUNT; i++) assert_int_equal(here[i], i);
        hrt_device_read(&device, both, there + 7, sizeof *both, HRT_WHY_LOADS);
        assert_int_equal(both[0], 7);
        device.backend->give(&device, HRT_OF_DEVICE, there, sizeof here);
        device.backend->give(&device, HRT_OF_BOTH, both, sizeof here);
        device.backend->give(&device, HRT_OF_DEVICE, NULL, 0);
        hrt_device_close(&device);
    }
    assert_int_equal(test_apart_blocks(), 0);
}

static void waits_are_counted_by_purpose_where_there_are_any(void **state) {
    (void)state;
    for (int b = 0; b < BACKENDS; b++) {
        struct hrt_device device = opened(b);
        double value = 3, *there = device.backend->take(&device, HRT_OF_DEVICE, 8, false);
        hrt_device_write(&device, there, &value, sizeof value);
        const int64_t before = waits_of(&device);
        hrt_device_read(&device, &value, there, sizeof value, HRT_WHY_LOSSES);
        hrt_device_join(&device, HRT_WHY_BATCH);
        hrt_device_join(&device, HRT_WHY_BATCH);
        assert_int_equal(before, 0);
        assert_int_equal(waits_of(&device), hrt_device_is_apart(&device) ? 3 : 0);
        if (hrt_device_is_apart(&device)) {
            assert_string_equal(device.wait[0].why, "losses");
            assert_int_equal(device.wait[0].calls, 1);
            assert_int_equal(device.wait[1].calls, 2);
            assert_true(device.wait[1].ns > 0);
        }
        device.backend->give(&device, HRT_OF_DEVICE, there, 8);
        hrt_device_close(&device);
    }
}

static void memory_that_is_not_there_is_refused(void **state) {
    (void)state;
    struct hrt_program program = bigram;
    struct hrt_placement placement = placed(&program);
    for (int b = 0; b < BACKENDS; b++) {
        struct hrt_device device = opened(b);
        size_t left = 0, all = 0;
        device.backend->room(&device, &left, &all);
        assert_true(left > 0 && left <= all);
        hrt_device_close(&device);
        struct hrt_state none;
        struct hrt_error error = {0};
        program.device = backends[b];
        program.arena_bytes = (size_t)1 << 60;
        assert_false(hrt_train_state_create(&none, &placement, NULL, HRT_BY_ADAMW, &error));
        assert_int_equal(error.code, HRT_EXIT_FAILED);
        assert_non_null(strstr(error.text, "not enough memory"));
        if (b == 0) {
            assert_non_null(strstr(error.text, "the arena's values need"));
            continue;
        }
        assert_non_null(strstr(error.text, "are free: parameters"));
        assert_non_null(strstr(error.text, "AdamW states"));
        assert_non_null(strstr(error.text, "arena 1048576.0 TiB"));
        assert_non_null(strstr(error.text, "parallel.microbatch=N, now"));
        assert_non_null(strstr(error.text, "train.precision=bf16"));
        error = (struct hrt_error){0};
        program.arena_bytes = bigram.arena_bytes; // One that fits.
        assert_true(hrt_train_state_create(&none, &placement, NULL, HRT_BY_ADAMW, &error));
        hrt_train_state_destroy(&none);
    }
    hrt_params_placement_destroy(&placement);
    assert_int_equal(test_apart_blocks(), 0);
}

// ---- memory in parts

enum { MIB = 1 << 20 };

static int64_t mib_left(struct hrt_device *device) {
    size_t left, all;
    device->backend->room(device, &left, &all);
    return (int64_t)(left / MIB);
}

static int byte_at(struct hrt_device *device, const char *at) {
    char byte;
    hrt_device_read(device, &byte, at, 1, HRT_WHY_VALUES);
    return byte;
}

// Pages of 2 MiB stand where somebody has touched and not left; they are zeroed, and nothing else takes memory.
static void pages_come_and_go_with_their_users(void **state) {
    (void)state;
    for (int b = 0; b < BACKENDS; b++) {
        struct hrt_device device = opened(b);
        const bool counts = device.backend->page_bytes;
        const int64_t left = mib_left(&device);
        char *at = device.backend->take(&device, HRT_IN_PARTS, 100 * (size_t)MIB, true), one = 1;
        assert_non_null(at);
        if (counts) assert_int_equal(mib_left(&device), left);
        assert_true(hrt_device_touch(&device, at + MIB, 2 * MIB, HRT_AT_DEVICE)); // Pages 0 and 1.
        assert_true(hrt_device_touch(&device, at + 3 * MIB, 2 * MIB, HRT_AT_DEVICE)); // 1 and 2.
        if (counts) assert_int_equal(mib_left(&device), left - 6);
        assert_int_equal(byte_at(&device, at + MIB), 0);
        assert_int_equal(byte_at(&device, at + 5 * MIB - 1), 0);
        hrt_device_write(&device, at + 3 * MIB, &one, 1);
        hrt_device_write(&device, at + 3 * MIB - 1, &one, 1);
        hrt_device_leave(&device, at + MIB, 2 * MIB);
        if (counts) assert_int_equal(mib_left(&device), left - 4);
        assert_int_equal(byte_at(&device, at + 3 * MIB), 1);
        assert_true(hrt_device_touch(&device, at + MIB, 2 * MIB,
                                     HRT_AT_DEVICE)); // Zeroed, but for what is another's.
        if (counts) assert_int_equal(byte_at(&device, at + 3 * MIB - 1), 0);
        assert_int_equal(byte_at(&device, at + 3 * MIB), 1);
        hrt_device_leave(&device, at + 3 * MIB, 2 * MIB);
        hrt_device_leave(&device, at + MIB, 2 * MIB);
        if (counts) assert_int_equal(mib_left(&device), left);
        assert_true(hrt_device_touch(&device, at, 100 * (size_t)MIB, HRT_AT_DEVICE));
        device.backend->give(&device, HRT_IN_PARTS, at, 100 * (size_t)MIB); // With what stands.
        if (counts) assert_int_equal(mib_left(&device), left);
        hrt_device_close(&device);
    }
    assert_int_equal(test_apart_blocks(), 0);
}

// The device works on them, and loses no memory of its own.
static void pages_of_the_host_are_none_of_the_device(void **state) {
    (void)state;
    for (int b = 0; b < BACKENDS; b++) {
        struct hrt_device device = opened(b);
        const int64_t left = mib_left(&device);
        char *at = device.backend->take(&device, HRT_IN_PARTS, 100 * (size_t)MIB, true);
        char one = 1;
        assert_non_null(at);
        assert_true(hrt_device_touch(&device, at + MIB, 4 * MIB, HRT_AT_HOST));
        assert_int_equal(byte_at(&device, at + 5 * MIB - 1), 0);
        hrt_device_write(&device, at + 2 * MIB, &one, 1);
        assert_int_equal(byte_at(&device, at + 2 * MIB), 1);
        if (device.backend->page_bytes) assert_int_equal(mib_left(&device), left);
        hrt_device_leave(&device, at + MIB, 4 * MIB);
        device.backend->give(&device, HRT_IN_PARTS, at, 100 * (size_t)MIB);
        hrt_device_close(&device);
    }
    assert_int_equal(test_apart_blocks(), 0);
}

// A copy of bytes in both is cut between them, as the emulator demands. A page stays where its first touch has put it.
static void pages_of_both_homes_stand_side_by_side(void **state) {
    (void)state;
    for (int b = 0; b < BACKENDS; b++) {
        struct hrt_device device = opened(b);
        const int64_t left = mib_left(&device);
        const size_t bytes = 8 * (size_t)MIB;
        char *at = device.backend->take(&device, HRT_IN_PARTS, bytes, true);
        char *values = malloc(bytes), *read = malloc(bytes);
        assert_true(at && values && read);
        for (size_t i = 0; i < bytes; i++) values[i] = (char)(i % 251);
        assert_true(hrt_device_touch(&device, at + 3 * MIB, MIB / 2, HRT_AT_DEVICE)); // Page 1.
        assert_true(hrt_device_touch(&device, at, bytes, HRT_AT_HOST));
        hrt_device_leave(&device, at + 3 * MIB, MIB / 2);
        if (device.backend->page_bytes) assert_int_equal(mib_left(&device), left - 2);
        hrt_device_write(&device, at, values, bytes);
        hrt_device_read(&device, read, at, bytes, HRT_WHY_VALUES);
        assert_memory_equal(values, read, bytes);
        hrt_device_leave(&device, at, bytes);
        if (device.backend->page_bytes) assert_int_equal(mib_left(&device), left);
        device.backend->give(&device, HRT_IN_PARTS, at, bytes);
        free(values);
        free(read);
        hrt_device_close(&device);
    }
    assert_int_equal(test_apart_blocks(), 0);
}

static void pages_that_are_too_many_leave_all_as_it_was(void **state) {
    (void)state;
    for (int b = 0; b < BACKENDS; b++) {
        struct hrt_device device = opened(b);
        const int64_t left = mib_left(&device);
        const size_t all = (size_t)(left + 4) * MIB;
        if (device.backend->page_bytes) {
            char *at = device.backend->take(&device, HRT_IN_PARTS, all, true);
            assert_non_null(at);
            assert_true(hrt_device_touch(&device, at, MIB, HRT_AT_DEVICE));
            assert_false(hrt_device_touch(&device, at, all, HRT_AT_DEVICE));
            assert_int_equal(mib_left(&device), left - 2);
            hrt_device_leave(&device, at, MIB);
            assert_int_equal(mib_left(&device), left);
            device.backend->give(&device, HRT_IN_PARTS, at, all);
        }
        hrt_device_close(&device);
    }
}

// ---- the trainer's part

// All values of a kind; for store, or free.
static float *fetch(struct hrt_state *state, enum hrt_values values) {
    const size_t bytes = hrt_params_state_bytes(state->program);
    float *copy = malloc(bytes);
    assert_non_null(copy);
    hrt_device_read(&state->device, copy, state->values[values], bytes, HRT_WHY_VALUES);
    return copy;
}

static void store(struct hrt_state *state, enum hrt_values values, float *copy) {
    hrt_device_write(&state->device, state->values[values], copy,
                     hrt_params_state_bytes(state->program));
    free(copy);
}

static void set_gradients(struct hrt_state *state) {
    const struct hrt_stream stream = hrt_stream_make(1, "test", "gradients");
    float *grads = fetch(state, HRT_GRADIENTS);
    for (int64_t i = 0; i < bigram.param_elements; i++)
        grads[i] = (float)hrt_draw_uniform(stream, (uint64_t)i) - 0.5f;
    store(state, HRT_GRADIENTS, grads);
}

// A step, clipped to 1. Returns the norm.
static double take_step(struct hrt_state *state, const struct hrt_optimizer *optimizer, int step) {
    const struct hrt_config config = {.train_optimizer_betas = {0.9, 0.99},
                                      .train_optimizer_eps = 1e-8,
                                      .train_optimizer_decay = 0.1};
    if (!state->clipped) {
        const double norm = hrt_train_grad_norm(state);
        hrt_train_optimizer_step(optimizer, state, &config, step, 0.01, hk_clip_scale(1, norm));
        return norm;
    }
    struct hk_clipped clipped;
    struct hrt_graph squares = {0};
    hrt_train_grad_clip(state, &squares, NULL, 0, 1, 1);
    hrt_train_optimizer_step(optimizer, state, &config, step, 0.01, 1);
    hrt_device_read(&state->device, &clipped, state->clipped, sizeof clipped, HRT_WHY_VALUES);
    return clipped.norm;
}

// Devices have matrices by rows.
static struct hrt_program bigram_on(const struct hrt_device_backend *backend) {
    static struct hrt_param param[8];
    struct hrt_program program = bigram;
    assert_true(program.params <= 8);
    for (int i = 0; i < program.params; i++) {
        param[i] = bigram.param[i];
        param[i].layout = HRT_ROWS;
    }
    program.param = param;
    program.device = backend;
    program.device_offset = program.model_bytes;
    program.lane_offset = program.model_bytes + sizeof(void *);
    program.model_bytes += 2 * sizeof(void *);
    return program;
}

// Trained parameters have none.
static void expect_no_gradients(struct hrt_state *state) {
    struct hrt_tensor tensor = {0};
    float *grads = fetch(state, HRT_GRADIENTS);
    while (hrt_params_tensor_next(state->program, &tensor)) {
        for (int64_t i = 0; tensor.param->trainable && i < tensor.param->elements; i++)
            assert_true(grads[tensor.offset + i] == 0);
    }
    free(grads);
}

static void spoil_a_gradient(struct hrt_state *state) {
    float *grads = fetch(state, HRT_GRADIENTS);
    for (int64_t i = 0; i < bigram.param_elements; i++) grads[i] = 1;
    grads[bigram.param_elements / 2] = NAN;
    store(state, HRT_GRADIENTS, grads);
}

// Three steps on a device, and with `spoilt` one more behind the first, which is skipped; `params` [elements] are the parameters
// behind them. Returns the last norm.
static double train_on(const struct hrt_device_backend *backend, bool spoilt, float *params) {
    const struct hrt_program program = bigram_on(backend);
    struct hrt_placement placement = placed(&program);
    struct hrt_state state;
    struct hrt_optimizer optimizer;
    struct hrt_error error = {0};
    double norm = 0;
    assert_true(hrt_train_state_create(&state, &placement, NULL, HRT_BY_ADAMW, &error));
    assert_true(hrt_train_optimizer_create(&optimizer, &placement, &error));
    const struct hrt_buffer values = hrt_params_state_buffer(&state, HRT_PARAMETERS);
    hrt_params_init(&values, 1);
    for (int step = 0; step < 3; step++) {
        set_gradients(&state);
        norm = take_step(&state, &optimizer, step);
        if (!spoilt || step > 0) continue;
        spoil_a_gradient(&state);
        assert_true(isnan(take_step(&state, &optimizer, step)));
        expect_no_gradients(&state);
    }
    hrt_device_read(&state.device, params, state.values[HRT_PARAMETERS],
                    (size_t)bigram.param_elements * sizeof *params, HRT_WHY_VALUES);
    hrt_train_optimizer_destroy(&optimizer);
    hrt_train_state_destroy(&state);
    hrt_params_placement_destroy(&placement);
    return norm;
}

static void a_step_is_the_same_wherever_memory_is(void **state) {
    (void)state;
    const size_t bytes = (size_t)bigram.param_elements * sizeof(float);
    float *host = malloc(bytes), *other = malloc(bytes);
    assert_true(host && other);
    const double norm = train_on(backends[0], false, host);
    for (int b = 1; b < BACKENDS; b++) {
        const bool same = backends[b] == &test_device_apart; // The same kernels.
        const double apart = train_on(backends[b], false, other);
        assert_true(same ? apart == norm : fabs(apart - norm) <= 1e-6 * norm);
        for (int64_t i = 0; i < bigram.param_elements; i++)
            assert_true(same ? other[i] == host[i] : fabsf(other[i] - host[i]) <= 1e-6f);
    }
    free(host);
    free(other);
    assert_int_equal(test_apart_blocks(), 0);
}

static void a_step_that_is_not_finite_is_skipped(void **state) {
    (void)state;
    const size_t bytes = (size_t)bigram.param_elements * sizeof(float);
    float *without = malloc(bytes), *with = malloc(bytes);
    assert_true(without && with);
    for (int b = 1; b < BACKENDS; b++) { // On the host it is the trainer who skips.
        const double norm = train_on(backends[b], false, without);
        assert_true(train_on(backends[b], true, with) == norm);
        assert_memory_equal(with, without, bytes);
    }
    free(without);
    free(with);
}

// The element that a test stores, for each kind of values another one.
static float number_at(int values, int64_t element) {
    return (float)(100000 * values + element + 1) / 7;
}

// Whether values of a kind are kept: of parameters all but rope tables, of states those that are trained.
static bool is_kept(const struct hrt_tensor *tensor, int values) {
    return tensor->param->init != HRT_INIT_ROPE && (values < HRT_MEANS || tensor->param->trainable);
}

// Stores the numbers of all values, or checks that they are there.
static void visit(struct hrt_state *state, bool checks) {
    for (int values = 0; values < HRT_VALUES; values++) {
        struct hrt_tensor tensor = {0};
        if (values == HRT_GRADIENTS) continue;
        float *at = fetch(state, (enum hrt_values)values);
        while (hrt_params_tensor_next(state->program, &tensor)) {
            for (int64_t i = 0; i < hrt_params_size(tensor.param); i++) {
                const int64_t element = tensor.offset + hrt_params_stored_index(tensor.param, i);
                if (!is_kept(&tensor, values)) continue;
                if (checks)
                    assert_true(at[element] == number_at(values, element));
                else
                    at[element] = number_at(values, element);
            }
        }
        if (checks)
            free(at);
        else
            store(state, (enum hrt_values)values, at);
    }
}

static void a_checkpoint_of_any_device_loads_into_any(void **state) {
    (void)state;
    const struct hrt_checkpoints to = {.dir = "ck", .keep = 1, .lock = -1};
    struct hrt_error error = {0};
    struct hrt_comm self;
    hrt_net_comm_open_self(&self);
    assert_int_equal(system("mkdir ck"), 0);
    for (int pair = 0; pair < BACKENDS * BACKENDS; pair++) {
        const struct hrt_program from = bigram_on(backends[pair / BACKENDS]);
        const struct hrt_program into = bigram_on(backends[pair % BACKENDS]);
        struct hrt_placement there = placed(&from), here = placed(&into);
        struct hrt_state saved, loaded;
        struct hrt_checkpoint checkpoint;
        json_t *facts = json_pack("{s:i}", "pair", pair);
        assert_true(hrt_train_state_create(&saved, &there, NULL, HRT_BY_ADAMW, &error));
        visit(&saved, false);
        struct hrt_saving *saving;
        assert_true(hrt_store_checkpoint_begin(&saving, &to, &saved, pair + 1, facts,
                                               (struct hrt_whole_file){0}, &error));
        assert_true(hrt_store_checkpoint_finish(saving, &error));
        json_decref(facts);
        hrt_train_state_destroy(&saved);
        assert_true(hrt_train_state_create(&loaded, &here, NULL, HRT_BY_ADAMW, &error));
        assert_true(hrt_store_checkpoint_find(&checkpoint, "ck", "test", &self, &error));
        assert_int_equal(checkpoint.step, pair + 1);
        assert_int_equal(json_integer_value(json_object_get(checkpoint.facts, "pair")), pair);
        assert_true(hrt_store_checkpoint_load(&checkpoint, &loaded, &error));
        visit(&loaded, true);
        hrt_store_checkpoint_free(&checkpoint);
        hrt_train_state_destroy(&loaded);
        hrt_params_placement_destroy(&there);
        hrt_params_placement_destroy(&here);
    }
    assert_int_equal(test_apart_blocks(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_goes_to_and_fro),
        cmocka_unit_test(waits_are_counted_by_purpose_where_there_are_any),
        cmocka_unit_test(memory_that_is_not_there_is_refused),
        cmocka_unit_test(pages_come_and_go_with_their_users),
        cmocka_unit_test(pages_of_the_host_are_none_of_the_device),
        cmocka_unit_test(pages_of_both_homes_stand_side_by_side),
        cmocka_unit_test(pages_that_are_too_many_leave_all_as_it_was),
        cmocka_unit_test(a_step_is_the_same_wherever_memory_is),
        cmocka_unit_test(a_step_that_is_not_finite_is_skipped),
        cmocka_unit_test(a_checkpoint_of_any_device_loads_into_any),
    };
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
