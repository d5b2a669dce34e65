// Which gradients are summed when.
#include "runtime/train/dense.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/params/part.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
#include "runtime/plan/held.h"
#include "runtime/train/dense_jobs.h"

// Frozen parameters are in parts with dense = shard, and have no gradient.
static bool is_dense(const struct hrt_program *program, const struct hrt_param *param) {
    const bool frozen = program->dense == HRT_DENSE_SHARD && param->frozen;
    return param->set < 0 && (param->trainable || frozen);
}

static int64_t count_tensors(const struct hrt_program *program) {
    int64_t tensors = 0;
    for (int i = 0; i < program->params; i++)
        tensors += is_dense(program, &program->param[i]) ? program->param[i].layers : 0;
    for (int i = 0; !program->owned && i < program->sets; i++)
        tensors += program->set[i].layers * program->set[i].experts;
    return tensors;
}

// Elements of the widest rank's parts, of `ranks` ranks.
static int64_t widest_parts(const struct hrt_program *program, int64_t ranks) {
    int64_t elements = 0;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (is_dense(program, param)) elements += param->layers * hpl_part(param->elements, ranks);
    }
    for (int i = 0; !program->owned && i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        elements += set->layers * set->experts * hpl_part(set->chunk_elements, ranks);
    }
    return elements;
}

// Bytes of one message at most: a round's, or all parts together.
static size_t stride_of(const struct hrt_program *program) {
    const size_t all = (size_t)(widest_parts(program, program->world) *
                                hrt_params_element_bytes(program->precision));
    const bool apart = program->device && program->device->apart;
    const size_t round =
        (size_t)(apart ? HRT_DENSE_ROUND_APART : HRT_DENSE_ROUND) / (size_t)program->world;
    return ((all < round ? all : round) + 64) / 64 * 64;
}

size_t hrt_train_dense_bytes(const struct hrt_program *program) {
    if (!program->world) return 0;
    return program->unit_bytes +
           stride_of(program) *
               ((size_t)program->world + hrt_train_dense_received(program->world)) +
           (size_t)hrt_train_dense_room(program->world) * sizeof(struct hrt_step) +
           (size_t)count_tensors(program) *
               (sizeof(struct hrt_train_dense_tensor) + sizeof(struct hrt_train_dense_job));
}

static void list_tensors(struct hrt_train_dense *dense) {
    const struct hrt_program *program = dense->program;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        dense->param_tensor[i] = is_dense(program, param) ? dense->tensors : -1;
        for (int64_t layer = 0; is_dense(program, param) && layer < param->layers; layer++)
            dense->tensor[dense->tensors++] = (struct hrt_train_dense_tensor){
                .offset = param->offset + layer * hrt_params_kept(program, param),
                .count = param->elements,
                .panels = param->layout == HRT_PANELS};
    }
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        int64_t first = 0, count = set->chunk_elements;
        if (program->dense == HRT_DENSE_REPLICATE) // Else ranks keep parts of whole chunks.
            count = hrt_params_trained(program, i, &first);
        dense->set_tensor[i] = program->owned ? -1 : dense->tensors;
        for (int64_t chunk = 0; !program->owned && chunk < set->layers * set->experts; chunk++)
            dense->tensor[dense->tensors++] = (struct hrt_train_dense_tensor){
                .offset = set->offset + chunk * hrt_params_kept_chunk(program, set) + first,
                .count = count};
    }
}

// Calls `each` for the tensors of a bucket; `layer` counts where there are layers.
static void for_bucket(struct hrt_train_dense *dense, int number, int64_t layer,
                       void (*each)(struct hrt_train_dense *dense, int64_t tensor)) {
    const struct hrt_bucket *bucket = &dense->program->bucket[number];
    for (int i = 0; i < bucket->params; i++) {
        const int64_t first = dense->param_tensor[bucket->param[i]];
        const int64_t layers = dense->program->param[bucket->param[i]].layers;
        assert(first >= 0);
        each(dense, first + (layers > 1 ? layer : 0));
    }
    for (int i = 0; i < bucket->sets; i++) {
        const struct hrt_set *set = &dense->program->set[bucket->set[i]];
        const int64_t first = dense->set_tensor[bucket->set[i]];
        assert(first >= 0);
        for (int64_t e = 0; e < set->experts; e++)
            each(dense, first + (set->layers > 1 ? layer : 0) * set->experts + e);
    }
}

static void expect(struct hrt_train_dense *dense, int64_t tensor) {
    dense->tensor[tensor].expected = true;
}

// A parameter outside of all buckets gets no gradient: it is zero on every rank.
static void expect_all(struct hrt_train_dense *dense) {
    for (int b = 0; b < dense->program->buckets; b++) {
        const struct hrt_bucket *bucket = &dense->program->bucket[b];
        for (int64_t layer = 0; layer < bucket->layers; layer++)
            for_bucket(dense, b, layer, expect);
    }
}

// Ranks that sum among themselves first: those of a node, where several nodes have equally many; else all.
static int ranks_of_node(const struct hrt_comm *comm) {
    const int each =
        comm->nodes > 1 && comm->size % comm->nodes == 0 ? comm->size / comm->nodes : 1;
    for (int r = 0; r < comm->size; r++) {
        if (each == 1 || comm->node_of[r] != r / each) return comm->size;
    }
    return each;
}

// Touched where messages need it.
static char *take(struct hrt_state *state, size_t bytes) {
    return state->device.backend->take(&state->device, HRT_OF_DEVICE, bytes, true);
}

bool hrt_train_dense_create(struct hrt_train_dense **created, struct hrt_state *state,
                            struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    const size_t ranks = (size_t)program->world, tensors = (size_t)count_tensors(program);
    struct hrt_train_dense *dense = *created = calloc(1, sizeof *dense);
    if (!dense) return hrt_fail(error, "out of memory");
    *dense = (struct hrt_train_dense){
        .comm = state->comm,
        .device = &state->device,
        .program = program,
        .grads = state->values[HRT_GRADIENTS],
        .params = state->values[HRT_PARAMETERS],
        .element = (size_t)hrt_params_element_bytes(program->precision),
        .kind = program->dense,
        .tensor = calloc(tensors + 1, sizeof *dense->tensor),
        .param_tensor = calloc((size_t)program->params + 1, sizeof *dense->param_tensor),
        .set_tensor = calloc((size_t)program->sets + 1, sizeof *dense->set_tensor),
        .queue = calloc(tensors + 1, sizeof *dense->queue),
        .job = calloc(tensors + 1, sizeof *dense->job),
        .stride = stride_of(program),
        .sent = take(state, stride_of(program) * ranks),
        .width = ranks_of_node(state->comm),
        .received = take(state, stride_of(program) * hrt_train_dense_received(program->world)),
        .read = malloc(3 * ranks * sizeof *dense->read),
        .step = malloc((size_t)hrt_train_dense_room(program->world) * sizeof *dense->step),
    };
    if (!dense->tensor || !dense->param_tensor || !dense->set_tensor || !dense->queue ||
        !dense->job || !dense->sent || !dense->received || !dense->read || !dense->step) {
        hrt_train_dense_destroy(dense);
        *created = NULL;
        return hrt_fail(error, "out of memory");
    }
    dense->brought = dense->read + ranks;
    dense->arrived = dense->brought + ranks;
    list_tensors(dense);
    expect_all(dense);
    if (dense->kind != HRT_DENSE_SHARD || hrt_train_dense_units_create(dense, state, error))
        return true;
    hrt_train_dense_destroy(dense);
    *created = NULL;
    return false;
}

void hrt_train_dense_destroy(struct hrt_train_dense *dense) {
    if (!dense) return;
    hrt_train_dense_wait(dense, "the last sums of gradients");
    hrt_train_dense_units_destroy(dense);
    free(dense->tensor);
    free(dense->param_tensor);
    free(dense->set_tensor);
    free(dense->queue);
    free(dense->job);
    struct hrt_device *device = dense->device;
    const int64_t ranks = dense->program->world;
    device->backend->give(device, HRT_OF_DEVICE, dense->sent, dense->stride * (size_t)ranks);
    device->backend->give(device, HRT_OF_DEVICE, dense->received,
                          dense->stride * hrt_train_dense_received(ranks));
    free(dense->read);
    free(dense->step);
    free(dense);
}

// ---- gradients

static void enqueue(struct hrt_train_dense *dense, int64_t tensor) {
    assert(!dense->tensor[tensor].queued);
    dense->tensor[tensor].queued = true;
    dense->queue[dense->queued++] = tensor;
}

static void start_queued(struct hrt_train_dense *dense) {
    if (dense->started == dense->queued) return;
    hrt_train_dense_start(dense, dense->started, dense->queued, dense->grads, true,
                          dense->kind == HRT_DENSE_REPLICATE);
    dense->started = dense->queued;
}

void hrt_train_dense_last(struct hrt_train_dense *dense, bool last) {
    if (!dense) return;
    dense->last = last;
    hrt_train_dense_complete(dense);
}

void hrt_train_dense_ready(struct hrt_train_dense *dense, int bucket, int64_t layer) {
    int64_t elements = 0;
    const bool shard = dense->kind == HRT_DENSE_SHARD;
    if (shard) hrt_train_dense_reduce(dense, bucket, layer);
    if (shard || !dense->last) return;
    for_bucket(dense, bucket, layer, enqueue);
    for (int64_t i = dense->started; i < dense->queued; i++)
        elements += dense->tensor[dense->queue[i]].count;
    if (elements * (int64_t)dense->element >= dense->program->bucket_bytes) start_queued(dense);
}

void hrt_train_dense_finish(struct hrt_train_dense *dense) {
    hrt_train_dense_complete(dense);
    if (dense->kind == HRT_DENSE_SHARD) return; // Each part was summed as it was complete.
    for (int64_t i = 0; i < dense->tensors; i++) {
        if (dense->tensor[i].expected && !dense->tensor[i].queued) enqueue(dense, i);
    }
    start_queued(dense);
    hrt_train_dense_wait(dense, "the sum of gradients");
    for (int64_t i = 0; i < dense->tensors; i++) dense->tensor[i].queued = false;
    dense->queued = dense->started = 0;
    dense->last = false;
}

// ---- dense = states

void hrt_train_dense_publish(struct hrt_train_dense *dense) {
    if (dense->kind != HRT_DENSE_STATES) return;
    for (int64_t i = 0; i < dense->tensors; i++) {
        const struct hrt_train_dense_tensor *tensor = &dense->tensor[i];
        hrt_device_clear(dense->device,
                         (char *)dense->grads + (size_t)tensor->offset * dense->element,
                         (size_t)tensor->count * dense->element);
        dense->queue[i] = i;
    }
    if (dense->tensors) hrt_train_dense_start(dense, 0, dense->tensors, dense->params, false, true);
    hrt_train_dense_wait(dense, "the parts of parameters");
}
