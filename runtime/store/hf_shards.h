// Names of the files of a folder of weights, and the index of several.
#ifndef HECATE_RUNTIME_STORE_HF_SHARDS_H
#define HECATE_RUNTIME_STORE_HF_SHARDS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/store/checkpoint_part.h"

// "model.safetensors", or "model-00001-of-00003.safetensors" for `shard` 0 of 3.
void hrt_store_hf_shard_name(int shard, int shards, char name[HRT_PART_NAME]);

struct hrt_hf_index {
    struct json_t *map; // From names of tensors to those of files.
    int64_t bytes;
};

// An empty one, until it is written.
struct hrt_hf_index hrt_store_hf_index_make(void);

void hrt_store_hf_index_add(struct hrt_hf_index *index, const char *tensor, const char *file,
                            int64_t bytes);

// Writes model.safetensors.index.json, durable, and frees the index in either case.
bool hrt_store_hf_index_write(struct hrt_hf_index *index, const char *folder,
                              struct hrt_error *error);

#endif
