// Finds the dims of weights among those of adapters, by name.
#include "runtime/params/merge.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, SUFFIX = sizeof ".lora_a" - 1 };

bool hrt_params_has_adapters(const struct hrt_program *program) {
    for (int i = 0; i < program->params; i++) {
        if (program->param[i].lora) return true;
    }
    return false;
}

// Whether `lora` has the path of the weight, and continues it.
static bool belongs(const struct hrt_param *lora, const struct hrt_param *weight) {
    const size_t length = strlen(weight->path);
    return lora->lora && !weight->lora && strlen(lora->path) == length + SUFFIX &&
           strncmp(lora->path, weight->path, length) == 0 &&
           lora->index_first == weight->index_first && lora->index_stride == weight->index_stride;
}

const struct hrt_param *hrt_params_adapted(const struct hrt_program *program,
                                           const struct hrt_param *lora) {
    for (int i = 0; i < program->params; i++) {
        if (belongs(lora, &program->param[i])) return &program->param[i];
    }
    return NULL;
}

// alpha / rank, as the program was compiled.
static double scale_of(const struct hrt_program *program) {
    const char *alpha = hrt_program_setting(program, "adapt.alpha");
    const char *rank = hrt_program_setting(program, "adapt.rank");
    return alpha && rank ? strtod(alpha, NULL) / strtod(rank, NULL) : 1;
}

// The matrix of a weight; NULL: it has none of the kind.
static const struct hrt_param *find(const struct hrt_program *program,
                                    const struct hrt_param *weight, enum hrt_lora kind) {
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (param->lora == kind && belongs(param, weight)) return param;
    }
    return NULL;
}

// Matrix a of the adapter with matrix b: of its own weight, or of the one that it shares with.
static const struct hrt_param *find_a(const struct hrt_program *program,
                                      const struct hrt_param *weight, const struct hrt_param *b) {
    if (!b || !b->shares) return find(program, weight, HRT_LORA_A);
    struct hrt_param other = *weight; // It has the same layers.
    other.path = b->shares;
    return find(program, &other, HRT_LORA_A);
}

// From one element of a dim to the next, in a matrix of an adapter behind its first dim; 0: it has no such dim.
static int64_t step_of(const struct hrt_param *lora, const char *dim) {
    int64_t step = 1;
    for (int i = lora->rank - 1; i > 0; i--) {
        if (strcmp(lora->dim[i], dim) == 0) return step;
        step *= lora->shape[i];
    }
    return 0;
}

static void find_steps(struct hrt_adapter *adapter, const struct hrt_param *weight) {
    const struct hrt_param *a = adapter->a, *b = adapter->b;
    adapter->rank = b->shape[0];
    adapter->ins = hrt_params_size(a) / adapter->rank;
    adapter->outs = hrt_params_size(b) / adapter->rank;
    for (int i = 0; i < weight->rank; i++) {
        adapter->in_step[i] = step_of(a, weight->dim[i]);
        adapter->out_step[i] = step_of(b, weight->dim[i]);
    }
}

// All elements of a tensor; the caller's. NULL: out of memory.
static double *read_whole(const struct hrt_buffer *params, const struct hrt_tensor *tensor) {
    const struct hrt_program *program = params->placement->program;
    double *values = malloc((size_t)hrt_params_size(tensor->param) * sizeof *values);
    struct hrt_slice slice = {.tensor = *tensor};
    while (values && hrt_params_slice_visit(params, &slice)) {
        for (int64_t i = 0; i < slice.run; i++) {
            double element; // Or a float.
            hrt_params_slice_read(program, &slice, slice.first + i, 1, &element);
            values[slice.first + i] = hrt_params_element(&element, program->precision, 0);
        }
    }
    return values;
}

// a @ b where the weight has its element `index`.
static double product_at(const struct hrt_adapter *adapter, const struct hrt_param *weight,
                         int64_t index) {
    int64_t in = 0, out = 0;
    double sum = 0;
    for (int i = weight->rank - 1; i >= 0; i--) {
        const int64_t at = index % weight->shape[i];
        index /= weight->shape[i];
        in += at * adapter->in_step[i];
        out += at * adapter->out_step[i];
    }
    for (int64_t r = 0; r < adapter->rank; r++)
        sum += adapter->in[r * adapter->ins + in] * adapter->out[r * adapter->outs + out];
    return sum;
}

double hrt_params_adapter_at(const struct hrt_program *program, const struct hrt_adapter *adapter,
                             const struct hrt_param *weight, int64_t index) {
    return adapter->b ? scale_of(program) * product_at(adapter, weight, index) : 0;
}

static void add_block(const struct hrt_program *program, const struct hrt_slice *slice,
                      const struct hrt_adapter *adapter, int64_t first, int64_t count) {
    double elements[BLOCK]; // Or floats.
    hrt_params_slice_read(program, slice, first, count, elements);
    for (int64_t i = 0; i < count; i++) {
        const double own = hrt_params_element(elements, program->precision, i);
        const double more = hrt_params_adapter_at(program, adapter, slice->tensor.param, first + i);
        hrt_params_element_set(elements, program->precision, i, own + more);
    }
    hrt_params_slice_write(program, slice, first, count, elements);
}

static void add_all(const struct hrt_buffer *params, const struct hrt_tensor *tensor,
                    const struct hrt_adapter *adapter) {
    struct hrt_slice slice = {.tensor = *tensor};
    while (hrt_params_slice_visit(params, &slice)) {
#pragma omp parallel for schedule(static)
        for (int64_t at = 0; at < slice.run; at += BLOCK) {
            const int64_t left = slice.run - at;
            add_block(params->placement->program, &slice, adapter, slice.first + at,
                      left < BLOCK ? left : BLOCK);
        }
        hrt_params_slice_put(params, &slice);
    }
    hrt_params_staging_reset(params);
}

bool hrt_params_adapter_read(struct hrt_adapter *adapter, const struct hrt_buffer *params,
                             const struct hrt_tensor *tensor, struct hrt_error *error) {
    const struct hrt_program *program = params->placement->program;
    *adapter = (struct hrt_adapter){.b = find(program, tensor->param, HRT_LORA_B)};
    adapter->a = find_a(program, tensor->param, adapter->b);
    if (!adapter->a || !adapter->b) {
        adapter->b = NULL;
        return true;
    }
    const struct hrt_tensor a =
        hrt_params_tensor_at(program, adapter->a, tensor->layer, tensor->expert);
    const struct hrt_tensor b =
        hrt_params_tensor_at(program, adapter->b, tensor->layer, tensor->expert);
    find_steps(adapter, tensor->param);
    adapter->in = read_whole(params, &a);
    adapter->out = read_whole(params, &b);
    if (adapter->in && adapter->out) return true;
    hrt_params_adapter_free(adapter);
    return hrt_fail(error, "out of memory");
}

void hrt_params_adapter_free(struct hrt_adapter *adapter) {
    free(adapter->in);
    free(adapter->out);
    *adapter = (struct hrt_adapter){0};
}

static bool merge_tensor(const struct hrt_buffer *params, const struct hrt_tensor *tensor,
                         struct hrt_error *error) {
    struct hrt_adapter adapter;
    if (tensor->param->packing) return true;
    if (!hrt_params_adapter_read(&adapter, params, tensor, error)) return false;
    const bool cut = hrt_params_is_cut(params->placement->program, tensor->param, HRT_PARAMETERS);
    if (adapter.b && !cut) add_all(params, tensor, &adapter);
    const bool merged = !adapter.b || !cut;
    hrt_params_adapter_free(&adapter);
    return merged || hrt_fail(error, "adapters cannot be merged where ranks keep parts of weights "
                                     "(parallel.dense = shard)");
}

bool hrt_params_merge(const struct hrt_buffer *params, struct hrt_error *error) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next_here(params->placement, &tensor)) {
        if (!merge_tensor(params, &tensor, error)) return false;
    }
    return true;
}
