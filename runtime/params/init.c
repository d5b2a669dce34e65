// Initialization: normal, ones, zeros and the rotary embedding's table.
#include "runtime/params/init.h"

#include <assert.h>

#include "kernels/packed/packed.h"
#include "kernels/rope/rope.h"
#include "runtime/base/random.h"
#include "runtime/params/tensor.h"

// Elements `first` to first + 3, `first` a multiple of four, in the precision of the program.
static void draw_four(const struct hrt_program *program, const struct hrt_param *param,
                      struct hrt_stream stream, int64_t first, void *elements) {
    double normal[4];
    hrt_draw_normals(stream, (uint64_t)first / 4, normal);
    for (int i = 0; i < 4; i++)
        hrt_params_element_set(elements, program->precision, i, param->init_value * normal[i]);
}

// Rows x columns of the matrix from [row, column] on, `pitch` apart.
static void draw_block(const struct hrt_program *program, const struct hrt_param *param,
                       struct hrt_stream stream, int64_t row, int64_t column, int64_t rows,
                       int64_t columns, int64_t pitch, float *elements) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t first = (row + i) * param->columns + column;
        float four[4];
        for (int64_t j = 0; j < columns; j++) {
            const int64_t at = (first + j) % 4;
            if (j == 0 || at == 0) draw_four(program, param, stream, first + j - at, four);
            elements[i * pitch + j] = four[at];
        }
    }
}

static void init_packed(const struct hrt_program *program, const struct hrt_slice *slice,
                        struct hrt_stream stream) {
    const struct hrt_param *param = slice->tensor.param;
    const int64_t columns = (param->columns + HK_PANEL - 1) / HK_PANEL;
    const int64_t blocks = (param->rows + HK_PACKED_ROWS - 1) / HK_PACKED_ROWS * columns;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < blocks; i++) {
        const int64_t row = i / columns * HK_PACKED_ROWS, column = i % columns * HK_PANEL;
        const int64_t left = param->rows - row, wide = param->columns - column;
        const int64_t rows = left < HK_PACKED_ROWS ? left : HK_PACKED_ROWS;
        const int64_t some = wide < HK_PANEL ? wide : HK_PANEL;
        float elements[HK_PACKED_ROWS * HK_PANEL];
        draw_block(program, param, stream, row, column, rows, some, HK_PANEL, elements);
        hrt_params_slice_pack(slice, row, column, rows, some, HK_PANEL, elements, 0);
    }
}

static void init_normal(const struct hrt_buffer *params, const struct hrt_tensor *tensor,
                        uint64_t seed) {
    const struct hrt_program *program = params->placement->program;
    char path[HRT_PATH_MAX];
    hrt_params_tensor_path(tensor, path);
    const struct hrt_stream stream = hrt_stream_make(seed, "init", path);
    struct hrt_slice slice = {.tensor = *tensor};
    while (hrt_params_slice_fill(params, &slice)) {
        assert(slice.first % 4 == 0);
        if (tensor->param->packing) {
            init_packed(program, &slice, stream);
            continue;
        }
#pragma omp parallel for schedule(static)
        for (int64_t at = 0; at < slice.run; at += 4) {
            double elements[4]; // Or as many floats.
            draw_four(program, tensor->param, stream, slice.first + at, elements);
            const int64_t left = slice.run - at;
            hrt_params_slice_write(program, &slice, slice.first + at, left < 4 ? left : 4,
                                   elements);
        }
    }
}

static void init_ones(const struct hrt_buffer *params, const struct hrt_tensor *tensor) {
    const struct hrt_program *program = params->placement->program;
    struct hrt_slice slice = {.tensor = *tensor};
    double one; // Or a float.
    hrt_params_element_set(&one, program->precision, 0, 1);
    while (hrt_params_slice_fill(params, &slice)) {
        for (int64_t i = 0; i < slice.run; i++)
            hrt_params_slice_write(program, &slice, slice.first + i, 1, &one);
    }
}

static void init_rope(const struct hrt_buffer *params, const struct hrt_tensor *tensor) {
    const struct hrt_program *program = params->placement->program;
    const struct hrt_param *param = tensor->param;
    const int64_t width = param->shape[1];
    assert(param->rank == 2 && param->layout == HRT_ROWS);
    const struct hk_rope_rule rule = {
        .theta = param->init_value,
        .factor = param->rope.factor,
        .low = param->rope.low,
        .high = param->rope.high,
        .amplitude = param->rope.amplitude,
        .original = param->rope.original,
    };
    struct hrt_slice slice = {.tensor = *tensor};
    while (hrt_params_slice_fill(params, &slice)) {
        size_t bytes;
        void *at = hrt_params_slice_bytes(program, &slice, &bytes);
        assert(slice.first % width == 0 && slice.run % width == 0);
        const int64_t first = slice.first / width, positions = slice.run / width;
        if (program->precision == HRT_FP64) {
            hk_rope_table_f64(at, first, positions, width, rule);
        } else {
            hk_rope_table_f32(at, first, positions, width, rule);
        }
    }
}

static void init_tensor(const struct hrt_buffer *params, const struct hrt_tensor *tensor,
                        uint64_t seed) {
    if (tensor->param->init == HRT_INIT_NORMAL) init_normal(params, tensor, seed);
    if (tensor->param->init == HRT_INIT_ONES) init_ones(params, tensor);
}

void hrt_params_init(const struct hrt_buffer *params, uint64_t seed) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next_here(params->placement, &tensor))
        init_tensor(params, &tensor, seed);
    hrt_params_init_tables(params);
}

void hrt_params_init_adapters(const struct hrt_buffer *params, uint64_t seed) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next_here(params->placement, &tensor)) {
        if (tensor.param->lora) init_tensor(params, &tensor, seed);
    }
}

void hrt_params_init_tables(const struct hrt_buffer *params) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(params->placement->program, &tensor)) {
        if (tensor.param->init == HRT_INIT_ROPE) init_rope(params, &tensor);
    }
}
