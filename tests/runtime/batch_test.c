// Copies and sums of a list that a device is asked for at once: those that may be done in any order, on the emulator.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/bf16.h"
#include "runtime/device/device.h"
#include "runtime/net/device_step.h"
#include "runtime/program.h"

static struct hrt_device device;

static int open_device(void **state) {
    (void)state;
    const struct hrt_program program = {.device = &hrt_device_cuda};
    struct hrt_error error = {0};
    return hrt_device_open(&device, &program, 0, &error) ? 0 : 1;
}

static int close_device(void **state) {
    (void)state;
    hrt_device_close(&device);
    return 0;
}

enum { FLOATS = 1024 };

static struct hrt_step step_of(enum hrt_step_kind kind, float *to, const float *from, int floats) {
    return (struct hrt_step){.kind = kind,
                             .type = HRT_FLOAT,
                             .to = to,
                             .from = from,
                             .bytes = (size_t)floats * sizeof *to};
}

// Asks for the step; then so many wait for others.
static void gather(struct hrt_net_batch *batch, struct hrt_step step, int waiting) {
    assert_int_equal(hrt_net_device_gather(batch, &step), cudaSuccess);
    assert_int_equal(batch->count, waiting);
}

static void steps_that_need_no_other_are_asked_for_together(void **state) {
    (void)state;
    float seen[FLOATS];
    float *at = device.backend->take(&device, HRT_OF_DEVICE, sizeof seen, false);
    for (int i = 0; i < FLOATS; i++) seen[i] = (float)i;
    hrt_device_write(&device, at, seen, sizeof seen);
    struct hrt_net_batch batch = {.lane = device.lane};
    gather(&batch, step_of(HRT_COPY, at + 100, at, 10), 1);
    gather(&batch, step_of(HRT_COPY, at + 110, at + 20, 10), 2);
    gather(&batch, step_of(HRT_COPY, at + 120, at + 105, 10),
           1);                                                   // Reads what the first ones write.
    gather(&batch, step_of(HRT_COPY, at + 108, at + 30, 10), 1); // Writes what that reads.
    gather(&batch, step_of(HRT_ADD, at + 200, at + 30, 10), 1);  // Another kind.
    gather(&batch, step_of(HRT_ADD, at + 205, at + 40, 10), 1);  // Adds to the same.
    assert_int_equal(hrt_net_device_flush(&batch), cudaSuccess);
    assert_int_equal(batch.count, 0);
    float want[FLOATS];
    for (int i = 0; i < FLOATS; i++) want[i] = (float)i;
    for (int i = 0; i < 10; i++) want[100 + i] = (float)i, want[110 + i] = (float)(20 + i);
    for (int i = 0; i < 10; i++) want[120 + i] = want[105 + i];
    for (int i = 0; i < 10; i++) want[108 + i] = (float)(30 + i);
    for (int i = 0; i < 10; i++) want[200 + i] += (float)(30 + i);
    for (int i = 0; i < 10; i++) want[205 + i] += (float)(40 + i);
    hrt_device_read(&device, seen, at, sizeof seen, HRT_WHY_VALUES);
    assert_memory_equal(seen, want, sizeof seen);
    device.backend->give(&device, HRT_OF_DEVICE, at, sizeof seen);
}

// A copy and additions to its place, as of messages, some of them in bf16; then additions to what is there.
static void additions_to_one_place_are_asked_for_together(void **state) {
    (void)state;
    float seen[FLOATS], want[FLOATS];
    hk_bf16 *narrow = (hk_bf16 *)(seen + 500);
    float *at = device.backend->take(&device, HRT_OF_DEVICE, sizeof seen, false);
    for (int i = 0; i < FLOATS; i++) seen[i] = 1.0f / (float)(i + 1);
    for (int i = 0; i < 10; i++) narrow[i] = hk_bf16_round((float)i / 3);
    memcpy(want, seen, sizeof seen);
    hrt_device_write(&device, at, seen, sizeof seen);
    struct hrt_net_batch batch = {.lane = device.lane};
    struct hrt_step half = step_of(HRT_ADD_NARROW, at + 100, at + 500, 5);
    gather(&batch, step_of(HRT_COPY, at + 100, at, 10), 1);
    gather(&batch, half, 2);
    gather(&batch, step_of(HRT_ADD, at + 100, at + 20, 10), 3);
    gather(&batch, step_of(HRT_ADD, at + 100, at + 40, 9), 1); // Another length.
    half.to = at + 200;
    gather(&batch, half, 1);
    gather(&batch, step_of(HRT_ADD, at + 200, at + 60, 10), 2);
    gather(&batch, step_of(HRT_COPY, at + 300, at + 80, 10), 1); // Elsewhere.
    assert_int_equal(hrt_net_device_flush(&batch), cudaSuccess);
    for (int i = 0; i < 10; i++) want[100 + i] = want[i] + hk_bf16_float(narrow[i]) + want[20 + i];
    for (int i = 0; i < 9; i++) want[100 + i] += want[40 + i];
    for (int i = 0; i < 10; i++)
        want[200 + i] = want[200 + i] + hk_bf16_float(narrow[i]) + want[60 + i];
    memcpy(want + 300, want + 80, 10 * sizeof *want);
    hrt_device_read(&device, seen, at, sizeof seen, HRT_WHY_VALUES);
    assert_memory_equal(seen, want, sizeof seen);
    device.backend->give(&device, HRT_OF_DEVICE, at, sizeof seen);
}

static void a_batch_has_room_for_so_many(void **state) {
    (void)state;
    float *at = device.backend->take(&device, HRT_OF_DEVICE, FLOATS * sizeof *at, false);
    struct hrt_net_batch batch = {.lane = device.lane};
    for (int i = 0; i < HKC_PIECES_MOST; i++)
        gather(&batch, step_of(HRT_COPY, at + 4 * i, at + 4 * i + 2, 1), i + 1);
    gather(&batch, step_of(HRT_COPY, at + 4 * HKC_PIECES_MOST, at, 1), 1);
    assert_int_equal(hrt_net_device_flush(&batch), cudaSuccess);
    device.backend->give(&device, HRT_OF_DEVICE, at, FLOATS * sizeof *at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_that_need_no_other_are_asked_for_together,
                                        open_device, close_device),
        cmocka_unit_test_setup_teardown(additions_to_one_place_are_asked_for_together, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(a_batch_has_room_for_so_many, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
