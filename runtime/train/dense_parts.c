// This rank's parts of dense parameters: where they are, their squares, and all of a matrix from them.
#include "kernels/sum_squares/sum_squares.h"
#include "runtime/device/device.h"
#include "runtime/params/part.h"
#include "runtime/train/dense_jobs.h"

// This rank's part of a tensor: where it begins in the buffers, and how many elements it has.
static int64_t own_part(const struct hrt_train_dense *dense, int64_t tensor, int64_t *count) {
    const struct hrt_train_dense_tensor *of = &dense->tensor[tensor];
    const int64_t begin = hrt_params_cut(of->count, dense->comm->size, dense->comm->rank, count);
    return of->offset + (dense->kind == HRT_DENSE_SHARD ? 0 : begin);
}

int64_t hrt_train_dense_ask_squares(const struct hrt_train_dense *dense, double *sum) {
    struct hrt_device *device = dense->device;
    for (int64_t i = 0; i < dense->tensors; i++) {
        int64_t count;
        const int64_t at = own_part(dense, i, &count);
        device->backend->sum_squares(device, &sum[i], (const float *)dense->grads + at, count, 1);
    }
    return dense->tensors;
}

double hrt_train_dense_own_squares(const struct hrt_train_dense *dense) {
    double sum = 0;
    for (int64_t i = 0; i < dense->tensors; i++) {
        int64_t count;
        const int64_t at = own_part(dense, i, &count);
        sum += dense->element == sizeof(float)
                   ? hk_sum_squares_f32((const float *)dense->grads + at, count)
                   : hk_sum_squares_f64((const double *)dense->grads + at, count);
    }
    return sum;
}

// ---- matrices

int64_t hrt_train_dense_widest(const struct hrt_program *program) {
    int64_t widest = 0;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        const int64_t all =
            param->set < 0 ? param->elements : program->set[param->set].chunk_elements;
        if (param->muon && hrt_params_is_cut(program, param, HRT_MEANS) && all > widest)
            widest = all;
    }
    return widest;
}

void *hrt_train_dense_bring_gradient(struct hrt_train_dense *dense, const struct hrt_tensor *tensor,
                                     void *room) {
    const struct hrt_param *param = tensor->param;
    const bool of_set = param->set >= 0;
    const int64_t first =
        of_set ? dense->set_tensor[param->set] : dense->param_tensor[param - dense->program->param];
    const int64_t experts = of_set ? dense->program->set[param->set].experts : 1;
    const int64_t index = first + tensor->layer * experts + tensor->expert;
    dense->queue[0] = index;
    dense->last_sum = hrt_train_dense_submit(dense, &dense->job[0], dense->queue, 1, dense->grads,
                                             room, false, true);
    hrt_train_dense_wait(dense, "the gradient of a matrix");
    return (char *)room + (size_t)(of_set ? param->offset : 0) * dense->element;
}
