// The tensors of a Hugging Face folder, by name.
#include <stdio.h>
#include <string.h>

#include "codegen/import/hf_model.h"
#include "files/files.h"

static FILE *open_in(struct hec_arena *arena, const char *path, const char *name) {
    const char *why;
    return hf_input(hec_arena_format(arena, "%s/%s", path, name), false, &why);
}

// An object that maps names to something; NULL: there is none, or it is broken, which programs tell that read the folder.
static json_t *read_names(struct hec_arena *arena, const char *path) {
    FILE *file = open_in(arena, path, "model.safetensors.index.json");
    json_t *names = NULL;
    if (file) {
        json_t *index = json_loadf(file, 0, NULL);
        names = json_incref(json_object_get(index, "weight_map"));
        json_decref(index);
    } else if ((file = open_in(arena, path, "model.safetensors"))) {
        uint64_t length;
        if (fread(&length, sizeof length, 1, file) == 1)
            names = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
    }
    if (file) fclose(file);
    return names;
}

bool hec_hf_has_tensor(struct hec_arena *arena, const char *path, const char *name,
                       bool otherwise) {
    json_t *names = read_names(arena, path);
    const bool has = json_is_object(names) ? json_object_get(names, name) != NULL : otherwise;
    json_decref(names);
    return has;
}
