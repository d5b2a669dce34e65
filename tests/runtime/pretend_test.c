// Unit test of --pretend: the file that it reads, and kernels that wait.
#include "kernels/sum_squares/sum_squares.h"
#include "runtime/cli/pretend.h"
#include "tests/runtime/support/case.h"

static const char device[] = "# a device\n"
                             "products  400e9 # FLOP/s\n"
                             "memory 6e9\n\n"
                             "attention 3e11\n"
                             "call 0\n";

static bool read_text(struct hk_pretence *pretence, const char *text, struct hrt_error *error) {
    char path[] = "/tmp/pretend_test.XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    *error = (struct hrt_error){0};
    const bool sound = hrt_cli_pretend_read(pretence, path, error);
    remove(path);
    return sound;
}

static void test_reads_a_device(void **state) {
    (void)state;
    struct hk_pretence pretence;
    struct hrt_error error;
    assert_true(read_text(&pretence, device, &error));
    assert_true(pretence.product_flops == 400e9 && pretence.attention_flops == 3e11);
    assert_true(pretence.bytes == 6e9 && pretence.call_s == 0);
}

static void test_refuses_what_is_no_device(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"products 1\nattention 1\nmemory 1\n", ": call is missing"},
        {"products 1\nproducts 1\n", ":2: products is given twice"},
        {"speed 1\n", ":1: 'speed' is none of products, attention, memory, call"},
        {"call 1\nmemory 0\n", ":2: memory takes one positive number"},
        {"memory -1\n", ":1: memory takes one positive number"},
        {"memory nan\n", ":1: memory takes one positive number"},
        {"memory 1x\n", ":1: memory takes one positive number"},
        {"memory 1 2\n", ":1: memory takes one positive number"},
        {"memory\n", ":1: memory takes one positive number"},
        {"call -1e-6\n", ":1: call takes one not negative number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hk_pretence pretence;
        struct hrt_error error;
        assert_false(read_text(&pretence, cases[i].text, &error));
        assert_int_equal(error.code, HRT_EXIT_USAGE);
        if (!strstr(error.text, cases[i].says))
            fail_msg("'%s' for '%s'", error.text, cases[i].says);
    }
    struct hk_pretence pretence;
    struct hrt_error error = {0};
    assert_false(hrt_cli_pretend_read(&pretence, "/nowhere/device", &error));
    assert_non_null(strstr(error.text, "cannot read /nowhere/device: No such file"));
}

// Milliseconds that 20 sums over 1,000 numbers take.
static double time_sums(double *sum) {
    float x[1000];
    for (int i = 0; i < 1000; i++) x[i] = 1;
    const int64_t start = hk_clock();
    for (int i = 0; i < 20; i++) *sum = hk_sum_squares_f32(x, 1000);
    return 1e-6 * (double)(hk_clock() - start);
}

static void test_kernels_wait(void **state) {
    (void)state;
    double sum;
    time_sums(&sum);
    assert_true(sum == 1000);
    // 4 kB at 1 MB/s are 4 ms, and 1 ms for the call: 100 ms.
    const struct hk_pretence pretence = {1e9, 1e9, 1e6, 1e-3};
    hk_pretend(&pretence);
    const double took = time_sums(&sum);
    hk_pretend(NULL);
    assert_true(sum == 0); // Nothing was computed.
    assert_in_range((int64_t)took, 95, 400);
    time_sums(&sum);
    assert_true(sum == 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_a_device),
        cmocka_unit_test(test_refuses_what_is_no_device),
        cmocka_unit_test(test_kernels_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
