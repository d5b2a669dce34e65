// This rank's parts of dense parameters: where they are, and how a buffer becomes whole or parts again.
#include "kernels/sum_squares/sum_squares.h"
#include "runtime/device/device.h"
#include "runtime/train/dense_jobs.h"
#include "runtime/train/optimizer.h"

// This rank's part of a tensor.
int64_t hrt_train_dense_own(const struct hrt_train_dense *dense, int64_t tensor, int64_t *count) {
    const struct hrt_train_dense_piece whole = {&dense->tensor[tensor], 0, INT64_MAX / 2};
    return hrt_train_dense_begin(dense, &whole, dense->comm->rank, count);
}

int64_t hrt_train_dense_ask_squares(const struct hrt_train_dense *dense, double *sum) {
    struct hrt_device *device = dense->device;
    for (int64_t i = 0; i < dense->tensors; i++) {
        int64_t count;
        const int64_t at = hrt_train_dense_own(dense, i, &count);
        device->backend->sum_squares(device, &sum[i], (const float *)dense->grads + at, count, 1);
    }
    return dense->tensors;
}

double hrt_train_dense_own_squares(const struct hrt_train_dense *dense) {
    double sum = 0;
    for (int64_t i = 0; i < dense->tensors; i++) {
        int64_t count;
        const int64_t at = hrt_train_dense_own(dense, i, &count);
        sum += dense->element == sizeof(float)
                   ? hk_sum_squares_f32((const float *)dense->grads + at, count)
                   : hk_sum_squares_f64((const double *)dense->grads + at, count);
    }
    return sum;
}

// ---- the optimizer's spans

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

int64_t hrt_train_dense_cuts(const struct hrt_train_dense *dense) {
    return dense->tensors + dense->program->sets;
}

int64_t hrt_train_dense_cut(const struct hrt_train_dense *dense, const struct hrt_span *span,
                            int64_t spans, struct hrt_span *cut) {
    const struct hrt_program *program = dense->program;
    int64_t cuts = 0;
    for (int64_t s = 0; s < spans; s++) {
        for (int64_t i = 0; i < dense->tensors; i++) {
            int64_t count;
            const int64_t at = hrt_train_dense_own(dense, i, &count);
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

// ---- from all ranks

static void gather_queued(struct hrt_train_dense *dense, int64_t queued, void *buffer) {
    if (queued) hrt_train_dense_start(dense, 0, queued, buffer, false, true);
    hrt_train_dense_wait(dense, "the parts of parameters");
}

void hrt_train_dense_gather(struct hrt_train_dense *dense, void *buffer) {
    for (int64_t i = 0; i < dense->tensors; i++) dense->queue[i] = i;
    gather_queued(dense, dense->tensors, buffer);
}

// Queues all layers of a parameter or set, whose first tensor is `first`.
static int64_t queue_layers(struct hrt_train_dense *dense, int64_t queued, int64_t first,
                            int64_t layers) {
    for (int64_t layer = 0; layer < layers; layer++) dense->queue[queued++] = first + layer;
    return queued;
}

void hrt_train_dense_gather_matrices(struct hrt_train_dense *dense, void *buffer) {
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

void hrt_train_dense_forget_others(const struct hrt_train_dense *dense, int64_t index,
                                   void *buffer) {
    const struct hrt_train_dense_tensor *tensor = &dense->tensor[index];
    const int64_t end = tensor->offset + tensor->count, element = (int64_t)dense->element;
    int64_t count;
    const int64_t own = hrt_train_dense_own(dense, index, &count);
    hrt_device_forget(dense->device, (char *)buffer + tensor->offset * element,
                      (size_t)((own - tensor->offset) * element));
    hrt_device_forget(dense->device, (char *)buffer + (own + count) * element,
                      (size_t)((end - own - count) * element));
}

void hrt_train_dense_forget(const struct hrt_train_dense *dense, void *buffer) {
    for (int64_t i = 0; i < dense->tensors; i++) hrt_train_dense_forget_others(dense, i, buffer);
}
