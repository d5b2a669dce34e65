// Which gradients are summed when, and which part of everything is this rank's.
#include "runtime/train/dense.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/sum_squares/sum_squares.h"
#include "runtime/base/error.h"
#include "runtime/params/state.h"
#include "runtime/params/tensor.h"
#include "runtime/train/dense_jobs.h"
#include "runtime/train/optimizer.h"

// Frozen parameters are in parts with dense = shard, and have no gradient.
static bool is_dense(const struct hrt_program *program, const struct hrt_param *param) {
    return param->set < 0 && (param->trainable || (program->dense_shard && param->frozen));
}

static int64_t count_tensors(const struct hrt_program *program) {
    int64_t tensors = 0;
    for (int i = 0; i < program->params; i++)
        tensors += is_dense(program, &program->param[i]) ? program->param[i].layers : 0;
    for (int i = 0; !program->owned && i < program->sets; i++) tensors += program->set[i].layers;
    return tensors;
}

// Elements of the widest rank's parts, of `ranks` ranks: those of one tensor differ by an element at most.
static int64_t widest_parts(const struct hrt_program *program, int64_t ranks) {
    int64_t elements = 0;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (is_dense(program, param))
            elements += param->layers * ((param->elements + ranks - 1) / ranks);
    }
    for (int i = 0; !program->owned && i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        elements += set->layers * ((set->experts * set->chunk_elements + ranks - 1) / ranks);
    }
    return elements;
}

// Bytes of one message at most: a round's, or all parts together.
static size_t stride_of(const struct hrt_program *program) {
    const size_t all =
        (size_t)(widest_parts(program, program->world) * hrt_element_bytes(program->precision));
    const size_t round = HRT_DENSE_ROUND / (size_t)program->world;
    return ((all < round ? all : round) + 64) / 64 * 64;
}

size_t hrt_dense_bytes(const struct hrt_program *program) {
    if (!program->world) return 0;
    return (size_t)hrt_dense_units_bytes(program) +
           stride_of(program) * ((size_t)program->world + hrt_dense_received(program->world)) +
           (size_t)hrt_dense_room(program->world) * sizeof(struct hrt_step) +
           (size_t)count_tensors(program) *
               (sizeof(struct hrt_dense_tensor) + sizeof(struct hrt_dense_job));
}

static void list_tensors(struct hrt_dense *dense) {
    const struct hrt_program *program = dense->program;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        dense->param_tensor[i] = is_dense(program, param) ? dense->tensors : -1;
        for (int64_t layer = 0; is_dense(program, param) && layer < param->layers; layer++)
            dense->tensor[dense->tensors++] = (struct hrt_dense_tensor){
                .offset = param->offset + layer * param->elements, .count = param->elements};
    }
    for (int i = 0; i < program->sets; i++) {
        const struct hrt_set *set = &program->set[i];
        const int64_t count = set->experts * set->chunk_elements;
        dense->set_tensor[i] = program->owned ? -1 : dense->tensors;
        for (int64_t layer = 0; !program->owned && layer < set->layers; layer++)
            dense->tensor[dense->tensors++] =
                (struct hrt_dense_tensor){.offset = set->offset + layer * count, .count = count};
    }
}

// Calls `each` for the tensors of a bucket; `layer` counts where there are layers.
static void for_bucket(struct hrt_dense *dense, int number, int64_t layer,
                       void (*each)(struct hrt_dense *dense, int64_t tensor)) {
    const struct hrt_bucket *bucket = &dense->program->bucket[number];
    for (int i = 0; i < bucket->params; i++) {
        const int64_t first = dense->param_tensor[bucket->param[i]];
        const int64_t layers = dense->program->param[bucket->param[i]].layers;
        assert(first >= 0);
        each(dense, first + (layers > 1 ? layer : 0));
    }
    for (int i = 0; i < bucket->sets; i++) {
        const int64_t first = dense->set_tensor[bucket->set[i]];
        const int64_t layers = dense->program->set[bucket->set[i]].layers;
        assert(first >= 0);
        each(dense, first + (layers > 1 ? layer : 0));
    }
}

static void expect(struct hrt_dense *dense, int64_t tensor) {
    dense->tensor[tensor].expected = true;
}

// What no bucket has gets no gradient: it is zero on every rank.
static void expect_all(struct hrt_dense *dense) {
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

bool hrt_dense_create(struct hrt_dense **created, struct hrt_state *state,
                      struct hrt_error *error) {
    const struct hrt_program *program = state->program;
    const size_t ranks = (size_t)program->world, tensors = (size_t)count_tensors(program);
    struct hrt_dense *dense = *created = calloc(1, sizeof *dense);
    if (!dense) return hrt_fail(error, "out of memory");
    *dense = (struct hrt_dense){
        .comm = state->comm,
        .device = &state->device,
        .program = program,
        .grads = state->values[HRT_GRADIENTS],
        .params = state->values[HRT_PARAMETERS],
        .element = (size_t)hrt_element_bytes(program->precision),
        .states = program->dense_states,
        .shard = program->dense_shard,
        .tensor = calloc(tensors + 1, sizeof *dense->tensor),
        .param_tensor = calloc((size_t)program->params + 1, sizeof *dense->param_tensor),
        .set_tensor = calloc((size_t)program->sets + 1, sizeof *dense->set_tensor),
        .queue = calloc(tensors + 1, sizeof *dense->queue),
        .job = calloc(tensors + 1, sizeof *dense->job),
        .stride = stride_of(program),
        .sent = take(state, stride_of(program) * ranks),
        .width = ranks_of_node(state->comm),
        .received = take(state, stride_of(program) * hrt_dense_received(program->world)),
        .read = malloc(3 * ranks * sizeof *dense->read),
        .step = malloc((size_t)hrt_dense_room(program->world) * sizeof *dense->step),
    };
    if (!dense->tensor || !dense->param_tensor || !dense->set_tensor || !dense->queue ||
        !dense->job || !dense->sent || !dense->received || !dense->read || !dense->step) {
        hrt_dense_destroy(dense);
        *created = NULL;
        return hrt_fail(error, "out of memory");
    }
    dense->brought = dense->read + ranks;
    dense->arrived = dense->brought + ranks;
    list_tensors(dense);
    expect_all(dense);
    if (!dense->shard || hrt_dense_units_create(dense, state)) return true;
    hrt_dense_destroy(dense);
    *created = NULL;
    return hrt_fail(error, "out of memory");
}

void hrt_dense_destroy(struct hrt_dense *dense) {
    if (!dense) return;
    hrt_dense_wait(dense, "the last sums of gradients");
    hrt_dense_units_destroy(dense);
    free(dense->tensor);
    free(dense->param_tensor);
    free(dense->set_tensor);
    free(dense->queue);
    free(dense->job);
    struct hrt_device *device = dense->device;
    const int64_t ranks = dense->program->world;
    device->backend->give(device, HRT_OF_DEVICE, dense->sent, dense->stride * (size_t)ranks);
    device->backend->give(device, HRT_OF_DEVICE, dense->received,
                          dense->stride * hrt_dense_received(ranks));
    free(dense->read);
    free(dense->step);
    free(dense);
}

// ---- gradients

static void enqueue(struct hrt_dense *dense, int64_t tensor) {
    assert(!dense->tensor[tensor].queued);
    dense->tensor[tensor].queued = true;
    dense->queue[dense->queued++] = tensor;
}

static void start_queued(struct hrt_dense *dense) {
    if (dense->started == dense->queued) return;
    hrt_dense_start(dense, dense->started, dense->queued, dense->grads, true, !dense->states);
    dense->started = dense->queued;
}

void hrt_dense_last(struct hrt_dense *dense, bool last) {
    if (!dense) return;
    dense->last = last;
    hrt_dense_complete(dense);
}

void hrt_dense_ready(struct hrt_dense *dense, int bucket, int64_t layer) {
    int64_t elements = 0;
    if (dense->shard) hrt_dense_reduce(dense, bucket, layer);
    if (dense->shard || !dense->last) return;
    for_bucket(dense, bucket, layer, enqueue);
    for (int64_t i = dense->started; i < dense->queued; i++)
        elements += dense->tensor[dense->queue[i]].count;
    if (elements * (int64_t)dense->element >= dense->program->bucket_bytes) start_queued(dense);
}

void hrt_dense_finish(struct hrt_dense *dense) {
    hrt_dense_complete(dense);
    if (dense->shard) return; // Each part was summed as it was complete.
    for (int64_t i = 0; i < dense->tensors; i++) {
        if (dense->tensor[i].expected && !dense->tensor[i].queued) enqueue(dense, i);
    }
    start_queued(dense);
    hrt_dense_wait(dense, "the sum of gradients");
    for (int64_t i = 0; i < dense->tensors; i++) dense->tensor[i].queued = false;
    dense->queued = dense->started = 0;
    dense->last = false;
}

// This rank's part of a tensor.
int64_t hrt_dense_own(const struct hrt_dense *dense, int64_t tensor, int64_t *count) {
    const struct hrt_dense_piece whole = {&dense->tensor[tensor], 0, INT64_MAX / 2};
    return hrt_dense_begin(dense, &whole, dense->comm->rank, count);
}

int64_t hrt_dense_ask_squares(const struct hrt_dense *dense, double *sum) {
    struct hrt_device *device = dense->device;
    for (int64_t i = 0; i < dense->tensors; i++) {
        int64_t count;
        const int64_t at = hrt_dense_own(dense, i, &count);
        device->backend->sum_squares(device, &sum[i], (const float *)dense->grads + at, count, 1);
    }
    return dense->tensors;
}

double hrt_dense_own_squares(const struct hrt_dense *dense) {
    double sum = 0;
    for (int64_t i = 0; i < dense->tensors; i++) {
        int64_t count;
        const int64_t at = hrt_dense_own(dense, i, &count);
        sum += dense->element == sizeof(float)
                   ? hk_sum_squares_f32((const float *)dense->grads + at, count)
                   : hk_sum_squares_f64((const double *)dense->grads + at, count);
    }
    return sum;
}

// ---- dense = states

// The part of `span` that lies in [at, at + count).
static struct hrt_span overlap(const struct hrt_span *span, int64_t at, int64_t count) {
    const int64_t begin = span->offset > at ? span->offset : at;
    const int64_t span_end = span->offset + span->count;
    const int64_t end = span_end < at + count ? span_end : at + count;
    struct hrt_span part = *span;
    part.offset = begin;
    part.count = end > begin ? end - begin : 0;
    return part;
}

int64_t hrt_dense_cuts(const struct hrt_dense *dense) {
    return dense->tensors + dense->program->sets;
}

int64_t hrt_dense_cut(const struct hrt_dense *dense, const struct hrt_span *span, int64_t spans,
                      struct hrt_span *cut) {
    const struct hrt_program *program = dense->program;
    int64_t cuts = 0;
    for (int64_t s = 0; s < spans; s++) {
        for (int64_t i = 0; i < dense->tensors; i++) {
            int64_t count;
            const int64_t at = hrt_dense_own(dense, i, &count);
            cut[cuts] = overlap(&span[s], at, count);
            cut[cuts].shared = cut[cuts].matrix;
            cuts += cut[cuts].count > 0;
        }
        for (int i = 0; program->owned && i < program->sets; i++) {
            const struct hrt_set *set = &program->set[i];
            const int64_t elements = set->layers * set->experts * set->chunk_elements;
            cut[cuts] = overlap(&span[s], set->offset, elements);
            cuts += cut[cuts].count > 0;
        }
    }
    return cuts;
}

static void gather_queued(struct hrt_dense *dense, int64_t queued, void *buffer) {
    if (queued) hrt_dense_start(dense, 0, queued, buffer, false, true);
    hrt_dense_wait(dense, "the parts of parameters");
}

void hrt_dense_gather(struct hrt_dense *dense, void *buffer) {
    for (int64_t i = 0; i < dense->tensors; i++) dense->queue[i] = i;
    gather_queued(dense, dense->tensors, buffer);
}

// Queues all layers of a parameter or set, whose first tensor is `first`.
static int64_t queue_layers(struct hrt_dense *dense, int64_t queued, int64_t first,
                            int64_t layers) {
    for (int64_t layer = 0; layer < layers; layer++) dense->queue[queued++] = first + layer;
    return queued;
}

void hrt_dense_gather_matrices(struct hrt_dense *dense, void *buffer) {
    const struct hrt_program *program = dense->program;
    int64_t queued = 0;
    int last = -1; // Set, whose parameters follow each other.
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (!param->muon) continue;
        if (param->set < 0) {
            queued = queue_layers(dense, queued, dense->param_tensor[i], param->layers);
        } else if (!program->owned && param->set != last) {
            last = param->set;
            queued =
                queue_layers(dense, queued, dense->set_tensor[last], program->set[last].layers);
        }
    }
    gather_queued(dense, queued, buffer);
}

void hrt_dense_forget(const struct hrt_dense *dense, void *buffer) {
    const int64_t element = (int64_t)dense->element;
    for (int64_t i = 0; i < dense->tensors; i++) {
        const struct hrt_dense_tensor *tensor = &dense->tensor[i];
        const int64_t end = tensor->offset + tensor->count;
        int64_t count;
        const int64_t own = hrt_dense_own(dense, i, &count);
        hrt_device_forget(dense->device, (char *)buffer + tensor->offset * element,
                          (size_t)((own - tensor->offset) * element));
        hrt_device_forget(dense->device, (char *)buffer + (own + count) * element,
                          (size_t)((end - own - count) * element));
    }
}

void hrt_dense_publish(struct hrt_dense *dense) {
    if (!dense->states) return;
    for (int64_t i = 0; i < dense->tensors; i++) {
        const struct hrt_dense_tensor *tensor = &dense->tensor[i];
        int64_t at = tensor->offset, count = tensor->count;
        if (dense->shard) { // Muon has brought others' parts, which are given back.
            hrt_dense_clear_others(dense, i);
            at = hrt_dense_own(dense, i, &count);
        }
        hrt_device_clear(dense->device, (char *)dense->grads + (size_t)at * dense->element,
                         (size_t)count * dense->element);
    }
    if (!dense->shard) hrt_dense_gather(dense, dense->params);
}
