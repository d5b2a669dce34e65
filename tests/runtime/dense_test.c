// Test of what every rank has, run by mpirun: every rank knows the gradients of all, works out alone
// their sums, and compares bits. A stand-in program has a parameter with layers, a tiny one, a
// large one, one that gets no gradient, and a set that every rank has.
#include <stdlib.h>
#include <string.h>

#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense.h"
#include "runtime/train/optimizer.h"
#include "tests/runtime/ranks_case.h"

enum { LAYERS = 3, WIDE = 5000, TINY = 3, LARGE = 1500001, UNUSED = 7, CHUNK = 11, EXPERTS = 2 };
enum { AT_TINY = LAYERS * WIDE, AT_LARGE = AT_TINY + TINY, AT_UNUSED = AT_LARGE + LARGE };
enum { AT_SET = AT_UNUSED + UNUSED, ELEMENTS = AT_SET + LAYERS * EXPERTS * CHUNK };

static struct hrt_comm world; // MPI starts once per process.

static const struct hrt_param params[] = {
    {.symbol = "wide", .layers = LAYERS, .trainable = true, .elements = WIDE, .set = -1},
    {.symbol = "tiny",
     .layers = 1,
     .trainable = true,
     .elements = TINY,
     .set = -1,
     .offset = AT_TINY},
    {.symbol = "large",
     .layers = 1,
     .trainable = true,
     .elements = LARGE,
     .set = -1,
     .offset = AT_LARGE},
    {.symbol = "unused",
     .layers = 1,
     .trainable = true,
     .elements = UNUSED,
     .set = -1,
     .offset = AT_UNUSED},
};
static const struct hrt_set sets[] = {{.name = "set",
                                       .experts = EXPERTS,
                                       .topk = 1,
                                       .layers = LAYERS,
                                       .offset = AT_SET,
                                       .chunk_elements = CHUNK}};
static const struct hrt_bucket buckets[] = {
    {.layers = 1, .params = 1, .param = (const int[]){2}},
    {.layers = LAYERS, .params = 1, .param = (const int[]){0}, .sets = 1, .set = (const int[]){0}},
    {.layers = 1, .params = 1, .param = (const int[]){1}},
};

static struct hrt_program program_of(enum hrt_precision precision, bool shard, int64_t bytes) {
    return (struct hrt_program){.precision = precision,
                                .param_elements = ELEMENTS,
                                .params = 4,
                                .param = params,
                                .sets = 1,
                                .set = sets,
                                .world = world.size,
                                .buckets = 3,
                                .bucket = buckets,
                                .bucket_bytes = bytes,
                                .dense_states = shard};
}

static double gradient(int rank, int64_t i) {
    if (i >= AT_UNUSED && i < AT_SET) return 0;
    return 1.0 / (double)(1 + (i * 7919 + rank * 104729) % 1000003);
}

// Ranks that sum among themselves first.
static int ranks_of_node(void) {
    int first = 0;
    while (first < world.size && world.node_of[first] == world.node_of[0]) first++;
    for (int r = 0; r < world.size; r++) {
        if (world.node_of[r] != r / first) return world.size; // Nodes differ in size.
    }
    return world.size % first || first == 1 ? world.size : first;
}

static double sum_of(enum hrt_precision precision, int64_t i) {
    const int each = ranks_of_node();
    float narrow = 0;
    double sum = 0;
    for (int node = 0; node < world.size / each; node++) {
        float narrow_node = (float)gradient(node * each, i);
        double sum_node = gradient(node * each, i);
        for (int r = node * each + 1; r < (node + 1) * each; r++) {
            narrow_node += (float)gradient(r, i);
            sum_node += gradient(r, i);
        }
        narrow = node ? narrow + narrow_node : narrow_node;
        sum = node ? sum + sum_node : sum_node;
    }
    return precision == HRT_FP64 ? sum : (double)narrow;
}

static void *filled(enum hrt_precision precision, int rank) {
    void *buffer = malloc(ELEMENTS * (size_t)hrt_params_element_bytes(precision));
    RANKS_CHECK(&world, buffer);
    for (int64_t i = 0; i < ELEMENTS; i++)
        hrt_params_element_set(buffer, precision, i, gradient(rank, i));
    return buffer;
}

// Backward as emitted code runs it; `layers` of the loop are told, the rest is left to finish.
static void complete(struct hrt_train_dense *dense, int64_t layers) {
    hrt_train_dense_last(dense, true);
    hrt_train_dense_ready(dense, 0, 0);
    for (int64_t i = LAYERS - 1; i >= LAYERS - layers; i--) hrt_train_dense_ready(dense, 1, i);
    hrt_train_dense_finish(dense);
}

// The elements that this rank updates: 1 where it does.
static char *own_elements(const struct hrt_train_dense *dense, bool shard) {
    const struct hrt_span whole[] = {
        {.count = AT_LARGE + 5, .rates.decay = true},
        {.offset = AT_LARGE + 5, .count = ELEMENTS - AT_LARGE - 5},
    };
    char *own = malloc(ELEMENTS);
    struct hrt_span *cut = malloc((size_t)(2 + hrt_train_dense_cuts(dense)) * sizeof *cut);
    RANKS_CHECK(&world, own && cut);
    memset(own, !shard, ELEMENTS);
    const int64_t cuts = shard ? hrt_train_dense_cut(dense, whole, 2, cut) : 0;
    for (int64_t s = 0; s < cuts; s++) {
        RANKS_CHECK(&world, cut[s].rates.decay == (cut[s].offset < AT_LARGE + 5));
        for (int64_t i = 0; i < cut[s].count; i++) RANKS_CHECK(&world, !own[cut[s].offset + i]++);
    }
    free(cut);
    return own;
}

static void sum_up(enum hrt_precision precision, bool shard, int64_t bytes, int64_t layers) {
    const struct hrt_program program = program_of(precision, shard, bytes);
    struct hrt_state state = {
        .program = &program, .comm = &world, .device.backend = &hrt_device_host};
    struct hrt_error error = {0};
    struct hrt_train_dense *dense;
    state.values[HRT_GRADIENTS] = filled(precision, world.rank);
    state.values[HRT_PARAMETERS] = filled(precision, world.rank);
    RANKS_CHECK(&world, hrt_train_dense_create(&dense, &state, &error));
    char *own = own_elements(dense, shard);
    complete(dense, layers);
    for (int64_t i = 0; i < ELEMENTS; i++) {
        if (!own[i]) continue;
        const double sum = hrt_params_element(state.values[HRT_GRADIENTS], precision, i);
        RANKS_CHECK(&world, sum == sum_of(precision, i));
        hrt_params_element_set(state.values[HRT_PARAMETERS], precision, i,
                               2 * sum); // An optimizer of its part.
    }
    hrt_train_dense_publish(dense);
    for (int64_t i = 0; i < ELEMENTS; i++) {
        RANKS_CHECK(&world, hrt_params_element(state.values[HRT_PARAMETERS], precision, i) ==
                                2 * sum_of(precision, i));
        RANKS_CHECK(&world,
                    !shard || hrt_params_element(state.values[HRT_GRADIENTS], precision, i) == 0);
    }
    hrt_train_dense_destroy(dense);
    free(own);
    free(state.values[HRT_GRADIENTS]);
    free(state.values[HRT_PARAMETERS]);
}

static void sums_are_those_of_all_ranks_in_order(void **state) {
    (void)state;
    sum_up(HRT_FP32, false, 1, LAYERS);
    sum_up(HRT_FP64, false, 1, LAYERS);
}

static void small_tensors_wait_for_a_bucket(void **state) {
    (void)state;
    sum_up(HRT_FP32, false, 30000, LAYERS);
    sum_up(HRT_FP32, false, INT64_MAX, LAYERS);
}

static void what_nobody_told_is_summed_in_the_end(void **state) {
    (void)state;
    sum_up(HRT_FP32, false, 1, 1);
}

static void each_rank_updates_its_part(void **state) {
    (void)state;
    sum_up(HRT_FP32, true, 1, LAYERS);
    sum_up(HRT_FP64, true, 30000, 2);
}

static void before_the_last_iteration_nothing_is_summed(void **state) {
    (void)state;
    const struct hrt_program program = program_of(HRT_FP32, false, 1);
    struct hrt_state held = {
        .program = &program, .comm = &world, .device.backend = &hrt_device_host};
    struct hrt_error error = {0};
    struct hrt_train_dense *dense;
    held.values[HRT_GRADIENTS] = filled(HRT_FP32, world.rank);
    RANKS_CHECK(&world, hrt_train_dense_create(&dense, &held, &error));
    hrt_train_dense_ready(dense, 0, 0);
    RANKS_CHECK(&world, hrt_params_element(held.values[HRT_GRADIENTS], HRT_FP32, AT_LARGE) ==
                            (double)(float)gradient(world.rank, AT_LARGE));
    complete(dense, LAYERS); // And a step later, everything once.
    RANKS_CHECK(&world, hrt_params_element(held.values[HRT_GRADIENTS], HRT_FP32, AT_LARGE) ==
                            sum_of(HRT_FP32, AT_LARGE));
    hrt_train_dense_destroy(dense);
    free(held.values[HRT_GRADIENTS]);
}

// HECATE_TOPOLOGY: one machine stands for several nodes.
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_all_ranks_in_order),
        cmocka_unit_test(small_tensors_wait_for_a_bucket),
        cmocka_unit_test(what_nobody_told_is_summed_in_the_end),
        cmocka_unit_test(each_rank_updates_its_part),
        cmocka_unit_test(before_the_last_iteration_nothing_is_summed),
    };
    ranks_open(&world, getenv("HECATE_TOPOLOGY"));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&world);
    return failed;
}
