// Values of parameters from one file, or from several that have a part each.
#include "runtime/store/weights.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/params/listing.h"
#include "runtime/params/safetensors_read.h"
#include "runtime/params/tensor.h"
#include "runtime/store/strips.h"

struct reading {
    const struct hrt_buffer *buffer;
    const struct hrt_placement *placement; // The buffer's.
    enum hrt_values values;
    struct hrt_safetensors *file; // [files]
    int files;
    bool base; // They hold the weights of a base without adapters.
    struct hrt_store_choice choice;
    struct hrt_store_doubts *doubts;
    struct hrt_error *error;
};

// A tensor whose `entry` is NULL is in no file.
static struct hrt_found find(const struct reading *reading, const struct hrt_tensor *tensor) {
    const int64_t size = hrt_params_size(tensor->param);
    struct hrt_found found = {.tensor = *tensor,
                              .place = {.rows = 1, .columns = size, .row_step = size, .step = 1}};
    char path[HRT_PATH_MAX];
    hrt_params_tensor_path(tensor, path);
    for (int i = 0; i < reading->files && !found.entry; i++) {
        found.file = &reading->file[i];
        found.entry = hrt_params_safetensors_find(found.file, path);
    }
    found.watched = hrt_params_tensor_rank(reading->placement, tensor) == reading->placement->rank;
    return found;
}

static bool same_shape(const struct hrt_param *param, json_t *shape) {
    if (json_array_size(shape) != (size_t)param->rank) return false;
    for (int i = 0; i < param->rank; i++) {
        if (json_integer_value(json_array_get(shape, (size_t)i)) != param->shape[i]) return false;
    }
    return true;
}

static bool fail_shape(const struct hrt_found *found, const struct hrt_param *param,
                       struct hrt_error *error) {
    char wanted[160] = "[";
    for (int i = 0; i < param->rank; i++) {
        const size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%" PRId64, i ? "," : "", param->shape[i]);
    }
    char *shape = json_dumps(found->entry->shape, JSON_COMPACT);
    hrt_fail(error, "'%s' is of another model: '%s' has shape %s there, and %s] here",
             found->file->path, found->entry->name, shape ? shape : "?", wanted);
    free(shape);
    return false;
}

static bool check_tensor(const struct reading *reading, const struct hrt_tensor *tensor) {
    const struct hrt_found found = find(reading, tensor);
    char path[HRT_PATH_MAX];
    hrt_params_tensor_path(tensor, path);
    // The optimizer knows nothing of what was frozen when it was saved.
    if (!found.entry && reading->values >= HRT_MEANS) return true;
    if (!found.entry)
        return hrt_fail(reading->error, "'%s' is of another model: it has no tensor '%s'",
                        reading->file[0].path, path);
    if (!same_shape(tensor->param, found.entry->shape))
        return fail_shape(&found, tensor->param, reading->error);
    if (found.entry->dtype->value && found.entry->dtype->bits > 8)
        return true; // 8 bits want scales.
    return hrt_fail(reading->error,
                    "'%s': tensor '%s' is %s; only F64, F32, BF16 and F16 can be read",
                    found.file->path, path, found.entry->dtype->name);
}

// Whether no file has a matrix of an adapter.
static bool is_base(const struct reading *reading) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(reading->placement->program, &tensor)) {
        if (tensor.param->lora && find(reading, &tensor).entry) return false;
    }
    return true;
}

static bool is_wanted(const struct reading *reading, const struct hrt_tensor *tensor) {
    return hrt_params_is_stored(tensor->param, reading->values) &&
           !(reading->base && tensor->param->lora);
}

// The files' tensors and the program's must be the same, but for adapters, which stay as they are where files have
// none. States of the optimizer are those of what was trained then:
// where they are missing they begin anew, and those of what is frozen now are left out.
static bool check_tensors(const struct reading *reading) {
    struct hrt_tensor tensor = {0};
    size_t wanted = 0, there = 0;
    while (hrt_params_tensor_next(reading->placement->program, &tensor)) {
        if (!is_wanted(reading, &tensor)) continue;
        if (!check_tensor(reading, &tensor)) return false;
        wanted++;
    }
    for (int i = 0; i < reading->files; i++) there += reading->file[i].entries;
    if (wanted == there || reading->values >= HRT_MEANS) return true;
    return hrt_fail(reading->error,
                    "'%s' is of another model: it has %zu tensors, and this one %zu",
                    reading->file[0].path, there, wanted);
}

// Notes a file that was saved by a model of another name. Others' files name none.
static void doubt_model(const struct reading *reading) {
    const struct hrt_program *program = reading->placement->program;
    const struct hrt_safetensors *file = &reading->file[0];
    json_t *metadata = json_object_get(file->header, "__metadata__");
    const char *model = json_string_value(json_object_get(metadata, "model"));
    if (!reading->doubts || !model || strcmp(model, program->name) == 0) return;
    snprintf(reading->doubts->model, sizeof reading->doubts->model,
             "'%s' was saved by the model '%.64s', and this is '%s'", file->path, model,
             program->name);
}

static bool is_read(const struct reading *reading, const struct hrt_tensor *tensor) {
    return is_wanted(reading, tensor) &&
           (!reading->choice.takes || reading->choice.takes(reading->choice.context, tensor));
}

static bool read_all(struct reading *reading) {
    struct hrt_tensor tensor = {0};
    size_t count = 0, room = 1;
    reading->base = reading->values == HRT_PARAMETERS && is_base(reading);
    if (!check_tensors(reading)) return false;
    doubt_model(reading);
    while (hrt_params_tensor_next_here(reading->placement, &tensor)) room++;
    struct hrt_found *found = calloc(room, sizeof *found);
    if (!found) return hrt_fail(reading->error, "out of memory");
    tensor = (struct hrt_tensor){0};
    while (hrt_params_tensor_next_here(reading->placement, &tensor)) {
        if (!is_read(reading, &tensor)) continue;
        found[count] = find(reading, &tensor);
        if (found[count].entry) count++; // Else its states stay zero.
    }
    const bool read =
        hrt_store_read_found(reading->buffer, found, count, reading->doubts, reading->error);
    free(found);
    return read;
}

static bool restore(struct reading *reading, const char *const *path) {
    reading->file = calloc((size_t)reading->files, sizeof *reading->file);
    bool sound = reading->file || hrt_fail(reading->error, "out of memory");
    for (int i = 0; sound && i < reading->files; i++)
        sound = hrt_params_safetensors_open(&reading->file[i], path[i], reading->error);
    sound = sound && read_all(reading);
    for (int i = 0; reading->file && i < reading->files; i++)
        hrt_params_safetensors_close(&reading->file[i]);
    free(reading->file);
    return sound;
}

bool hrt_store_restore(const struct hrt_buffer *params, const char *path,
                       struct hrt_store_doubts *doubts, struct hrt_error *error) {
    return hrt_store_restore_parts(params, HRT_PARAMETERS, &path, 1, (struct hrt_store_choice){0},
                                   doubts, error);
}

bool hrt_store_restore_parts(const struct hrt_buffer *buffer, enum hrt_values values,
                             const char *const *path, int paths, struct hrt_store_choice choice,
                             struct hrt_store_doubts *doubts, struct hrt_error *error) {
    struct reading reading = {.buffer = buffer,
                              .placement = buffer->placement,
                              .values = values,
                              .files = paths,
                              .choice = choice,
                              .doubts = doubts,
                              .error = error};
    if (doubts) *doubts = (struct hrt_store_doubts){0};
    return restore(&reading, path);
}
