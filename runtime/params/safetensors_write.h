// Writing safetensors into an open file: tensors in row-major order, without padding.
//
// Format: huggingface/safetensors README: u64 header length, JSON header, bytes of the tensors.
#ifndef HECATE_RUNTIME_PARAMS_SAFETENSORS_WRITE_H
#define HECATE_RUNTIME_PARAMS_SAFETENSORS_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "runtime/params/listing.h"
#include "runtime/program.h"

struct json_t;

// The destination of bytes, and their checksum.
struct hrt_sink {
    FILE *file;
    int64_t bytes; // So far,
    uint32_t crc;  // and their CRC-32.
};

// A whole file in memory, from malloc.
struct hrt_whole_file {
    char *data; // NULL: there is none.
    size_t bytes;
};

// False: errno says why they could not be written.
bool hrt_params_sink_put(struct hrt_sink *sink, const void *data, size_t bytes);

// The type that files give elements of this precision: "F32".
const char *hrt_params_element_dtype(enum hrt_precision precision);

// Adds a tensor of `bytes` to a header, whose tensors lie in the order in which they are added: `offset`, 0 before the
// first, is moved on. False: out of memory.
bool hrt_params_safetensors_declare(struct json_t *header, const char *name, const char *dtype,
                                    const int64_t *shape, int rank, int64_t bytes, int64_t *offset);

// Writes the beginning of a file: all but the tensors. False: errno says why not.
bool hrt_params_safetensors_begin(struct hrt_sink *sink, const struct json_t *header);

// The same for a file of the tensors of the listing, of the program's precision.
bool hrt_params_safetensors_begin_listing(struct hrt_sink *sink, const struct hrt_program *program,
                                          const struct hrt_listing *listing);

#endif
