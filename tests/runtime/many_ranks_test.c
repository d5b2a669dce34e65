// Unit test of what a rank of 1,024 keeps to move things between ranks, by the allocator's own count: docs/ranks.md has
// these figures. Nothing is sent: one process makes the tables of rank 0.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/experts/moves.h"
#include "runtime/net/net.h"
#include "runtime/train/dense.h"
#include "runtime/train/ranks.h"
#include "tests/runtime/support/case.h"
#include "tests/runtime/support/moving.h"

enum { RANKS = 1024, NODE = 8, LAYERS = 8, EXPERTS = 256, PICKS = 8, TOKENS = 2048, SLOTS = 4 };

static double of_device; // Bytes that count_take has given out.

static double taken(void) {
    const struct mallinfo2 info = mallinfo2();
    return (double)(info.uordblks + info.hblkhd) + of_device;
}

static void *count_take(struct hrt_device *device, enum hrt_memory memory, size_t bytes,
                        bool sparse) {
    of_device += (double)bytes;
    return hrt_device_host.take(device, memory, bytes, sparse);
}

// Says what was taken since, and compares it with what the page says. The allocator of sanitizers counts nothing.
static void expect_mib(const char *what, double since, double low, double high) {
    const double mib = (taken() - since) / (1 << 20);
    print_message("%s: %.2f MiB\n", what, mib);
    if (taken() == of_device) return;
    assert_true(mib >= low);
    assert_true(mib <= high);
}

// The others have zeros.
static void sum_alone(struct hrt_comm *comm, void *data, int64_t count, enum hrt_number type) {
    (void)comm, (void)data, (void)count, (void)type;
}

static struct hrt_comm ranks_of_a_cluster(void) {
    static const struct hrt_comm_ops ops = {.all_reduce = sum_alone};
    static int32_t node[RANKS];
    for (int32_t r = 0; r < RANKS; r++) node[r] = r / NODE;
    return (struct hrt_comm){.ops = &ops, .size = RANKS, .nodes = RANKS / NODE, .node_of = node};
}

static void lanes_take_bytes_per_rank(void **state) {
    struct hrt_net *own = calloc(1, sizeof *own);
    (void)state;
    assert_non_null(own);
    own->size = RANKS;
    const double since = taken();
    assert_true(hrt_net_lanes_open(own));
    expect_mib("windows of all lanes", since, 0.3, 0.5);
    hrt_net_lanes_free(own);
    free(own);
}

static void dense_sums_are_bounded(void **state) {
    static const struct hrt_param param[] = {
        {.symbol = "w", .layers = LAYERS, .trainable = true, .elements = 4 << 20, .set = -1}};
    const struct hrt_program program = {
        .param_elements = LAYERS * (4 << 20), .params = 1, .param = param, .world = RANKS};
    struct hrt_comm comm = ranks_of_a_cluster();
    struct hrt_error error = {0};
    struct hrt_train_dense *dense;
    (void)state;
    struct hrt_device_backend counting = hrt_device_host;
    counting.take = count_take;
    struct hrt_state of = {.program = &program, .comm = &comm, .device.backend = &counting};
    const double since = taken();
    assert_true(hrt_train_dense_create(&dense, &of, &error));
    expect_mib("sums of dense gradients", since, 10, 11.4);
    hrt_train_dense_destroy(dense);
}

static void experts_take_counts_plans_and_lists(void **state) {
    static struct moving m;
    struct hrt_comm comm = ranks_of_a_cluster();
    const struct hpl_movement movement = {
        .policy = "fssdp", .overlap = 8, .slots = SLOTS, .window = 2};
    (void)state;
    const double since = taken();
    moving_open(&m, &comm, &movement,
                (struct moving_sizes){.experts = EXPERTS,
                                      .topk = PICKS,
                                      .layers = LAYERS,
                                      .chunk = 1 << 20,
                                      .width = 1,
                                      .tokens = TOKENS});
    expect_mib("a set whose experts move", since, 66, 71);
    const struct hrt_experts_bytes bytes = hrt_train_ranks_moving_bytes(&m.program);
    print_message(
        "of these, counts of rows: %.2f MiB; besides, rows and runs of them: %.2f and %.2f MiB\n",
        (double)bytes.here / (1 << 20), (double)bytes.there / (1 << 20),
        (double)bytes.both / (1 << 20));
    for (int kind = 0; kind < HRT_MOVES; kind++) {
        struct hrt_move move;
        const double before = taken();
        assert_true(hrt_experts_move_create(&move, m.state.fssdp, 0, (enum hrt_move_kind)kind));
        if (kind == HRT_MOVE_REDUCE) {
            expect_mib("the list of a sum", before, 8, 9);
        } else {
            expect_mib("the list of a gathering", before, 4, 5);
        }
        hrt_experts_move_destroy(&move, &m.state.device);
    }
    moving_close(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_take_bytes_per_rank),
        cmocka_unit_test(dense_sums_are_bounded),
        cmocka_unit_test(experts_take_counts_plans_and_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
