// Unit test of runtime/net/choose_executor.c: the executor for each kind of ranks, and the words of refusals.
#include <stdlib.h>
#include <string.h>

#include "runtime/net/backend.h"
#include "runtime/net/transport.h"
#include "tests/runtime/support/case.h"

static size_t bytes_of_nccl(int ranks) {
    return (size_t)ranks * 10;
}

static size_t bytes_of_ipc(int ranks) {
    return (size_t)ranks * 20;
}

static void name_nccl(char *text, size_t bytes) {
    snprintf(text, bytes, "NCCL 2.0.0");
}

static void name_ipc(char *text, size_t bytes) {
    snprintf(text, bytes, "CUDA IPC");
}

// In place of those of NCCL and of CUDA, which neither is here.
const struct hrt_executor hrt_executor_nccl = {
    .name = "nccl", .describe = name_nccl, .bytes = bytes_of_nccl};
const struct hrt_executor hrt_executor_ipc = {
    .name = "ipc", .describe = name_ipc, .bytes = bytes_of_ipc};

static const char *missing; // Why NCCL's library cannot be opened.

bool hrt_nccl_library_open(char *why, size_t bytes) {
    if (missing) snprintf(why, bytes, "%s", missing);
    return !missing;
}

enum { RANKS = 4 };

static bool alone; // The others ask for nothing.

// Else all ranks say the same.
static void sum_up(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type) {
    int64_t *word = data;
    assert_int_equal(type, HRT_INT64);
    for (int64_t i = 0; i < count && !alone; i++) word[i] *= comm->size;
    if (alone) word[0] += comm->size - 1;
}

static const int32_t one_machine[RANKS] = {0, 0, 0, 0}, two_machines[RANKS] = {0, 0, 2, 2};
static const struct hrt_sharing shared = {.one = 1, .other = 3, .address = "0000:3b:00.0"};
static const struct hrt_sharing apart = {.one = -1, .other = -1};

// Expects an executor's name, or words of the error and its code.
static void expect(const char *asked, const int32_t *machines, const struct hrt_sharing *sharing,
                   const char *name, const char *words, enum hrt_exit code) {
    static const struct hrt_comm_ops ops = {.all_reduce = sum_up};
    struct hrt_comm comm = {.ops = &ops, .size = RANKS, .machine_of = machines};
    struct hrt_error error = {0};
    if (asked)
        setenv("HECATE_TRANSPORT", asked, 1);
    else
        unsetenv("HECATE_TRANSPORT");
    const struct hrt_executor *chosen = hrt_executor_cuda.choose(&comm, sharing, &error);
    if (name) {
        assert_non_null(chosen);
        assert_string_equal(chosen->name, name);
    } else {
        assert_null(chosen);
        assert_non_null(strstr(error.text, words));
        assert_int_equal(error.code, code);
    }
}

static void ranks_are_served_as_fits(void **state) {
    (void)state;
    missing = NULL;
    expect(NULL, one_machine, &apart, "nccl", NULL, 0);
    expect("", two_machines, &apart, "nccl", NULL, 0);
    expect(NULL, one_machine, &shared, "ipc", NULL, 0);
    expect(NULL, two_machines, &shared, NULL,
           "ranks 1 and 3 have the same GPU, 0000:3b:00.0 of their machine, which ranks of several",
           HRT_EXIT_FAILED);
}

static void ranks_are_served_as_asked(void **state) {
    (void)state;
    missing = NULL;
    expect("ipc", one_machine, &apart, "ipc", NULL, 0);
    expect("ipc", two_machines, &apart, NULL, "for ranks of one machine", HRT_EXIT_USAGE);
    expect("nccl", two_machines, &apart, "nccl", NULL, 0);
    unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
    expect("nccl", one_machine, &shared, NULL, "from NCCL 2.30 on with NCCL_MULTI_RANK_GPU_ENABLE",
           HRT_EXIT_FAILED);
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
    expect("nccl", one_machine, &shared, "nccl", NULL, 0);
    unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
    expect("IPC", one_machine, &shared, NULL, "HECATE_TRANSPORT is 'IPC'; it takes nccl or ipc",
           HRT_EXIT_USAGE);
    alone = true;
    expect("ipc", one_machine, &shared, NULL, "differs between ranks", HRT_EXIT_USAGE);
    alone = false;
}

static void ranks_do_without_nccl(void **state) {
    (void)state;
    missing = "libnccl.so.2: cannot open";
    expect(NULL, one_machine, &apart, "ipc", NULL, 0);
    expect(NULL, two_machines, &apart, NULL, "need NCCL: libnccl.so.2: cannot open",
           HRT_EXIT_FAILED);
    expect("nccl", one_machine, &apart, NULL, "need NCCL: libnccl.so.2: cannot open",
           HRT_EXIT_FAILED);
}

// `info` names what would be, and memory is that of the larger one.
static void what_fits_is_told(void **state) {
    char text[128];
    (void)state;
    missing = NULL;
    unsetenv("HECATE_TRANSPORT");
    hrt_executor_cuda.describe(text, sizeof text);
    assert_string_equal(text, "NCCL 2.0.0, or CUDA IPC where ranks share one");
    assert_int_equal(hrt_executor_cuda.bytes(RANKS), 80);
    setenv("HECATE_TRANSPORT", "nccl", 1);
    hrt_executor_cuda.describe(text, sizeof text);
    assert_string_equal(text, "NCCL 2.0.0");
    assert_int_equal(hrt_executor_cuda.bytes(RANKS), 40);
    missing = "none";
    hrt_executor_cuda.describe(text, sizeof text);
    assert_string_equal(text, "NCCL, which is not there");
    unsetenv("HECATE_TRANSPORT");
    hrt_executor_cuda.describe(text, sizeof text);
    assert_string_equal(text, "CUDA IPC");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_served_as_fits),
        cmocka_unit_test(ranks_are_served_as_asked),
        cmocka_unit_test(ranks_do_without_nccl),
        cmocka_unit_test(what_fits_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
