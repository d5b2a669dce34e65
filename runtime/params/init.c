// Initialization: normal, ones, zeros and the rotary embedding's table.
#include "runtime/params/init.h"

#include <assert.h>

#include "kernels/rope/rope.h"
#include "runtime/base/random.h"
#include "runtime/params/tensor.h"

static void init_normal(const struct hrt_program *program, const struct hrt_tensor *tensor,
                        void *params, uint64_t seed) {
    char path[HRT_PATH_MAX];
    hrt_tensor_path(tensor, path);
    const struct hrt_stream stream = hrt_stream_make(seed, "init", path);
    const struct hrt_param *param = tensor->param;
    const int64_t size = hrt_param_size(param), blocks = (size + 3) / 4;

#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; block++) {
        double normal[4];
        hrt_draw_normals(stream, (uint64_t)block, normal);
        double elements[4]; // Or as many floats.
        for (int i = 0; i < 4; i++)
            hrt_element_set(elements, program->precision, i, param->init_value * normal[i]);
        const int64_t left = size - 4 * block;
        hrt_tensor_write(program, params, tensor, 4 * block, left < 4 ? left : 4, elements);
    }
}

static void init_ones(const struct hrt_program *program, const struct hrt_tensor *tensor,
                      void *params) {
    const int64_t size = hrt_param_size(tensor->param);
    double one; // Or a float.
    hrt_element_set(&one, program->precision, 0, 1);
    for (int64_t i = 0; i < size; i++) hrt_tensor_write(program, params, tensor, i, 1, &one);
}

static void init_rope(const struct hrt_program *program, const struct hrt_tensor *tensor,
                      void *params) {
    const struct hrt_param *param = tensor->param;
    void *at = (char *)params + tensor->offset * hrt_element_bytes(program->precision);
    assert(param->rank == 2 && param->layout == HRT_ROWS);
    const struct hk_rope_rule rule = {
        .theta = param->init_value,
        .factor = param->rope.factor,
        .low = param->rope.low,
        .high = param->rope.high,
        .amplitude = param->rope.amplitude,
        .original = param->rope.original,
    };
    if (program->precision == HRT_FP64) {
        hk_rope_table_f64(at, param->shape[0], param->shape[1], rule);
    } else {
        hk_rope_table_f32(at, param->shape[0], param->shape[1], rule);
    }
}

void hrt_init_params(const struct hrt_placement *placement, void *params, uint64_t seed) {
    const struct hrt_program *program = placement->program;
    struct hrt_tensor tensor = {0};
    while (hrt_tensor_next_here(placement, &tensor)) {
        if (tensor.param->init == HRT_INIT_NORMAL) init_normal(program, &tensor, params, seed);
        if (tensor.param->init == HRT_INIT_ONES) init_ones(program, &tensor, params);
    }
    hrt_init_tables(program, params);
}

void hrt_init_tables(const struct hrt_program *program, void *params) {
    struct hrt_tensor tensor = {0};
    while (hrt_tensor_next(program, &tensor)) {
        if (tensor.param->init == HRT_INIT_ROPE) init_rope(program, &tensor, params);
    }
}
