// Unit test of runtime/store/hf_load and of what it and hrt_store_restore read with: every element of 16 bits, both ways
// to lie, any number of threads; and how much of a processor's time that takes.
#include "runtime/store/hf_load.h"

#include <math.h>
#include <omp.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime/params/tensor.h"
#include "tests/runtime/support/case.h"

enum { V = 8192, D = 1024, ELEMENTS = 2 * V * D };

// Embedding and head [D, V], which lies turned in the folder and in panels here.
static const struct hrt_param params[] = {
    {.path = "embed",
     .rank = 2,
     .shape = {V, D},
     .layers = 1,
     .index_first = -1,
     .rows = 1,
     .columns = V * D,
     .elements = V * D,
     .set = -1},
    {.path = "head",
     .rank = 2,
     .shape = {D, V},
     .layers = 1,
     .index_first = -1,
     .layout = HRT_PANELS,
     .rows = D,
     .columns = V,
     .elements = V * D,
     .set = -1,
     .offset = V * D},
};
static const struct hrt_setting setting[] = {{"names.hf.family", "olmoe"}};
static const struct hrt_program program = {.name = "load",
                                           .version = "1",
                                           .params = 2,
                                           .param = params,
                                           .param_elements = ELEMENTS,
                                           .settings = 1,
                                           .setting = setting};

// All patterns of 16 bits in turn.
static uint16_t pattern_of(int64_t i) {
    return (uint16_t)(i * 40503);
}

// Two tensors with those names, of V rows of D elements and of `rows` rows.
static void write_file(const char *path, const char *dtype, const char *embed, const char *head,
                       int rows) {
    const size_t bytes = (size_t)V * D * 2;
    char header[512];
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"data_offsets\":[0,%zu]},"
             "\"%s\":{\"dtype\":\"%s\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]}}",
             embed, dtype, V, D, bytes, head, dtype, rows, V * D / rows, bytes, 2 * bytes);
    const uint64_t length = strlen(header);
    char *all = malloc(sizeof length + length + 2 * bytes);
    memcpy(all, &length, sizeof length);
    memcpy(all + sizeof length, header, length);
    for (int64_t i = 0; i < ELEMENTS; i++) {
        const uint16_t pattern = pattern_of(i);
        memcpy(all + sizeof length + length + i * 2, &pattern, sizeof pattern);
    }
    test_write(path, all, sizeof length + length + 2 * bytes);
    free(all);
}

static void write_folder(const char *dtype) {
    mkdir("folder", 0700);
    write_file("folder/model.safetensors", dtype, "model.embed_tokens.weight", "lm_head.weight", V);
}

static void load(float *values, struct hrt_store_doubts *doubts) {
    const struct hrt_placement here = {.program = &program};
    struct hrt_error error = {0};
    if (!hrt_store_hf_load(TEST_BUFFER(&here, values), "folder", doubts, &error))
        fail_msg("%s", error.text);
}

static void restore(float *values, struct hrt_store_doubts *doubts) {
    const struct hrt_placement here = {.program = &program};
    struct hrt_error error = {0};
    if (!hrt_store_restore(TEST_BUFFER(&here, values), "own", doubts, &error))
        fail_msg("%s", error.text);
}

// The value of a pattern, by definition.
static double meaning(const char *dtype, uint16_t bits) {
    const bool half = strcmp(dtype, "F16") == 0;
    const int digits = half ? 10 : 7, all = half ? 31 : 255, bias = half ? 15 : 127;
    const int exponent = bits >> digits & all, fraction = bits & ((1 << digits) - 1);
    double size = exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits)
                           : ldexp(fraction, 1 - bias - digits);
    if (exponent == all) size = fraction ? NAN : INFINITY;
    return bits >> 15 ? -size : size;
}

static void check_values(const char *dtype, const float *values) {
    for (int64_t i = 0; i < ELEMENTS; i++) {
        const double want = meaning(dtype, pattern_of(i));
        const int64_t own = i - V * D, row = own / D, column = own % D; // Place in the file's head.
        const int64_t at =
            i < V * D ? i : V * D + hrt_params_stored_index(&params[1], column * V + row);
        if (isnan(want) ? isnan(values[at])
                        : values[at] == (float)want && !signbit(values[at]) == !signbit(want))
            continue;
        fail_msg("%s: element %lld is %g, not %g", dtype, (long long)i, (double)values[at], want);
    }
}

static void every_element_is_what_it_says(void **state) {
    (void)state;
    static const char *const dtypes[] = {"BF16", "F16"};
    float *values = malloc((size_t)ELEMENTS * sizeof *values);
    float *alone = malloc((size_t)ELEMENTS * sizeof *alone);
    const int threads = omp_get_max_threads();
    for (int i = 0; i < 2; i++) {
        struct hrt_store_doubts doubts[2];
        write_folder(dtypes[i]);
        omp_set_num_threads(4);
        load(values, &doubts[0]);
        check_values(dtypes[i], values);
        omp_set_num_threads(1);
        load(alone, &doubts[1]);
        assert_memory_equal(values, alone, (size_t)ELEMENTS * sizeof *values);
        assert_string_equal(doubts[0].values, doubts[1].values);
        assert_non_null(
            strstr(doubts[0].values, "'model.embed_tokens.weight' has values that are not finite"));
    }
    omp_set_num_threads(threads);
    free(values);
    free(alone);
}

// Processor time of all threads together, so that it does not depend on other programs; the file lies in the page
// cache.
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

typedef void read_fn(float *values, struct hrt_store_doubts *doubts);

static void copy(float *values, struct hrt_store_doubts *doubts) {
    (void)doubts;
    memcpy(values, values + ELEMENTS, (size_t)ELEMENTS * sizeof *values);
}

static double best_of(read_fn *read, float *values) {
    struct hrt_store_doubts doubts;
    double best = 1e9;
    for (int i = 0; i < 9; i++) {
        const double begin = seconds();
        read(values, &doubts);
        best = fmin(best, seconds() - begin);
    }
    return best;
}

// Compared with the time that copying the floats takes.
static void an_element_takes_little_time(void **state) {
    (void)state;
    float *values = calloc(2 * (size_t)ELEMENTS, sizeof *values);
    omp_set_num_threads(1); // Threads that wait for others take time, too.
    write_folder("BF16");
    write_file("own", "BF16", "embed", "head", D);
    for (int64_t i = 0; i < 2 * ELEMENTS; i++) values[i] = 1; // Touches the memory.
    const double least = best_of(copy, values), folder = best_of(load, values),
                 own = best_of(restore, values);
    free(values);
    printf("a folder takes %.1f times as long as a copy: %.0f MB/s of one core\n", folder / least,
           2e-6 * ELEMENTS / folder);
    printf("a file of ours takes %.1f times as long: %.0f MB/s\n", own / least,
           2e-6 * ELEMENTS / own);
#if !defined __SANITIZE_ADDRESS__
    assert_true(folder < 4 * least);
    assert_true(own < 4 * least);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_element_is_what_it_says),
                                       cmocka_unit_test(an_element_takes_little_time)};
    return cmocka_run_group_tests(tests, test_enter_directory, test_leave_directory);
}
