// Initialization: normal, ones, zeros and the rotary embedding's table.
#include "runtime/params/init.h"

#include <assert.h>

#include "kernels/rope/rope.h"
#include "runtime/params/tensor.h"
#include "runtime/random/draw.h"

// `at` points at the tensor's first element.
static void init_normal(const struct hrt_program *program, const struct hrt_tensor *tensor,
                        void *at, uint64_t seed) {
    char path[HRT_PATH_MAX];
    hrt_tensor_path(tensor, path);
    const struct hrt_stream stream = hrt_stream_make(seed, "init", path);
    const struct hrt_param *param = tensor->param;
    const int64_t size = hrt_param_size(param), blocks = (size + 3) / 4;

#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; block++) {
        double normal[4];
        hrt_draw_normals(stream, (uint64_t)block, normal);
        for (int64_t i = 4 * block; i < 4 * block + 4 && i < size; i++) {
            hrt_element_set(at, program->precision, hrt_stored_index(param, i),
                            param->init_value * normal[i - 4 * block]);
        }
    }
}

static void init_ones(const struct hrt_program *program, const struct hrt_tensor *tensor,
                      void *at) {
    const int64_t size = hrt_param_size(tensor->param);
    for (int64_t i = 0; i < size; i++)
        hrt_element_set(at, program->precision, hrt_stored_index(tensor->param, i), 1);
}

static void init_rope(const struct hrt_program *program, const struct hrt_tensor *tensor,
                      void *at) {
    const struct hrt_param *param = tensor->param;
    assert(param->rank == 2 && param->layout == HRT_ROWS);
    const struct hk_rope_rule rule = {
        .theta = param->init_value,
        .factor = param->rope.factor,
        .low = param->rope.low,
        .high = param->rope.high,
        .amplitude = param->rope.amplitude,
    };
    if (program->precision == HRT_FP64) {
        hk_rope_table_f64(at, param->shape[0], param->shape[1], rule);
    } else {
        hk_rope_table_f32(at, param->shape[0], param->shape[1], rule);
    }
}

static void *first_element(const struct hrt_program *program, const struct hrt_tensor *tensor,
                           void *params) {
    return (char *)params + tensor->offset * hrt_element_bytes(program->precision);
}

void hrt_init_params(const struct hrt_program *program, void *params, uint64_t seed) {
    struct hrt_tensor tensor = {0};
    while (hrt_tensor_next(program, &tensor)) {
        if (!hrt_tensor_is_here(program, &tensor)) continue;
        void *at = first_element(program, &tensor, params);
        if (tensor.param->init == HRT_INIT_NORMAL) init_normal(program, &tensor, at, seed);
        if (tensor.param->init == HRT_INIT_ONES) init_ones(program, &tensor, at);
    }
    hrt_init_tables(program, params);
}

void hrt_init_tables(const struct hrt_program *program, void *params) {
    struct hrt_tensor tensor = {0};
    while (hrt_tensor_next(program, &tensor)) {
        if (tensor.param->init == HRT_INIT_ROPE)
            init_rope(program, &tensor, first_element(program, &tensor, params));
    }
}
