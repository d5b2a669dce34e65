// Reading safetensors. The file is not trusted: its header is checked whole when it is opened.
#ifndef HECATE_RUNTIME_PARAMS_SAFETENSORS_READ_H
#define HECATE_RUNTIME_PARAMS_SAFETENSORS_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/base/error.h"

struct json_t;

struct hrt_dtype {
    const char *name; // "BF16"
    int bits;
    double (*value)(const void *block, int64_t i); // Element i; NULL: such cannot be read.
    // Elements 0 .. count - 1, rounded once, which needs no doubles; NULL: there is no such.
    void (*floats)(const void *block, int64_t count, float *values);
};

struct hrt_stored { // A tensor in a file.
    const char *name;
    const struct hrt_dtype *dtype;
    struct json_t *shape;
    int64_t begin, end; // Bytes behind the header.
};

struct hrt_safetensors {
    const char *path; // Borrowed.
    FILE *stream;
    int64_t bytes; // Bytes of the file.
    int64_t start; // Start of the tensors.
    struct json_t *header;
    struct hrt_stored *entry; // By name.
    size_t entries;
    struct hrt_error *error; // Borrowed.
};

// Opens a file and reads its header. Close it in either case. False: `error` names the fault; a failure
// later is told there, too.
bool hrt_params_safetensors_open(struct hrt_safetensors *file, const char *path,
                                 struct hrt_error *error);

// Also of a zeroed one.
void hrt_params_safetensors_close(struct hrt_safetensors *file);

// From here on the file has only the tensors whose names begin with `prefix`, under the rest of them, and the one that
// is called `kept`.
void hrt_params_safetensors_narrow(struct hrt_safetensors *file, const char *prefix,
                                   const char *kept);

// The tensor of that name, or NULL.
const struct hrt_stored *hrt_params_safetensors_find(const struct hrt_safetensors *file,
                                                     const char *name);

// Reads `count` bytes of a tensor, of any type, from `first` on.
bool hrt_params_safetensors_bytes(struct hrt_safetensors *file, const struct hrt_stored *entry,
                                  int64_t first, size_t count, void *bytes);

#endif
