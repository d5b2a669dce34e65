// Walks the parameter table; knows paths and the panel layout.
#include "runtime/params/tensor.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/bf16.h"
#include "kernels/types.h"
#include "runtime/params/packed.h"
#include "runtime/params/part.h"
#include "runtime/params/placement.h"

static int64_t experts_of(const struct hrt_program *program, const struct hrt_param *param) {
    return param->set < 0 ? 1 : program->set[param->set].experts;
}

int64_t hrt_params_chunk_offset(const struct hrt_set *set, int64_t layer, int64_t expert) {
    return set->offset + (layer * set->experts + expert) * set->chunk_elements;
}

int64_t hrt_params_trained(const struct hrt_program *program, int set, int64_t *first) {
    int64_t elements = 0;
    bool all = true;
    *first = program->set[set].chunk_elements;
    for (int i = 0; i < program->params; i++) {
        const struct hrt_param *param = &program->param[i];
        if (param->set != set) continue;
        all &= param->trainable;
        if (!param->trainable) continue;
        elements += param->elements;
        if (param->offset < *first) *first = param->offset;
    }
    return all ? program->set[set].chunk_elements : elements;
}

int64_t hrt_params_all(const struct hrt_program *program) {
    int64_t elements = 0;
    for (int i = 0; i < program->params; i++)
        elements += hrt_params_tensors(program, &program->param[i]) * program->param[i].elements;
    return elements;
}

static int64_t offset_of(const struct hrt_program *program, const struct hrt_tensor *tensor) {
    const struct hrt_param *param = tensor->param;
    if (param->set < 0) return param->offset + tensor->layer * hrt_params_kept(program, param);
    const struct hrt_set *set = &program->set[param->set];
    if (!hrt_params_is_cut(program, param, HRT_PARAMETERS))
        return hrt_params_chunk_offset(set, tensor->layer, tensor->expert) + param->offset;
    return set->offset +
           (tensor->layer * set->experts + tensor->expert) * hrt_params_kept_chunk(program, set);
}

bool hrt_params_tensor_next(const struct hrt_program *program, struct hrt_tensor *tensor) {
    const struct hrt_param *end = program->param + program->params;
    if (!tensor->param) {
        *tensor = (struct hrt_tensor){.param = program->param};
    } else if (tensor->expert + 1 < experts_of(program, tensor->param)) {
        tensor->expert++;
    } else if (tensor->layer + 1 < tensor->param->layers) {
        tensor->layer++;
        tensor->expert = 0;
    } else {
        *tensor = (struct hrt_tensor){.param = tensor->param + 1};
    }
    if (tensor->param >= end) return false;
    tensor->offset = offset_of(program, tensor);
    return true;
}

int hrt_params_tensor_rank(const struct hrt_placement *placement, const struct hrt_tensor *tensor) {
    const int set = tensor->param->set;
    return set < 0 ? 0 : hrt_params_owner(placement, set, tensor->layer, tensor->expert);
}

struct hrt_tensor hrt_params_tensor_at(const struct hrt_program *program,
                                       const struct hrt_param *param, int64_t layer,
                                       int64_t expert) {
    struct hrt_tensor tensor = {.param = param, .layer = layer, .expert = expert};
    tensor.offset = offset_of(program, &tensor);
    return tensor;
}

bool hrt_params_tensor_is_here(const struct hrt_placement *placement,
                               const struct hrt_tensor *tensor) {
    const int set = tensor->param->set;
    return set < 0 || hrt_params_owns(placement, set, tensor->layer, tensor->expert);
}

bool hrt_params_tensor_next_here(const struct hrt_placement *placement, struct hrt_tensor *tensor) {
    while (hrt_params_tensor_next(placement->program, tensor)) {
        if (hrt_params_tensor_is_here(placement, tensor)) return true;
    }
    return false;
}

int64_t hrt_params_size(const struct hrt_param *param) {
    return param->rows * param->columns;
}

int64_t hrt_params_tensors(const struct hrt_program *program, const struct hrt_param *param) {
    return param->layers * experts_of(program, param);
}

void hrt_params_tensor_name(const struct hrt_tensor *tensor, const char *pattern,
                            char path[HRT_PATH_MAX]) {
    const struct hrt_param *param = tensor->param;
    const int64_t index = param->index_first + tensor->layer * param->index_stride;
    size_t used = 0;
    path[0] = '\0';
    for (const char *at = pattern; *at && used < HRT_PATH_MAX - 1;) {
        if (strncmp(at, "{}", 2) == 0) {
            used += (size_t)snprintf(path + used, HRT_PATH_MAX - used, "%" PRId64, index);
            at += 2;
        } else if (strncmp(at, "{e}", 3) == 0) {
            used += (size_t)snprintf(path + used, HRT_PATH_MAX - used, "%" PRId64, tensor->expert);
            at += 3;
        } else {
            path[used++] = *at++;
            path[used] = '\0';
        }
    }
}

void hrt_params_tensor_path(const struct hrt_tensor *tensor, char path[HRT_PATH_MAX]) {
    hrt_params_tensor_name(tensor, tensor->param->path, path);
}

int64_t hrt_params_stored_index(const struct hrt_param *param, int64_t logical) {
    assert(logical >= 0 && logical < hrt_params_size(param));
    if (param->layout == HRT_ROWS) return logical;
    const int64_t row = logical / param->columns, column = logical % param->columns;
    return column / HK_PANEL * (param->rows * HK_PANEL) + row * HK_PANEL + column % HK_PANEL;
}

// How many elements from `logical` on, at most `count`, are stored side by side.
static int64_t run_from(const struct hrt_param *param, int64_t logical, int64_t count) {
    if (param->layout == HRT_ROWS) return count;
    const int64_t column = logical % param->columns, panel = HK_PANEL - column % HK_PANEL;
    const int64_t row = param->columns - column, run = panel < row ? panel : row;
    return run < count ? run : count;
}

// A run of stored elements, as far as it is here.
struct run {
    int64_t stored; // Where it begins, from `here->offset` on.
    int64_t behind; // Elements of the run before.
    int64_t count;
};

static int64_t inside(int64_t at, int64_t elements) {
    return at < 0 ? 0 : at < elements ? at : elements;
}

static struct run clip(const struct hrt_params_part *here, int64_t stored, int64_t count) {
    const int64_t first = inside(stored - here->first, here->count);
    const int64_t end = inside(stored + count - here->first, here->count);
    return (struct run){here->offset + first, here->first + first - stored, end - first};
}

// ---- copies in bf16 that are alone

int64_t hrt_params_stored_bytes(const struct hrt_program *program, const struct hrt_param *param) {
    return param->rounded_only ? (int64_t)sizeof(hk_bf16)
                               : hrt_params_element_bytes(program->precision);
}

void hrt_params_stored_read(const struct hrt_program *program, const struct hrt_param *param,
                            const void *stored, int64_t step, int64_t count, void *elements) {
    const hk_bf16 *copy = stored;
    float *to = elements;
    if (!param->rounded_only)
        memcpy(elements, stored, (size_t)(count * hrt_params_element_bytes(program->precision)));
    for (int64_t i = 0; param->rounded_only && i < count; i++)
        to[i] = hk_bf16_float(copy[i * step]);
}

void hrt_params_stored_write(const struct hrt_program *program, const struct hrt_param *param,
                             void *stored, int64_t step, int64_t count, const void *elements) {
    hk_bf16 *copy = stored;
    const float *from = elements;
    if (!param->rounded_only)
        memcpy(stored, elements, (size_t)(count * hrt_params_element_bytes(program->precision)));
    for (int64_t i = 0; param->rounded_only && i < count; i++)
        copy[i * step] = hk_bf16_round(from[i]);
}

// The copy of element `logical`. Panels have pairs of rows (kernels/types.h): neighbours in a row lie `step` apart.
static hk_bf16 *copy_at(const void *values, const struct hrt_param *param,
                        const struct hrt_params_part *here, int64_t logical, int64_t *step) {
    hk_bf16 *copy = (hk_bf16 *)values + here->offset;
    *step = param->layout == HRT_ROWS ? 1 : 2;
    if (param->layout == HRT_ROWS) return copy + logical;
    const int64_t row = logical / param->columns, column = logical % param->columns;
    const int64_t panel = (param->rows + 1) / 2 * 2 * HK_PANEL;
    return copy + column / HK_PANEL * panel + row / 2 * 2 * HK_PANEL + column % HK_PANEL * 2 +
           row % 2;
}

static void read_copies(const struct hrt_program *program, const void *values,
                        const struct hrt_param *param, const struct hrt_params_part *here,
                        int64_t first, int64_t count, float *to) {
    if (param->packing) {
        hrt_params_packed_read(param, (const hk_bf16 *)values + here->offset, first, count, to);
        return;
    }
    for (int64_t run, step; count > 0; first += run, count -= run, to += run) {
        run = run_from(param, first, count);
        const hk_bf16 *copy = copy_at(values, param, here, first, &step);
        hrt_params_stored_read(program, param, copy, step, run, to);
    }
}

static void write_copies(const struct hrt_program *program, void *values,
                         const struct hrt_param *param, const struct hrt_params_part *here,
                         int64_t first, int64_t count, const float *from) {
    if (param->packing) {
        hrt_params_packed_write(param, (hk_bf16 *)values + here->offset, first, count, from);
        return;
    }
    for (int64_t run, step; count > 0; first += run, count -= run, from += run) {
        run = run_from(param, first, count);
        hk_bf16 *copy = copy_at(values, param, here, first, &step);
        hrt_params_stored_write(program, param, copy, step, run, from);
    }
}

void hrt_params_tensor_read(const struct hrt_program *program, const void *values,
                            const struct hrt_param *param, const struct hrt_params_part *here,
                            int64_t first, int64_t count, void *elements) {
    const int64_t bytes = hrt_params_element_bytes(program->precision);
    char *to = elements;
    if (param->rounded_only) {
        read_copies(program, values, param, here, first, count, elements);
        return;
    }
    for (int64_t run; count > 0; first += run, count -= run, to += run * bytes) {
        run = run_from(param, first, count);
        const struct run some = clip(here, hrt_params_stored_index(param, first), run);
        if (some.count < run) memset(to, 0, (size_t)(run * bytes));
        if (some.count > 0)
            memcpy(to + some.behind * bytes, (const char *)values + some.stored * bytes,
                   (size_t)(some.count * bytes));
    }
}

void hrt_params_tensor_write(const struct hrt_program *program, void *values,
                             const struct hrt_param *param, const struct hrt_params_part *here,
                             int64_t first, int64_t count, const void *elements) {
    const int64_t bytes = hrt_params_element_bytes(program->precision);
    const char *from = elements;
    if (param->rounded_only) {
        write_copies(program, values, param, here, first, count, elements);
        return;
    }
    for (int64_t run; count > 0; first += run, count -= run, from += run * bytes) {
        run = run_from(param, first, count);
        const struct run some = clip(here, hrt_params_stored_index(param, first), run);
        if (some.count > 0)
            memcpy((char *)values + some.stored * bytes, from + some.behind * bytes,
                   (size_t)(some.count * bytes));
    }
}

double hrt_params_element(const void *buffer, enum hrt_precision precision, int64_t index) {
    return precision == HRT_FP64 ? ((const double *)buffer)[index] : ((const float *)buffer)[index];
}

void hrt_params_element_set(void *buffer, enum hrt_precision precision, int64_t index,
                            double value) {
    if (precision == HRT_FP64) {
        ((double *)buffer)[index] = value;
    } else {
        ((float *)buffer)[index] = (float)value;
    }
}

int64_t hrt_params_element_bytes(enum hrt_precision precision) {
    return precision == HRT_FP64 ? sizeof(double) : sizeof(float);
}
