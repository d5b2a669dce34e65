// Unit test of runtime/params/slice: each element passes the staging buffer once and comes to its place, and
// initialization through it has the bits that it has without.
#include "runtime/params/slice.h"

#include "runtime/params/init.h"
#include "tests/runtime/support/apart.h"
#include "tests/runtime/support/case.h"

enum { STAGING = 1 << 14, ROOM = STAGING / sizeof(float), MOST = 1 << 16, BEFORE = 5 };

static struct hrt_device device;
static struct hrt_staging staging;
static float *values; // [MOST] on the device.

// A matrix [rows, columns] in a program of its own.
struct matrix {
    struct hrt_param param;
    struct hrt_program program;
    struct hrt_placement placement;
    struct hrt_tensor tensor;
    struct hrt_buffer buffer;
};

static void open_matrix(struct matrix *m, int64_t rows, int64_t columns) {
    *m = (struct matrix){.param = {.rank = 2,
                                   .shape = {rows, columns},
                                   .layout = HRT_ROWS,
                                   .rows = rows,
                                   .columns = columns,
                                   .elements = rows * columns,
                                   .layers = 1}};
    m->program = (struct hrt_program){.precision = HRT_FP32, .params = 1, .param = &m->param};
    m->placement.program = &m->program;
    m->tensor = (struct hrt_tensor){.param = &m->param, .offset = BEFORE};
    m->buffer =
        (struct hrt_buffer){.placement = &m->placement, .values = values, .staging = &staging};
    assert_true(BEFORE + rows * columns < MOST);
}

static void set_all(float value) {
    float *all = malloc(MOST * sizeof *all);
    assert_non_null(all);
    for (int i = 0; i < MOST; i++) all[i] = value;
    hrt_device_write(&device, values, all, MOST * sizeof *all);
    free(all);
}

static float *read_all(void) {
    float *all = malloc(MOST * sizeof *all);
    assert_non_null(all);
    hrt_device_read(&device, all, values, MOST * sizeof *all, HRT_WHY_VALUES);
    return all;
}

// Sets or checks the elements of the tensor in a slice. Returns how many.
static int64_t pass(const struct matrix *m, const struct hrt_slice *slice, bool checks) {
    assert_true((const char *)slice->at >= (const char *)staging.base);
    assert_true((const char *)slice->at + slice->runs * slice->run * 4 <=
                (const char *)staging.base + staging.bytes);
    for (int64_t r = 0; r < slice->runs; r++) {
        for (int64_t i = 0; i < slice->run; i++) {
            const int64_t number = slice->first + r * slice->pitch + i;
            float element = (float)number;
            if (checks) {
                hrt_params_slice_read(&m->program, slice, number, 1, &element);
                assert_true(element == (float)number);
            } else {
                hrt_params_slice_write(&m->program, slice, number, 1, &element);
            }
        }
    }
    return slice->runs * slice->run;
}

static void every_element_passes_once(void **state) {
    (void)state;
    static const int64_t shape[][2] = {{1, 1},    {3, 5},     {64, 64},   {1, ROOM},
                                       {1, 9001}, {9001, 1},  {300, 70},  {70, 300},
                                       {1000, 7}, {ROOM, 15}, {15, ROOM}, {129, 500}};
    for (size_t s = 0; s < 2 * sizeof shape / sizeof *shape; s++) {
        struct matrix m;
        open_matrix(&m, shape[s / 2][0], shape[s / 2][1]);
        const int64_t size = m.param.elements;
        const int64_t by_columns = s % 2 && m.param.rows <= ROOM ? m.param.columns : 0;
        int64_t filled = 0, visited = 0;
        struct hrt_slice out = {.tensor = m.tensor, .columns = by_columns}, in = out;
        set_all(-1);
        while (hrt_params_slice_fill(&m.buffer, &out)) filled += pass(&m, &out, false);
        hrt_params_staging_reset(&m.buffer);
        float *all = read_all();
        for (int64_t i = 0; i < MOST; i++) {
            const int64_t number = i - BEFORE;
            assert_true(all[i] == (number >= 0 && number < size ? (float)number : -1));
        }
        free(all);
        while (hrt_params_slice_visit(&m.buffer, &in)) visited += pass(&m, &in, true);
        assert_int_equal(filled, size);
        assert_int_equal(visited, size);
    }
}

// Slices of many tensors may be under way together; each finds room, or all are waited for.
static void slices_under_way_keep_their_elements(void **state) {
    (void)state;
    struct matrix m;
    open_matrix(&m, 50, 20);
    set_all(-1);
    for (int n = 0; n < 20; n++) {
        struct hrt_slice slice = {.tensor = {.param = &m.param, .offset = n * m.param.elements}};
        while (hrt_params_slice_fill(&m.buffer, &slice)) pass(&m, &slice, false);
    }
    hrt_params_staging_reset(&m.buffer);
    float *all = read_all();
    for (int i = 0; i < 20 * m.param.elements; i++)
        assert_true(all[i] == (float)(i % m.param.elements));
    free(all);
}

// Each of three ranks fills whole slices and keeps its part; the parts of a slice lie one behind the other.
static void ranks_keep_their_parts(void **state) {
    (void)state;
    static const int64_t shape[][2] = {{1, 1}, {3, 5}, {1, 9001}, {300, 70}, {70, 300}, {129, 500}};
    for (size_t s = 0; s < 6 * sizeof shape / sizeof *shape; s++) {
        const int rank = (int)(s % 3);
        struct matrix m;
        open_matrix(&m, shape[s / 6][0], shape[s / 6][1]);
        m.param.set = -1;
        m.param.trainable = true;
        m.program.dense = HRT_DENSE_SHARD;
        m.program.world = 3;
        m.placement.rank = rank;
        struct hrt_slice out = {.tensor = m.tensor, .columns = s % 6 < 3 ? 0 : m.param.columns};
        struct hrt_slice in = out;
        int64_t kept, visited = 0;
        const int64_t first = hrt_params_cut(m.param.elements, 3, rank, &kept);
        set_all(-1);
        while (hrt_params_slice_fill(&m.buffer, &out)) pass(&m, &out, false);
        hrt_params_staging_reset(&m.buffer);
        float *all = read_all();
        for (int64_t i = 0; i < MOST; i++) {
            const bool here = i >= BEFORE && i < BEFORE + kept;
            assert_true(all[i] == (here ? (float)(first + i - BEFORE) : -1));
        }
        free(all);
        while (hrt_params_slice_visit(&m.buffer, &in)) {
            size_t end = 0, bytes, own;
            for (int r = 0; r < 3; r++) {
                assert_int_equal(hrt_params_slice_share(&m.buffer, &in, r, &bytes), end);
                end += bytes;
            }
            assert_int_equal(end, in.runs * in.run * 4);
            const size_t at = hrt_params_slice_share(&m.buffer, &in, rank, &own) / 4;
            for (size_t i = at; i < at + own / 4; i++, visited++) {
                const int64_t number =
                    in.first + (int64_t)i / in.run * in.pitch + (int64_t)i % in.run;
                assert_true(((const float *)in.at)[i] == (float)number);
            }
        }
        assert_int_equal(visited, kept);
    }
}

static void first_values_are_those_of_the_host(void **state) {
    (void)state;
    struct hrt_program program = bigram;
    struct hrt_param param[8];
    const size_t bytes = (size_t)bigram.param_elements * sizeof(float);
    assert_true(program.params <= 8);
    for (int i = 0; i < program.params; i++) {
        param[i] = bigram.param[i];
        param[i].layout = HRT_ROWS;
    }
    program.param = param;
    const struct hrt_placement here = {.program = &program};
    float *host = calloc(1, bytes), *copy = malloc(bytes);
    void *there = device.backend->take(&device, HRT_OF_DEVICE, bytes, false);
    assert_true(host && copy && there);
    const struct hrt_buffer apart = {.placement = &here, .values = there, .staging = &staging};
    hrt_params_init(TEST_BUFFER(&here, host), 3);
    hrt_params_init(&apart, 3);
    hrt_device_read(&device, copy, there, bytes, HRT_WHY_VALUES);
    assert_memory_equal(host, copy, bytes);
    device.backend->give(&device, HRT_OF_DEVICE, there, bytes);
    free(host);
    free(copy);
}

static int open_all(void **state) {
    const struct hrt_program program = {.device = &test_device_apart};
    struct hrt_error error;
    (void)state;
    if (!hrt_device_open(&device, &program, 0, &error)) return -1;
    staging = (struct hrt_staging){
        .device = &device,
        .base = device.backend->take(&device, HRT_OF_BOTH, STAGING, false),
        .bytes = STAGING,
    };
    values = device.backend->take(&device, HRT_OF_DEVICE, MOST * sizeof *values, false);
    return staging.base && values ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    device.backend->give(&device, HRT_OF_BOTH, staging.base, STAGING);
    device.backend->give(&device, HRT_OF_DEVICE, values, MOST * sizeof *values);
    hrt_device_close(&device);
    return test_apart_blocks();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_passes_once),
        cmocka_unit_test(slices_under_way_keep_their_elements),
        cmocka_unit_test(ranks_keep_their_parts),
        cmocka_unit_test(first_values_are_those_of_the_host),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
