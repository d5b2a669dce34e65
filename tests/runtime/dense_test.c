// Test of what every rank has, run by mpirun: every rank knows the gradients of all, works out alone
// their sums, and compares bits. A stand-in program has a parameter with layers, a tiny one, a
// large one, one that gets no gradient, and a set that every rank has.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/bf16.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense_jobs.h"
#include "tests/runtime/ranks_case.h"

enum { LAYERS = 3, WIDE = 5000, TINY = 3, LARGE = 1500001, UNUSED = 7, CHUNK = 11, EXPERTS = 2 };
enum { AT_TINY = LAYERS * WIDE, AT_LARGE = AT_TINY + TINY, AT_UNUSED = AT_LARGE + LARGE };
enum { AT_SET = AT_UNUSED + UNUSED, ELEMENTS = AT_SET + LAYERS * EXPERTS * CHUNK };

static struct hrt_comm world; // MPI starts once per process.

// As emitted: where the runtime says that tensors are.
struct model {
    struct hrt_train_dense *dense;
    float *wide[HRT_DENSE_SLOTS][LAYERS], *tiny[HRT_DENSE_SLOTS][1], *large[HRT_DENSE_SLOTS][1],
        *unused[HRT_DENSE_SLOTS][1], *set[HRT_DENSE_SLOTS][LAYERS * EXPERTS];
};

// Bytes into memory of units, for doubles: two layers' parameters and two layers' gradients.
#define SLOTS(at, elements)                                                                        \
    {                                                                                              \
        {(at), (at) + 8 * (elements)}, {                                                           \
            (at) + 16 * (elements), (at) + 24 * (elements)                                         \
        }                                                                                          \
    }
enum {
    SLOT_WIDE = 0,
    SLOT_TINY = SLOT_WIDE + 32 * WIDE,
    SLOT_LARGE = SLOT_TINY + 32 * TINY,
    SLOT_UNUSED = SLOT_LARGE + 32 * LARGE,
    SLOT_SET = SLOT_UNUSED + 32 * UNUSED,
    SLOTS_END = SLOT_SET + 32 * EXPERTS * CHUNK
};

static const struct hrt_param params[] = {
    {.symbol = "wide",
     .layers = LAYERS,
     .trainable = true,
     .elements = WIDE,
     .set = -1,
     .pointers = offsetof(struct model, wide[HRT_DENSE_PARAMETERS]),
     .grad_pointers = offsetof(struct model, wide[HRT_DENSE_GRADIENTS]),
     .slot = SLOTS(SLOT_WIDE, WIDE)},
    {.symbol = "tiny",
     .layers = 1,
     .trainable = true,
     .elements = TINY,
     .set = -1,
     .offset = AT_TINY,
     .pointers = offsetof(struct model, tiny[HRT_DENSE_PARAMETERS]),
     .grad_pointers = offsetof(struct model, tiny[HRT_DENSE_GRADIENTS]),
     .slot = SLOTS(SLOT_TINY, TINY)},
    {.symbol = "large",
     .layers = 1,
     .trainable = true,
     .elements = LARGE,
     .set = -1,
     .offset = AT_LARGE,
     .pointers = offsetof(struct model, large[HRT_DENSE_PARAMETERS]),
     .grad_pointers = offsetof(struct model, large[HRT_DENSE_GRADIENTS]),
     .slot = SLOTS(SLOT_LARGE, LARGE)},
    {.symbol = "unused",
     .layers = 1,
     .trainable = true,
     .elements = UNUSED,
     .set = -1,
     .offset = AT_UNUSED,
     .pointers = offsetof(struct model, unused[HRT_DENSE_PARAMETERS]),
     .grad_pointers = offsetof(struct model, unused[HRT_DENSE_GRADIENTS]),
     .slot = SLOTS(SLOT_UNUSED, UNUSED)},
    {.symbol = "w", .layers = LAYERS, .trainable = true, .elements = CHUNK, .set = 0},
};
static const struct hrt_set sets[] = {
    {.name = "set",
     .experts = EXPERTS,
     .topk = 1,
     .layers = LAYERS,
     .offset = AT_SET,
     .chunk_elements = CHUNK,
     .chunks = offsetof(struct model, set[HRT_DENSE_PARAMETERS]),
     .chunk_grads = offsetof(struct model, set[HRT_DENSE_GRADIENTS]),
     .slot = SLOTS(SLOT_SET, EXPERTS *CHUNK)}};
static const struct hrt_bucket buckets[] = {
    {.layers = 1, .params = 1, .param = (const int[]){2}},
    {.layers = LAYERS, .params = 1, .param = (const int[]){0}, .sets = 1, .set = (const int[]){0}},
    {.layers = 1, .params = 1, .param = (const int[]){1}},
};

static struct hrt_program program_of(enum hrt_precision precision, bool shard, int64_t bytes) {
    return (struct hrt_program){.precision = precision,
                                .param_elements = ELEMENTS,
                                .params = 5,
                                .param = params,
                                .sets = 1,
                                .set = sets,
                                .world = world.size,
                                .buckets = 3,
                                .bucket = buckets,
                                .bucket_bytes = bytes,
                                .dense = shard ? HRT_DENSE_STATES : HRT_DENSE_REPLICATE};
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

// ---- gradients that travel in bf16

// As a rank that does not sum them up sends them, rounded once.
static float sent(float x) {
    return hk_bf16_float(hk_bf16_round(x));
}

// The sum of a node, where the rank of `column` adds up: its own share does not travel.
static float narrow_node(int node, int each, int column, int64_t i) {
    float sum = 0;
    for (int c = 0; c < each; c++) {
        const float share = (float)gradient(node * each + c, i);
        const float term = c == column ? share : sent(share);
        sum = c ? sum + term : term;
    }
    return sum;
}

// The sum that `owner` has; where it goes to all it is rounded, for the owner, too.
static float narrow_sum(int owner, bool to_all, int64_t i) {
    const int each = ranks_of_node();
    float sum = 0;
    for (int node = 0; node < world.size / each; node++) {
        const float part = narrow_node(node, each, owner % each, i);
        const float term = node == owner / each ? part : sent(part);
        sum = node ? sum + term : term;
    }
    return to_all ? sent(sum) : sum;
}

// Bounds: each share is rounded when it leaves its rank, in its node's sum, and in the sum of all.
static void is_close(double sum, int64_t i) {
    const double unit = 1.0 / 256; // 8 significant bits, to the nearest.
    double exact = 0, size = 0;
    for (int r = 0; r < world.size; r++) {
        exact += gradient(r, i);
        size += fabs(gradient(r, i));
    }
    RANKS_CHECK(&world,
                fabs(sum - exact) <= ((1 + unit) * (1 + unit) * (1 + unit) - 1) * size * 1.00001);
}

// ---- gradients that travel as they are

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
static char *own_elements(const struct hrt_program *program, bool shard) {
    struct hrt_tensor tensor = {0};
    char *own = malloc(ELEMENTS);
    RANKS_CHECK(&world, own);
    memset(own, !shard, ELEMENTS);
    while (shard && hrt_params_tensor_next(program, &tensor)) {
        const struct hrt_params_part part =
            hrt_params_part(program, &tensor, HRT_MEANS, world.rank);
        RANKS_CHECK(&world, part.offset == tensor.offset + part.first);
        for (int64_t i = 0; i < part.count; i++) RANKS_CHECK(&world, !own[part.offset + i]++);
    }
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
    char *own = own_elements(&program, shard);
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

// By element, the rank that sums it up; -1: nobody does.
static int *owners_of(const struct hrt_program *program) {
    struct hrt_program shared = *program;
    struct hrt_tensor tensor = {0};
    int *owner = malloc(ELEMENTS * sizeof *owner);
    RANKS_CHECK(&world, owner);
    shared.dense = HRT_DENSE_STATES;
    for (int64_t i = 0; i < ELEMENTS; i++) owner[i] = -1;
    while (hrt_params_tensor_next(&shared, &tensor)) {
        for (int r = 0; r < world.size; r++) {
            const struct hrt_params_part part = hrt_params_part(&shared, &tensor, HRT_MEANS, r);
            for (int64_t i = 0; i < part.count; i++) owner[part.offset + i] = r;
        }
    }
    return owner;
}

static void sum_up_narrow(bool shard, int64_t bytes) {
    struct hrt_program program = program_of(HRT_FP32, shard, bytes);
    struct hrt_state state = {
        .program = &program, .comm = &world, .device.backend = &hrt_device_host};
    struct hrt_error error = {0};
    struct hrt_train_dense *dense;
    int64_t summed = 0;
    program.gradients_bf16 = true;
    state.values[HRT_GRADIENTS] = filled(HRT_FP32, world.rank);
    state.values[HRT_PARAMETERS] = filled(HRT_FP32, 0);
    int *owner = owners_of(&program);
    RANKS_CHECK(&world, hrt_train_dense_create(&dense, &state, &error));
    complete(dense, LAYERS);
    for (int64_t i = 0; i < ELEMENTS; i++) {
        const bool unused = i >= AT_UNUSED && i < AT_SET;
        if (owner[i] < 0 || unused || (shard && owner[i] != world.rank)) continue;
        const double sum = hrt_params_element(state.values[HRT_GRADIENTS], HRT_FP32, i);
        RANKS_CHECK(&world, sum == (double)narrow_sum(owner[i], !shard, i));
        is_close(sum, i);
        summed++;
    }
    RANKS_CHECK(&world, shard ? summed > 0 : summed == ELEMENTS - UNUSED);
    hrt_train_dense_publish(dense); // Parameters are not rounded.
    for (int64_t i = 0; i < ELEMENTS; i++)
        RANKS_CHECK(&world, hrt_params_element(state.values[HRT_PARAMETERS], HRT_FP32, i) ==
                                (double)(float)gradient(0, i));
    hrt_train_dense_destroy(dense);
    free(owner);
    free(state.values[HRT_GRADIENTS]);
    free(state.values[HRT_PARAMETERS]);
}

static void gradients_travel_rounded_and_are_summed_as_floats(void **state) {
    (void)state;
    sum_up_narrow(false, 1);
    sum_up_narrow(false, INT64_MAX);
    sum_up_narrow(true, 30000);
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

// ---- dense = shard

// A rank's buffers have its parts, one behind the other.
struct parts {
    struct hrt_program program;
    struct hrt_param param[5];
    struct hrt_set set;
    struct hrt_placement placement;
    struct model model;
    struct hrt_state state;
};

static void open_parts(struct parts *p) {
    struct hrt_error error = {0};
    int64_t offset = 0;
    *p = (struct parts){.program = program_of(HRT_FP32, false, 1), .set = sets[0]};
    memcpy(p->param, params, sizeof params);
    p->program.dense = HRT_DENSE_SHARD;
    p->program.param = p->param;
    p->program.set = &p->set;
    p->program.units = 3;
    p->program.unit_bytes = SLOTS_END;
    p->program.unit = buckets;
    for (int i = 0; i < 4; i++) {
        p->param[i].offset = offset;
        offset += p->param[i].layers * hrt_params_kept(&p->program, &p->param[i]);
    }
    p->set.offset = offset;
    offset += LAYERS * EXPERTS * hrt_params_kept_chunk(&p->program, &p->set);
    p->program.param_elements = offset;
    p->placement = (struct hrt_placement){.program = &p->program, .rank = world.rank};
    p->state = (struct hrt_state){.program = &p->program,
                                  .placement = &p->placement,
                                  .comm = &world,
                                  .model = &p->model,
                                  .device.backend = &hrt_device_host};
    p->state.values[HRT_GRADIENTS] = calloc((size_t)offset, sizeof(float));
    p->state.values[HRT_PARAMETERS] = calloc((size_t)offset, sizeof(float));
    RANKS_CHECK(&world, p->state.values[HRT_GRADIENTS] && p->state.values[HRT_PARAMETERS]);
    RANKS_CHECK(&world, hrt_train_dense_create(&p->model.dense, &p->state, &error));
}

static void close_parts(struct parts *p) {
    hrt_train_dense_destroy(p->model.dense);
    free(p->state.values[HRT_GRADIENTS]);
    free(p->state.values[HRT_PARAMETERS]);
}

// Where one rank alone would have the tensor.
static int64_t alone(const struct hrt_tensor *tensor) {
    if (tensor->param->set >= 0) return AT_SET + (tensor->layer * EXPERTS + tensor->expert) * CHUNK;
    for (int i = 0; i < 4; i++) {
        if (params[i].elements == tensor->param->elements)
            return params[i].offset + tensor->layer * params[i].elements;
    }
    abort();
}

static float *slot_of(const struct parts *p, const struct hrt_tensor *tensor, int kind) {
    const struct hrt_param *param = tensor->param;
    if (param->set >= 0) return p->model.set[kind][tensor->layer * EXPERTS + tensor->expert];
    const size_t at = kind ? param->grad_pointers : param->pointers;
    return ((float *const *)((const char *)&p->model + at))[tensor->layer];
}

// Calls `each` for the tensors of one layer of a unit, or bucket.
static void for_unit(const struct parts *p, int unit, int64_t layer,
                     void (*each)(const struct parts *, const struct hrt_tensor *)) {
    static const int of[] = {1, 2, 0, -1, 1}; // By parameter.
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(&p->program, &tensor)) {
        if (of[tensor.param - p->param] == unit &&
            (tensor.param->layers == 1 || tensor.layer == layer))
            each(p, &tensor);
    }
}

static void set_parameters(struct parts *p) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(&p->program, &tensor)) {
        const struct hrt_params_part part =
            hrt_params_part(&p->program, &tensor, HRT_PARAMETERS, world.rank);
        for (int64_t i = 0; i < part.count; i++)
            ((float *)p->state.values[HRT_PARAMETERS])[part.offset + i] =
                (float)(alone(&tensor) + part.first + i);
    }
}

static void is_whole(const struct parts *p, const struct hrt_tensor *tensor) {
    const float *slot = slot_of(p, tensor, HRT_DENSE_PARAMETERS);
    for (int64_t i = 0; i < tensor->param->elements; i++)
        RANKS_CHECK(&world, slot[i] == (float)(alone(tensor) + i));
}

static void add_gradient(const struct parts *p, const struct hrt_tensor *tensor) {
    float *slot = slot_of(p, tensor, HRT_DENSE_GRADIENTS);
    for (int64_t i = 0; i < tensor->param->elements; i++)
        slot[i] += (float)gradient(world.rank, alone(tensor) + i);
}

static void units_come_whole_and_two_layers_stay(void **state) {
    (void)state;
    struct parts p;
    open_parts(&p);
    set_parameters(&p);
    hrt_train_dense_bring(p.model.dense, 0, 0);
    hrt_train_dense_bring(p.model.dense, 1, 0);
    for (int64_t layer = 0; layer < LAYERS; layer++) {
        hrt_train_dense_bring(p.model.dense, 1, layer + 1); // Nothing behind the last.
        hrt_train_dense_await(p.model.dense, 1, layer);
        for_unit(&p, 1, layer, is_whole);
        if (layer + 1 < LAYERS) {
            hrt_train_dense_await(p.model.dense, 1, layer + 1);
            for_unit(&p, 1, layer, is_whole); // The next one has a slot of its own.
            hrt_train_dense_bring(p.model.dense, 1, layer + 1);
        }
        hrt_train_dense_release(p.model.dense, 1, layer);
    }
    hrt_train_dense_await(p.model.dense, 0, 0);
    for_unit(&p, 0, 0, is_whole);
    close_parts(&p);
}

static void add_up_in_parts(bool narrow) {
    struct parts p;
    struct hrt_tensor tensor = {0};
    open_parts(&p);
    p.program.gradients_bf16 = narrow;
    for (int iteration = 0; iteration < 2; iteration++) {
        hrt_train_dense_last(p.model.dense, iteration == 1);
        for_unit(&p, 0, 0, add_gradient);
        hrt_train_dense_ready(p.model.dense, 0, 0);
        for (int64_t layer = LAYERS - 1; layer >= 0; layer--) {
            for_unit(&p, 1, layer, add_gradient);
            hrt_train_dense_ready(p.model.dense, 1, layer);
        }
        for_unit(&p, 2, 0, add_gradient);
        hrt_train_dense_ready(p.model.dense, 2, 0);
    }
    hrt_train_dense_finish(p.model.dense);
    while (hrt_params_tensor_next(&p.program, &tensor)) {
        const struct hrt_params_part part =
            hrt_params_part(&p.program, &tensor, HRT_GRADIENTS, world.rank);
        const float *own = (float *)p.state.values[HRT_GRADIENTS] + part.offset;
        const float *slot = slot_of(&p, &tensor, HRT_DENSE_GRADIENTS);
        for (int64_t i = 0; i < part.count; i++) {
            const int64_t at = alone(&tensor) + part.first + i;
            const bool unused = at >= AT_UNUSED && at < AT_SET;
            RANKS_CHECK(&world, own[i] == 2 * (narrow && !unused ? narrow_sum(world.rank, false, at)
                                                                 : (float)sum_of(HRT_FP32, at)));
        }
        for (int64_t i = 0; i < tensor.param->elements; i++) RANKS_CHECK(&world, slot[i] == 0);
    }
    close_parts(&p);
}

static void gradients_of_iterations_add_up_in_parts(void **state) {
    (void)state;
    add_up_in_parts(false);
    add_up_in_parts(true);
}

// HECATE_TOPOLOGY: one machine stands for several nodes.
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_all_ranks_in_order),
        cmocka_unit_test(small_tensors_wait_for_a_bucket),
        cmocka_unit_test(what_nobody_told_is_summed_in_the_end),
        cmocka_unit_test(each_rank_updates_its_part),
        cmocka_unit_test(gradients_travel_rounded_and_are_summed_as_floats),
        cmocka_unit_test(before_the_last_iteration_nothing_is_summed),
        cmocka_unit_test(units_come_whole_and_two_layers_stay),
        cmocka_unit_test(gradients_of_iterations_add_up_in_parts),
    };
    ranks_open(&world, getenv("HECATE_TOPOLOGY"));
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    hrt_net_comm_close(&world);
    return failed;
}
