// Which tensor lies in which file.
#include "runtime/store/hf_shards.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hrt_store_hf_shard_name(int shard, int shards, char name[HRT_PART_NAME]) {
    if (shards == 1)
        snprintf(name, HRT_PART_NAME, "model.safetensors");
    else
        snprintf(name, HRT_PART_NAME, "model-%05d-of-%05d.safetensors", shard + 1, shards);
}

struct hrt_hf_index hrt_store_hf_index_make(void) {
    return (struct hrt_hf_index){.map = json_object()};
}

void hrt_store_hf_index_add(struct hrt_hf_index *index, const char *tensor, const char *file,
                            int64_t bytes) {
    json_object_set_new(index->map, tensor, json_string(file));
    index->bytes += bytes;
}

static bool fill_index(struct hrt_sink *sink, void *context) {
    char *text = json_dumps(context, JSON_INDENT(2));
    if (!text) errno = ENOMEM;
    const bool written = text && hrt_params_sink_put(sink, text, strlen(text));
    free(text);
    return written;
}

bool hrt_store_hf_index_write(struct hrt_hf_index *index, const char *folder,
                              struct hrt_error *error) {
    struct hrt_part part = {.name = "model.safetensors.index.json"};
    json_t *content = json_pack("{s:{s:I} s:o}", "metadata", "total_size", (json_int_t)index->bytes,
                                "weight_map", index->map);
    const bool written = hrt_store_part_write(folder, &part, fill_index, content, error);
    json_decref(content);
    *index = (struct hrt_hf_index){0};
    return written;
}
