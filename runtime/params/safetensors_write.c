// Header and tensors, block by block.
#include "runtime/params/safetensors_write.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ALIGNMENT = 64, BLOCK = 4096 };

bool hrt_sink_put(struct hrt_sink *sink, const void *data, size_t bytes) {
    if (fwrite(data, 1, bytes, sink->file) != bytes) return false;
    sink->crc = (uint32_t)crc32_z(sink->crc, data, bytes);
    sink->bytes += (int64_t)bytes;
    return true;
}

static json_t *entry_of(const struct hrt_param *param, enum hrt_precision precision,
                        int64_t *offset) {
    const int64_t begin = *offset;
    json_t *shape = json_array();
    for (int i = 0; i < param->rank; i++)
        json_array_append_new(shape, json_integer(param->shape[i]));
    *offset += hrt_param_size(param) * hrt_element_bytes(precision);
    return json_pack("{s:s s:o s:[I I]}", "dtype", precision == HRT_FP64 ? "F64" : "F32", "shape",
                     shape, "data_offsets", (json_int_t)begin, (json_int_t)*offset);
}

// The header as text, padded with blanks so that the tensors begin at a multiple of ALIGNMENT.
// Freed by the caller; NULL: out of memory.
static char *header_text(const struct hrt_program *program, const struct hrt_listing *listing) {
    json_t *header = json_object();
    json_object_set_new(header, "__metadata__",
                        json_pack("{s:s s:s s:s}", "format", "pt", "model", program->name,
                                  "hecatec", program->version));
    int64_t offset = 0;
    for (size_t i = 0; i < listing->entries; i++)
        json_object_set_new(header, listing->entry[i].path,
                            entry_of(listing->entry[i].tensor.param, program->precision, &offset));
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    if (!text) return NULL;

    const size_t length = strlen(text), start = sizeof(uint64_t) + length;
    const size_t padding = (ALIGNMENT - start % ALIGNMENT) % ALIGNMENT;
    char *padded = malloc(length + padding + 1);
    if (padded) {
        memcpy(padded, text, length);
        memset(padded + length, ' ', padding);
        padded[length + padding] = '\0';
    }
    free(text);
    return padded;
}

// `at`: the tensor's first element.
static bool write_tensor(struct hrt_sink *sink, const struct hrt_program *program, const void *at,
                         const struct hrt_tensor *tensor) {
    const size_t bytes = (size_t)hrt_element_bytes(program->precision);
    const int64_t size = hrt_param_size(tensor->param);
    struct hrt_tensor here = *tensor;
    double block[BLOCK]; // Or floats.
    here.offset = 0;
    for (int64_t first = 0; first < size; first += BLOCK) {
        const int64_t left = size - first, count = left < BLOCK ? left : BLOCK;
        hrt_tensor_read(program, at, &here, first, count, block);
        if (!hrt_sink_put(sink, block, bytes * (size_t)count)) return false;
    }
    return true;
}

static bool write_header(struct hrt_sink *sink, const struct hrt_program *program,
                         const struct hrt_listing *listing) {
    char *header = header_text(program, listing);
    if (!header) {
        errno = ENOMEM;
        return false;
    }
    const uint64_t length = strlen(header);
    const bool written =
        hrt_sink_put(sink, &length, sizeof length) && hrt_sink_put(sink, header, (size_t)length);
    free(header);
    return written;
}

bool hrt_safetensors_write(struct hrt_sink *sink, const struct hrt_program *program,
                           const struct hrt_listing *listing, hrt_bring_fn *bring, void *context) {
    if (!write_header(sink, program, listing)) return false;
    for (size_t i = 0; i < listing->entries; i++) {
        const struct hrt_tensor *tensor = &listing->entry[i].tensor;
        if (!write_tensor(sink, program, bring(context, tensor), tensor)) return false;
    }
    return true;
}
