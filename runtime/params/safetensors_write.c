// Header and tensors, block by block.
#include "runtime/params/safetensors_write.h"

#include <errno.h>
#include <jansson.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

const char *hrt_params_element_dtype(enum hrt_precision precision) {
    return precision == HRT_FP64 ? "F64" : "F32";
}

bool hrt_params_sink_put(struct hrt_sink *sink, const void *data, size_t bytes) {
    if (fwrite(data, 1, bytes, sink->file) != bytes) return false;
    sink->crc = libdeflate_crc32(sink->crc, data, bytes);
    sink->bytes += (int64_t)bytes;
    return true;
}

bool hrt_params_safetensors_declare(json_t *header, const char *name, const char *dtype,
                                    const int64_t *shape, int rank, int64_t bytes,
                                    int64_t *offset) {
    json_t *extents = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(extents, json_integer(shape[i]));
    json_t *entry = json_pack("{s:s s:o s:[I I]}", "dtype", dtype, "shape", extents, "data_offsets",
                              (json_int_t)*offset, (json_int_t)(*offset + bytes));
    *offset += bytes;
    return json_object_set_new(header, name, entry) == 0;
}

// The header as text, padded with blanks so that the tensors begin at a multiple of ALIGNMENT.
// Freed by the caller; NULL: out of memory.
static char *header_text(const json_t *header) {
    char *text = json_dumps(header, JSON_COMPACT);
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

bool hrt_params_safetensors_begin(struct hrt_sink *sink, const json_t *header) {
    char *text = header_text(header);
    if (!text) {
        errno = ENOMEM;
        return false;
    }
    const uint64_t length = strlen(text);
    const bool written = hrt_params_sink_put(sink, &length, sizeof length) &&
                         hrt_params_sink_put(sink, text, (size_t)length);
    free(text);
    return written;
}

bool hrt_params_safetensors_begin_listing(struct hrt_sink *sink, const struct hrt_program *program,
                                          const struct hrt_listing *listing) {
    json_t *header = json_object();
    const int64_t element = hrt_params_element_bytes(program->precision);
    json_object_set_new(header, "__metadata__",
                        json_pack("{s:s s:s s:s}", "format", "pt", "model", program->name,
                                  "hecatec", program->version));
    int64_t offset = 0;
    bool declared = true;
    for (size_t i = 0; declared && i < listing->entries; i++) {
        const struct hrt_param *param = listing->entry[i].tensor.param;
        declared = hrt_params_safetensors_declare(
            header, listing->entry[i].path, hrt_params_element_dtype(program->precision),
            param->shape, param->rank, hrt_params_size(param) * element, &offset);
    }
    if (!declared) errno = ENOMEM;
    const bool written = declared && hrt_params_safetensors_begin(sink, header);
    json_decref(header);
    return written;
}
