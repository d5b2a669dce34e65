// The index, and the files that it names.
#include "runtime/store/hf_folder.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/json.h"
#include "runtime/store/checkpoint_part.h"
#include "runtime/store/peft.h"

enum { BLOCK = 1 << 16 };
static const char index_name[] = "model.safetensors.index.json", one_name[] = "model.safetensors";

static bool holds(const char *folder, const char *name) {
    char path[PATH_MAX];
    struct stat about;
    struct hrt_error ignored;
    return hrt_store_part_path(path, folder, name, &ignored) && stat(path, &about) == 0;
}

bool hrt_store_hf_has_weights(const char *path) {
    return holds(path, index_name) || holds(path, one_name);
}

bool hrt_store_hf_is_folder(const char *path) {
    return hrt_store_hf_has_weights(path) || holds(path, "config.json");
}

// Makes room for one more file and its name.
static bool make_room(struct hrt_hf_folder *folder) {
    const size_t files = (size_t)folder->files + 1;
    void *file = realloc(folder->file, files * sizeof *folder->file);
    if (file) folder->file = file;
    void *name = realloc(folder->name, files * sizeof *folder->name);
    if (name) folder->name = name;
    return (file && name) || hrt_fail(folder->error, "out of memory");
}

// Opens one more file of the folder. Its number; -1: `error`.
static int open_file(struct hrt_hf_folder *folder, const char *name) {
    const int number = folder->files;
    char path[PATH_MAX];
    if (!hrt_store_part_path(path, folder->path, name, folder->error) || !make_room(folder))
        return -1;
    folder->name[number] = strdup(path);
    if (!folder->name[number]) {
        hrt_fail(folder->error, "out of memory");
        return -1;
    }
    folder->files++;
    return hrt_params_safetensors_open(&folder->file[number], folder->name[number], folder->error)
               ? number
               : -1;
}

static bool add_one_file(struct hrt_hf_folder *folder, const char *name) {
    const int number = open_file(folder, name);
    if (number < 0) return false;
    const struct hrt_safetensors *file = &folder->file[number];
    for (size_t i = 0; i < file->entries; i++)
        json_object_set_new(folder->where, file->entry[i].name, json_integer(number));
    return true;
}

static bool refuse(const struct hrt_hf_folder *folder, const char *why) {
    return hrt_fail(folder->error, "'%s/%s' is not a valid index: %s", folder->path, index_name,
                    why);
}

// The index as JSON, or NULL.
static json_t *read_index(const struct hrt_hf_folder *folder) {
    char path[PATH_MAX];
    if (!hrt_store_part_path(path, folder->path, index_name, folder->error)) return NULL;
    return hrt_base_json_read(path, folder->error);
}

// Notes where a tensor lies; opens its file when it is the first there.
static bool add_tensor(struct hrt_hf_folder *folder, json_t *numbers, const char *tensor,
                       const char *file) {
    if (!file || !*file || strchr(file, '/') || strlen(file) >= 256)
        return refuse(folder, "it names a file that is none of the folder's");
    json_t *known = json_object_get(numbers, file);
    int number = known ? (int)json_integer_value(known) : open_file(folder, file);
    if (number < 0) return false;
    if (!known) json_object_set_new(numbers, file, json_integer(number));
    if (!hrt_params_safetensors_find(&folder->file[number], tensor))
        return hrt_fail(folder->error,
                        "'%s/%s' says that '%.100s' has tensor '%.300s', but it has not",
                        folder->path, index_name, file, tensor);
    json_object_set_new(folder->where, tensor, json_integer(number));
    return true;
}

static bool add_index(struct hrt_hf_folder *folder, const json_t *index) {
    const char *tensor;
    json_t *map = json_object_get(index, "weight_map"), *file, *numbers = json_object();
    if (!json_is_object(map)) {
        json_decref(numbers);
        return refuse(folder, "it has no weight_map");
    }
    bool sound = true;
    json_object_foreach(map, tensor, file) {
        sound = add_tensor(folder, numbers, tensor, json_string_value(file));
        if (!sound) break;
    }
    json_decref(numbers);
    return sound;
}

// Counts tensors that the index does not name, or names in another file.
static void count_beside(struct hrt_hf_folder *folder) {
    for (int i = 0; i < folder->files; i++) {
        const struct hrt_safetensors *file = &folder->file[i];
        for (size_t k = 0; k < file->entries; k++) {
            const json_t *number = json_object_get(folder->where, file->entry[k].name);
            if (json_is_integer(number) && json_integer_value(number) == i) continue;
            if (!folder->beside++) folder->beside_first = file->entry[k].name;
        }
    }
}

// Whether names lack what they begin with.
static bool is_bare(const struct hrt_hf_folder *folder) {
    const char *name;
    json_t *number;
    json_object_foreach(folder->where, name, number) {
        if (strncmp(name, HRT_HF_BODY, strlen(HRT_HF_BODY)) == 0) return false;
    }
    return json_object_get(folder->where, "embed_tokens.weight");
}

// Leaves the text model alone, where it is a part: names that begin with `prefix`, and `kept`.
static void narrow(struct hrt_hf_folder *folder, const char *prefix, const char *kept) {
    const size_t length = strlen(prefix), all = json_object_size(folder->where);
    json_t *inside = json_object(), *number;
    const char *name;
    bool any = false;
    json_object_foreach(folder->where, name, number) {
        const bool begins = strncmp(name, prefix, length) == 0;
        if (begins || strcmp(name, kept) == 0)
            json_object_set(inside, name + (begins ? length : 0), number);
        any |= begins;
    }
    if (!any) {
        json_decref(inside);
        return;
    }
    json_decref(folder->where);
    folder->where = inside;
    folder->passed = all - json_object_size(inside);
    for (int i = 0; i < folder->files; i++)
        hrt_params_safetensors_narrow(&folder->file[i], prefix, kept);
}

static bool open_files(struct hrt_hf_folder *folder) {
    if (!holds(folder->path, index_name)) {
        if (!holds(folder->path, one_name))
            return hrt_fail(folder->error, "'%s' has neither %s nor %s", folder->path, one_name,
                            index_name);
        return add_one_file(folder, one_name);
    }
    json_t *index = read_index(folder);
    const bool sound = index && add_index(folder, index);
    json_decref(index);
    if (sound) count_beside(folder);
    return sound;
}

bool hrt_store_hf_folder_open(struct hrt_hf_folder *folder, const char *path,
                              struct hrt_error *error) {
    *folder = (struct hrt_hf_folder){.path = path, .where = json_object(), .error = error};
    if (!open_files(folder)) return false;
    narrow(folder, HRT_HF_TEXT_MODEL, "");
    narrow(folder, HRT_HF_TEXT_BODY, HRT_HF_HEAD);
    folder->bare = is_bare(folder);
    return true;
}

bool hrt_store_hf_folder_open_adapters(struct hrt_hf_folder *folder, const char *path,
                                       struct hrt_error *error) {
    *folder = (struct hrt_hf_folder){.path = path, .where = json_object(), .error = error};
    return add_one_file(folder, HRT_PEFT_WEIGHTS);
}

void hrt_store_hf_folder_close(struct hrt_hf_folder *folder) {
    for (int i = 0; i < folder->files; i++) {
        hrt_params_safetensors_close(&folder->file[i]);
        free(folder->name[i]);
    }
    free(folder->file);
    free(folder->name);
    json_decref(folder->where);
    *folder = (struct hrt_hf_folder){0};
}

const struct hrt_stored *hrt_store_hf_find(const struct hrt_hf_folder *folder, const char *name,
                                           struct hrt_safetensors **file) {
    if (folder->bare && strncmp(name, HRT_HF_BODY, strlen(HRT_HF_BODY)) == 0)
        name += strlen(HRT_HF_BODY);
    const json_t *number = folder->where ? json_object_get(folder->where, name) : NULL;
    if (!number) return NULL;
    *file = &folder->file[json_integer_value(number)];
    return hrt_params_safetensors_find(*file, name);
}

bool hrt_store_hf_has_shape(const struct hrt_stored *entry, const int64_t *shape, int rank) {
    if (json_array_size(entry->shape) != (size_t)rank) return false;
    for (int i = 0; i < rank; i++) {
        if (json_integer_value(json_array_get(entry->shape, (size_t)i)) != shape[i]) return false;
    }
    return true;
}

static bool same_bytes(struct hrt_safetensors *file[2], const struct hrt_stored *entry[2],
                       bool *same) {
    char block[2][BLOCK];
    const int64_t bytes = entry[0]->end - entry[0]->begin;
    for (int64_t first = 0; *same && first < bytes; first += BLOCK) {
        const size_t count = (size_t)(bytes - first < BLOCK ? bytes - first : BLOCK);
        for (int i = 0; i < 2; i++) {
            if (!hrt_params_safetensors_bytes(file[i], entry[i], first, count, block[i]))
                return false;
        }
        *same = memcmp(block[0], block[1], count) == 0;
    }
    return true;
}

bool hrt_store_hf_same(struct hrt_safetensors *file[2], const struct hrt_stored *entry[2],
                       bool *same) {
    *same = entry[0] && entry[1] && entry[0]->dtype == entry[1]->dtype &&
            json_equal(entry[0]->shape, entry[1]->shape);
    return !*same || same_bytes(file, entry, same);
}
