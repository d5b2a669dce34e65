// The GPU that a process takes, and its message where it gets none: on the emulator, whose driver chooses code as
// CUDA's does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/lane.h"
#include "runtime/device/device.h"
#include "runtime/program.h"

int simt_code_for(const char *architectures); // The emulator's driver: a cudaError_t.

// A program's own kernels, as kernels/cuda/program.h has them.
static const char *own = "compute_80";

int hkc_program_code(const char **compiled_for) {
    *compiled_for = own;
    return simt_code_for(own);
}

// Each begins with one GPU of sm_90, alone.
static int begin(void **state) {
    (void)state;
    own = "compute_80";
    unsetenv("HECATE_DEVICE"), unsetenv("SIMT_DEVICES"), unsetenv("SIMT_CAPABILITY");
    unsetenv("HECATE_RANK"), unsetenv("HECATE_RANKS"), unsetenv("HECATE_LOCAL_RANK");
    return 0;
}

static bool open_device(struct hrt_device *device, struct hrt_error *error) {
    const struct hrt_program program = {.device = &hrt_device_cuda};
    *error = (struct hrt_error){0};
    return hrt_device_open(device, &program, 0, error);
}

static void assert_opens(const char *name, bool warpgroups) {
    struct hrt_device device;
    struct hrt_error error;
    if (!open_device(&device, &error)) fail_msg("%s", error.text);
    assert_string_equal(device.name, name);
    assert_int_equal(device.lane->warpgroups, warpgroups);
    hrt_device_close(&device);
}

static void assert_refused(enum hrt_exit code, const char *words) {
    struct hrt_device device;
    struct hrt_error error;
    assert_false(open_device(&device, &error));
    if (!strstr(error.text, words)) fail_msg("\"%s\" has no \"%s\"", error.text, words);
    assert_int_equal(error.code, code);
}

static void a_program_of_ptx_runs_on_every_gpu_since_ampere(void **state) {
    (void)state;
    assert_opens("GPU 0 (sm_90)", true);
    setenv("SIMT_CAPABILITY", "80", 1);
    assert_opens("GPU 0 (sm_80)", false);
    setenv("SIMT_CAPABILITY", "89", 1);
    assert_opens("GPU 0 (sm_89)", false);
    setenv("SIMT_CAPABILITY", "120", 1);
    assert_opens("GPU 0 (sm_120)", false);
}

static void a_gpu_without_code_is_named_with_what_there_is(void **state) {
    (void)state;
    setenv("SIMT_CAPABILITY", "75", 1);
    assert_refused(HRT_EXIT_FAILED,
                   "GPU 0 (sm_75): the program's kernels are compiled for other GPUs "
                   "(sm_80 sm_90a sm_100 compute_80 compute_90): no kernel image");
    own = "sm_90a";
    setenv("SIMT_CAPABILITY", "89", 1);
    assert_refused(HRT_EXIT_FAILED,
                   "GPU 0 (sm_89): the program's loops are compiled for other GPUs (sm_90a): no");
    own = "sm_80";
    assert_opens("GPU 0 (sm_89)", false); // Machine code of sm_80 is for all sm_8x.
    setenv("SIMT_CAPABILITY", "90", 1);
    assert_refused(HRT_EXIT_FAILED,
                   "GPU 0 (sm_90): the program's loops are compiled for other GPUs "
                   "(sm_80)");
}

static void the_environment_chooses_a_gpu(void **state) {
    (void)state;
    setenv("SIMT_DEVICES", "3", 1);
    assert_opens("GPU 0 (sm_90)", true);
    setenv("HECATE_DEVICE", "2", 1);
    assert_opens("GPU 2 (sm_90)", true);
    setenv("HECATE_DEVICE", "", 1);
    assert_opens("GPU 0 (sm_90)", true);
}

static void it_goes_before_the_number_of_a_rank_on_its_machine(void **state) {
    (void)state;
    setenv("SIMT_DEVICES", "3", 1);
    setenv("HECATE_RANK", "5", 1), setenv("HECATE_RANKS", "8", 1);
    setenv("HECATE_LOCAL_RANK", "1", 1);
    assert_opens("GPU 1 (sm_90)", true);
    setenv("HECATE_DEVICE", "0", 1);
    assert_opens("GPU 0 (sm_90)", true);
}

static void numbers_of_no_gpu_are_refused(void **state) {
    (void)state;
    setenv("SIMT_DEVICES", "3", 1);
    setenv("HECATE_DEVICE", "3", 1);
    assert_refused(HRT_EXIT_USAGE, "HECATE_DEVICE is 3, but the GPUs that this process sees have "
                                   "the numbers 0 to 2");
    static const char *const wrong[] = {"-1", "1x", "x", " 1", "+1", "99999999999999999999", "0x1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("HECATE_DEVICE", wrong[i], 1);
        assert_refused(HRT_EXIT_USAGE, "which is not the number of a GPU");
        assert_refused(HRT_EXIT_USAGE, wrong[i]);
    }
}

static void information_says_what_would_be_taken(void **state) {
    (void)state;
    char text[256];
    setenv("SIMT_DEVICES", "2", 1);
    setenv("HECATE_DEVICE", "1", 1);
    hrt_device_cuda.describe(text, sizeof text);
    assert_non_null(strstr(text, "GPU 1 of 2: sm_90, 4 multiprocessors; driver "));
    setenv("HECATE_DEVICE", "2", 1);
    hrt_device_cuda.describe(text, sizeof text);
    assert_non_null(strstr(text, "HECATE_DEVICE is 2"));
    setenv("HECATE_DEVICE", "0", 1);
    setenv("SIMT_CAPABILITY", "75", 1);
    hrt_device_cuda.describe(text, sizeof text);
    assert_non_null(strstr(text, "compiled for other GPUs"));
    setenv("SIMT_DEVICES", "0", 1);
    hrt_device_cuda.describe(text, sizeof text);
    assert_non_null(strstr(text, "there is none"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_program_of_ptx_runs_on_every_gpu_since_ampere, begin),
        cmocka_unit_test_setup(a_gpu_without_code_is_named_with_what_there_is, begin),
        cmocka_unit_test_setup(the_environment_chooses_a_gpu, begin),
        cmocka_unit_test_setup(it_goes_before_the_number_of_a_rank_on_its_machine, begin),
        cmocka_unit_test_setup(numbers_of_no_gpu_are_refused, begin),
        cmocka_unit_test_setup(information_says_what_would_be_taken, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
