// config.json, types and copies.
#include "runtime/store/hf_like.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "files/files.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/store/checkpoint_part.h"

enum { BLOCK = 1 << 16 };
static const char config_name[] = "config.json";

static bool read_config(struct hrt_hf_like *like, struct hrt_error *error) {
    char path[PATH_MAX];
    if (!hrt_store_part_path(path, like->path, config_name, error)) return false;
    like->config = hrt_base_json_read(path, error);
    if (!like->config) return false;
    return json_is_object(like->config) || hrt_fail(error, "'%s' is not an object of JSON", path);
}

bool hrt_store_hf_like_open(struct hrt_hf_like *like, const char *path, struct hrt_error *error) {
    *like = (struct hrt_hf_like){.path = path};
    if (!read_config(like, error)) return false;
    return !hrt_store_hf_has_weights(path) || hrt_store_hf_folder_open(&like->folder, path, error);
}

void hrt_store_hf_like_close(struct hrt_hf_like *like) {
    json_decref(like->config);
    hrt_store_hf_folder_close(&like->folder);
    like->config = NULL;
}

bool hrt_store_hf_like_type(const struct hrt_hf_like *like, const struct hrt_program *program,
                            const struct hrt_tensor *tensor, const struct hrt_hf_rule *rule,
                            const struct hrt_hf_view *view, enum hrt_hf_type *type,
                            struct hrt_error *error) {
    struct hrt_safetensors *file;
    char name[HRT_PATH_MAX];
    for (int i = 0; i < HRT_HF_LAYOUTS && rule->layout[i].name; i++) {
        hrt_store_hf_name(program, tensor, rule->layout[i].name, name);
        const struct hrt_stored *entry = hrt_store_hf_find(&like->folder, name, &file);
        if (!entry) continue;
        if (i == 0 && !hrt_store_hf_has_shape(entry, view->shape, view->rank))
            return hrt_fail(error, "'%s' is of another model: '%s' has another shape there",
                            like->path, name);
        *type = hrt_params_hf_type_find(entry->dtype->name);
        return true;
    }
    hrt_store_hf_name(program, tensor, rule->layout[0].name, name);
    if (like->folder.where)
        return hrt_fail(error, "'%s' is of another model: it has no tensor '%s'", like->path, name);
    const json_t *dtype = json_object_get(like->config, "dtype");
    if (!dtype) dtype = json_object_get(like->config, "torch_dtype");
    *type = hrt_params_hf_type_find(json_string_value(dtype));
    return true;
}

// ---- copies

// Files of the tokenizer, of generation, of the licence; code that `auto_map` of one of them names.
static bool is_taken_over(const char *name) {
    static const char *const ends[] = {".json", ".txt", ".model", ".jinja", ".py"};
    if (hrt_base_ends_with(name, ".index.json") || strcmp(name, config_name) == 0) return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (*name != '.' && hrt_base_ends_with(name, ends[i])) return true;
    }
    return strcmp(name, "LICENSE") == 0;
}

static bool fill_copy(struct hrt_sink *sink, void *context) {
    FILE *from = context;
    char block[BLOCK];
    for (size_t got; (got = fread(block, 1, sizeof block, from)) > 0;) {
        if (!hrt_params_sink_put(sink, block, got)) return false;
    }
    return !ferror(from);
}

static bool fill_config(struct hrt_sink *sink, void *context) {
    char *text = json_dumps(context, JSON_INDENT(2));
    const bool written =
        text && hrt_params_sink_put(sink, text, strlen(text)) && hrt_params_sink_put(sink, "\n", 1);
    free(text);
    return written;
}

bool hrt_store_hf_write_config(json_t *config, const char *to, struct hrt_error *error) {
    struct hrt_part part = {.name = "config.json"};
    return hrt_store_part_write(to, &part, fill_config, config, error);
}

static bool copy(const struct hrt_hf_like *like, const char *to, const char *name,
                 struct hrt_error *error) {
    char path[PATH_MAX];
    const char *why;
    struct hrt_part part;
    if (strlen(name) >= sizeof part.name)
        return hrt_fail(error, "'%s/%s' has a name that is too long", like->path, name);
    strcpy(part.name, name);
    if (!hrt_store_part_path(path, like->path, name, error)) return false;
    FILE *from = hf_input(path, false, &why);
    if (!from) return hrt_fail(error, "cannot open '%s': %s", path, why);
    const bool copied = hrt_store_part_write(to, &part, fill_copy, from, error);
    fclose(from);
    return copied;
}

// The config of the text model, which is written, where that is a part of a model.
static json_t *text_config(const struct hrt_hf_like *like) {
    const json_t *text = json_object_get(like->config, "text_config");
    const char *type = json_string_value(json_object_get(text, "model_type"));
    const struct hrt_hf_family *family = type ? hrt_store_hf_family_named(type) : NULL;
    const char *alone = family ? hrt_store_hf_alone(family) : NULL;
    if (!alone) return json_copy(like->config);
    json_t *config = json_copy((json_t *)text);
    json_t *dtype = json_object_get(like->config, "dtype");
    if (!dtype) dtype = json_object_get(like->config, "torch_dtype");
    if (dtype && !json_object_get(config, "dtype") && !json_object_get(config, "torch_dtype"))
        json_object_set(config, "dtype", dtype);
    json_t *tied = json_object_get(like->config, "tie_word_embeddings");
    if (tied) json_object_set(config, "tie_word_embeddings", tied);
    json_t *own = json_loads(alone, 0, NULL);
    json_object_update(config, own);
    json_decref(own);
    return config;
}

// The same bytes, where all of it is true of what is written: weights are not quantized, there are layers that predict
// further tokens, or none, and the text model is all that there is.
static bool copy_config(const struct hrt_hf_like *like, bool predicts, const char *to,
                        struct hrt_error *error) {
    static const char quantized[] = "quantization_config",
                      predictors[] = "num_nextn_predict_layers";
    const bool same = json_number_value(json_object_get(like->config, predictors)) == predicts;
    if (same && !json_object_get(like->config, quantized) &&
        !json_object_get(like->config, "text_config"))
        return copy(like, to, config_name, error);
    json_t *config = text_config(like);
    if (!config) return hrt_fail(error, "out of memory");
    json_object_del(config, quantized);
    if (!same) json_object_set_new(config, predictors, json_integer(predicts));
    const bool written = hrt_store_hf_write_config(config, to, error);
    json_decref(config);
    return written;
}

bool hrt_store_hf_like_copy_others(const struct hrt_hf_like *like, const char *to,
                                   struct hrt_error *error) {
    DIR *folder = opendir(like->path);
    if (!folder) return hrt_fail(error, "cannot read '%s': %s", like->path, strerror(errno));
    bool copied = true;
    for (struct dirent *entry; copied && (entry = readdir(folder));)
        copied = !is_taken_over(entry->d_name) || copy(like, to, entry->d_name, error);
    closedir(folder);
    return copied;
}

bool hrt_store_hf_like_copy(const struct hrt_hf_like *like, bool predicts, const char *to,
                            struct hrt_error *error) {
    return copy_config(like, predicts, to, error) && hrt_store_hf_like_copy_others(like, to, error);
}
