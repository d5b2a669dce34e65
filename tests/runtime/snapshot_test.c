// Unit test of runtime/params/snapshot: reads give the values from before, while other threads change them.
#include <pthread.h>
#include <unistd.h>

#include "runtime/params/snapshot.h"
#include "tests/runtime/support/apart.h"
#include "tests/runtime/support/case.h"

enum { TENSORS = 6, ELEMENTS = 100, BUFFERS = 2, ALL = TENSORS * ELEMENTS };

static const struct hrt_param param = {.path = "p.{}",
                                       .rank = 1,
                                       .shape = {ELEMENTS},
                                       .rows = 1,
                                       .columns = ELEMENTS,
                                       .elements = ELEMENTS,
                                       .layers = TENSORS};
static const struct hrt_program program = {.precision = HRT_FP32};
static const struct hrt_placement here = {.program = &program};
static float buffer[BUFFERS][ALL];

static float value_of(int which, int at) {
    return (float)(which * ALL + at);
}

// The reader takes tensors in another order than they lie.
static struct hrt_tensor tensor_of(int number) {
    const int64_t layer = TENSORS - 1 - number % TENSORS;
    return (struct hrt_tensor){.param = &param, .layer = layer, .offset = layer * ELEMENTS};
}

static struct hrt_snapshot *take(struct hrt_copies *copies) {
    struct hrt_snapshot *snapshot = hrt_params_snapshot_create(&program, copies);
    assert_non_null(snapshot);
    for (int which = 0; which < BUFFERS; which++) {
        for (int at = 0; at < ALL; at++) buffer[which][at] = value_of(which, at);
    }
    for (int number = 0; number < BUFFERS * TENSORS; number++) {
        const struct hrt_tensor tensor = tensor_of(number);
        assert_true(hrt_params_snapshot_add(snapshot, TEST_BUFFER(&here, buffer[number / TENSORS]),
                                            &tensor));
    }
    assert_int_equal(hrt_params_snapshot_slices(snapshot), BUFFERS * TENSORS);
    assert_true(hrt_params_snapshot_seal(snapshot));
    return snapshot;
}

static void change(struct hrt_snapshot *snapshot, int64_t offset, int64_t count) {
    hrt_params_snapshot_change(snapshot, offset, count);
    for (int which = 0; which < BUFFERS; which++) {
        for (int64_t at = offset; at < offset + count; at++) buffer[which][at] = -1;
    }
}

// How many of the elements are not those of before.
static int wrong(struct hrt_snapshot *snapshot, int number, int first, int count) {
    float element[ELEMENTS];
    int found = 0;
    assert_true(hrt_params_snapshot_read(snapshot, (size_t)number, first, count, element));
    for (int i = 0; i < count; i++)
        found +=
            element[i] != value_of(number / TENSORS, (int)tensor_of(number).offset + first + i);
    return found;
}

static void what_changes_is_copied_first(void **state) {
    (void)state;
    struct hrt_copies *copies = hrt_params_copies_create(1 << 20);
    struct hrt_snapshot *snapshot = take(copies);
    assert_int_equal(wrong(snapshot, 0, 0, 40), 0);
    change(snapshot, 3 * ELEMENTS - 1, 2); // The end of one tensor, and the begin of the next.
    change(snapshot, 0, ALL);
    change(snapshot, 0, ALL); // Once more: there is nothing left to copy.
    assert_int_equal(wrong(snapshot, 0, 40, 60), 0);
    for (int number = 1; number < BUFFERS * TENSORS; number++)
        assert_int_equal(wrong(snapshot, number, 0, ELEMENTS), 0);
    hrt_params_snapshot_destroy(snapshot);
    hrt_params_copies_destroy(copies);
}

struct reading {
    struct hrt_snapshot *snapshot;
    int wrong, first, end; // Numbers of tensors.
};

static void *read_all(void *context) {
    struct reading *reading = context;
    for (int number = reading->first; number < reading->end; number++) {
        usleep(2000);
        reading->wrong += wrong(reading->snapshot, number, 0, ELEMENTS / 2);
        usleep(2000);
        reading->wrong += wrong(reading->snapshot, number, ELEMENTS / 2, ELEMENTS / 2);
        hrt_params_snapshot_pass(reading->snapshot, (size_t)number);
    }
    return NULL;
}

// Too little room for all, or for any: who changes them waits.
static void copies_take_no_more_than_their_room(void **state) {
    (void)state;
    for (size_t tensors = 0; tensors < 4; tensors++) {
        struct hrt_copies *copies =
            hrt_params_copies_create(tensors * (ELEMENTS * sizeof(float) + 128));
        struct reading reading = {take(copies), 0, 0, BUFFERS * TENSORS};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, read_all, &reading), 0);
        for (int64_t at = 0; at < TENSORS; at += 2) change(reading.snapshot, at * ELEMENTS, 200);
        pthread_join(thread, NULL);
        assert_int_equal(reading.wrong, 0);
        hrt_params_snapshot_destroy(reading.snapshot);
        hrt_params_copies_destroy(copies);
    }
}

// Adds the tensors of both buffers, which are on a device one after the other.
static struct hrt_snapshot *take_apart(struct hrt_copies *copies, float *values,
                                       struct hrt_staging *staging) {
    struct hrt_snapshot *snapshot = hrt_params_snapshot_create(&program, copies);
    assert_non_null(snapshot);
    for (int which = 0; which < BUFFERS; which++) {
        for (int at = 0; at < ALL; at++) buffer[which][at] = value_of(which, at);
    }
    hrt_device_write(staging->device, values, buffer, sizeof buffer);
    for (int number = 0; number < BUFFERS * TENSORS; number++) {
        const struct hrt_buffer of = {.placement = &here,
                                      .values = values + (ptrdiff_t)(number / TENSORS) * ALL,
                                      .staging = staging};
        const struct hrt_tensor tensor = tensor_of(number);
        assert_true(hrt_params_snapshot_add(snapshot, &of, &tensor));
    }
    assert_true(hrt_params_snapshot_seal(snapshot));
    return snapshot;
}

// Values of a device come before the first change, also where copies have little room.
static void a_device_keeps_what_was_there_before(void **state) {
    (void)state;
    const struct hrt_program on = {.device = &test_device_apart};
    const size_t room = ELEMENTS * sizeof(float);
    struct hrt_device device;
    struct hrt_error error = {0};
    assert_true(hrt_device_open(&device, &on, 0, &error));
    struct hrt_staging staging = {&device, device.backend->take(&device, HRT_OF_BOTH, 1024, false),
                                  1024, 0};
    float *values = device.backend->take(&device, HRT_OF_DEVICE, sizeof buffer, false);
    assert_true(staging.base && values);
    for (size_t tensors = 0; tensors < 4; tensors++) {
        struct hrt_copies *copies = hrt_params_copies_create(tensors * (room + 128));
        struct hrt_snapshot *snapshot = take_apart(copies, values, &staging);
        struct reading reading[BUFFERS];
        pthread_t thread[BUFFERS];
        assert_int_equal(hrt_params_snapshot_slices(snapshot), BUFFERS * TENSORS);
        for (int i = 0; i < BUFFERS; i++) {
            reading[i] = (struct reading){snapshot, 0, i * TENSORS, (i + 1) * TENSORS};
            assert_int_equal(pthread_create(&thread[i], NULL, read_all, &reading[i]), 0);
        }
        hrt_params_snapshot_bring(snapshot, false);
        hrt_params_snapshot_change(snapshot, 0, 1);
        memset(buffer, 0, sizeof buffer);
        hrt_device_write(&device, values, buffer, sizeof buffer);
        hrt_params_snapshot_bring(snapshot, true);
        for (int i = 0; i < BUFFERS; i++) {
            pthread_join(thread[i], NULL);
            assert_int_equal(reading[i].wrong, 0);
        }
        hrt_params_snapshot_destroy(snapshot);
        hrt_params_copies_destroy(copies);
    }
    device.backend->give(&device, HRT_OF_BOTH, staging.base, 1024);
    device.backend->give(&device, HRT_OF_DEVICE, values, sizeof buffer);
    hrt_device_close(&device);
}

static void nobody_waits_for_what_is_not_needed(void **state) {
    (void)state;
    struct hrt_snapshot *snapshot = take(NULL);
    for (int number = 0; number < BUFFERS * TENSORS; number++) {
        if (tensor_of(number).layer == 1) hrt_params_snapshot_pass(snapshot, (size_t)number);
    }
    change(snapshot, ELEMENTS, ELEMENTS);
    for (int number = 0; number < BUFFERS * TENSORS; number++) // The reader has given up.
        hrt_params_snapshot_pass(snapshot, (size_t)number);
    change(snapshot, 0, ALL);
    hrt_params_snapshot_destroy(snapshot);
    hrt_params_snapshot_change(NULL, 0, ALL);
}

// Copies come and go in order, or not quite; each keeps what was written to it, and all room is found again.
static void room_of_copies_goes_around(void **state) {
    (void)state;
    enum { ROOM = 1 << 14, AT_ONCE = 5 };
    struct hrt_copies *copies = hrt_params_copies_create(ROOM);
    unsigned char *taken[AT_ONCE] = {0};
    size_t bytes[AT_ONCE] = {0};
    unsigned random = 1, took = 0;
    for (int round = 0; round < 20000; round++) {
        random = random * 1664525 + 1013904223;
        const int at = round % 7 == 0 ? (int)(random >> 16) % AT_ONCE : round % AT_ONCE;
        for (size_t i = 0; i < bytes[at]; i++) assert_int_equal(taken[at][i], at);
        if (taken[at]) hrt_params_copies_give(copies, taken[at]);
        bytes[at] = 1 + (random >> 8) % 4000;
        taken[at] = hrt_params_copies_take(copies, bytes[at]);
        if (!taken[at]) bytes[at] = 0;
        for (size_t i = 0; i < bytes[at]; i++) taken[at][i] = (unsigned char)at;
        took += taken[at] != NULL;
    }
    assert_true(took > 15000); // Two of three fit, at least.
    for (int at = 0; at < AT_ONCE; at++) {
        if (taken[at]) hrt_params_copies_give(copies, taken[at]);
    }
    void *all = hrt_params_copies_take(copies, ROOM - 64);
    assert_non_null(all);
    assert_null(hrt_params_copies_take(copies, 1));
    hrt_params_copies_destroy(copies);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_is_copied_first),
        cmocka_unit_test(copies_take_no_more_than_their_room),
        cmocka_unit_test(a_device_keeps_what_was_there_before),
        cmocka_unit_test(nobody_waits_for_what_is_not_needed),
        cmocka_unit_test(room_of_copies_goes_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
