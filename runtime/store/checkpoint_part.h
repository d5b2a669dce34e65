// The files of one checkpoint, and their index: name, size and checksum of each.
//
// index.json is written last, so a folder without a whole one is no checkpoint:
//   {"format": "hecate checkpoint", "version": 1, "step": 1200, "ranks": 4,
//    "files": [{"name": "parameters.0.safetensors", "bytes": 1024, "crc32": "0badf00d"}, ...],
//    "crc32": of the rest of this object, compact, with sorted keys}
#ifndef HECATE_RUNTIME_STORE_CHECKPOINT_PART_H
#define HECATE_RUNTIME_STORE_CHECKPOINT_PART_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/params/safetensors_write.h"

enum { HRT_PART_NAME = 64 };

struct hrt_part { // A file.
    char name[HRT_PART_NAME];
    int64_t bytes;
    uint32_t crc;
};

struct hrt_index {
    int64_t step, ranks; // Facts of the run that saved it.
    struct hrt_part *part;
    int parts;
};

// "FOLDER/NAME". False: it is too long.
bool hrt_store_part_path(char path[PATH_MAX], const char *folder, const char *name,
                         struct hrt_error *error);

// Creates the file `part->name` of the folder, lets `fill` write it, syncs it, and notes its size and checksum. `fill`
// returns false with errno.
typedef bool hrt_fill_fn(struct hrt_sink *sink, void *context);
bool hrt_store_part_write(const char *folder, struct hrt_part *part, hrt_fill_fn *fill,
                          void *context, struct hrt_error *error);

// Whether the file is as the index says: all of it is read.
bool hrt_store_part_check(const char *folder, const struct hrt_part *part, struct hrt_error *error);

// Writes index.json; reads it, which the caller frees. Its contents are not trusted.
bool hrt_store_index_write(const char *folder, const struct hrt_index *index,
                           struct hrt_error *error);
bool hrt_store_index_read(const char *folder, struct hrt_index *index, struct hrt_error *error);
void hrt_store_index_free(struct hrt_index *index);

#endif
