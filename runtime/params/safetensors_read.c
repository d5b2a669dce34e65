// Header and elements of a safetensors file.
#include "runtime/params/safetensors_read.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"

enum { HEADER_MOST = 100000000 }; // Bytes a header may have.

// ---- elements

static double value_f64(const void *block, int64_t i) {
    return ((const double *)block)[i];
}

static double value_f32(const void *block, int64_t i) {
    return (double)((const float *)block)[i];
}

static double value_bf16(const void *block, int64_t i) {
    const uint32_t bits = (uint32_t)((const uint16_t *)block)[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

// IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction.
static double value_f16(const void *block, int64_t i) {
    const uint16_t bits = ((const uint16_t *)block)[i];
    const int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31) size = fraction ? NAN : INFINITY;
    return bits >> 15 ? -size : size;
}

static void floats_f64(const void *block, int64_t count, float *values) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) values[i] = (float)((const double *)block)[i];
}

static void floats_f32(const void *block, int64_t count, float *values) {
    memcpy(values, block, (size_t)count * sizeof *values);
}

static void floats_bf16(const void *block, int64_t count, float *values) {
    const uint16_t *stored = block;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)stored[i] << 16;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

// Without branches. Where the exponent is 0, a 1 in front makes a normal number of it, which is taken off again: no
// step has a float that is not normal, which a processor may be told to take for 0.
static void floats_f16(const void *block, int64_t count, float *values) {
    const uint16_t *stored = block;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
        const uint32_t size = stored[i] & 0x7fffu, exponent = size >> 10;
        const uint32_t normal = (size << 13) + (exponent == 31 ? 224u << 23 : 112u << 23);
        const uint32_t small = (size << 13) + (113u << 23);
        float value;
        memcpy(&value, &small, sizeof value);
        value -= 0x1p-14f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits = (exponent == 0 ? bits : normal) | (uint32_t)(stored[i] & 0x8000u) << 16;
        memcpy(&values[i], &bits, sizeof bits);
    }
}

// Sign, 4 bits of exponent, 3 of fraction; no infinity, and one NaN.
static double value_f8_e4m3(const void *block, int64_t i) {
    const uint8_t bits = ((const uint8_t *)block)[i];
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    double size = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    if ((bits & 127) == 127) size = NAN;
    return bits >> 7 ? -size : size;
}

static const struct hrt_dtype dtypes[] = {
    {"BOOL", 8, NULL, NULL},
    {"U8", 8, NULL, NULL},
    {"I8", 8, NULL, NULL},
    {"F8_E5M2", 8, NULL, NULL},
    {"F8_E4M3", 8, value_f8_e4m3, NULL},
    {"F8_E8M0", 8, NULL, NULL},
    {"F8_E4M3FNUZ", 8, NULL, NULL},
    {"F8_E5M2FNUZ", 8, NULL, NULL},
    {"F4", 4, NULL, NULL},
    {"F6_E2M3", 6, NULL, NULL},
    {"F6_E3M2", 6, NULL, NULL},
    {"I16", 16, NULL, NULL},
    {"U16", 16, NULL, NULL},
    {"F16", 16, value_f16, floats_f16},
    {"BF16", 16, value_bf16, floats_bf16},
    {"I32", 32, NULL, NULL},
    {"U32", 32, NULL, NULL},
    {"F32", 32, value_f32, floats_f32},
    {"C64", 64, NULL, NULL},
    {"F64", 64, value_f64, floats_f64},
    {"I64", 64, NULL, NULL},
    {"U64", 64, NULL, NULL},
};

// ---- the header

static bool refuse(struct hrt_safetensors *file, const char *why) {
    return hrt_fail(file->error, "'%s' is not a valid safetensors file: %s", file->path, why);
}

static bool refuse_tensor(struct hrt_safetensors *file, const char *name, const char *why) {
    return hrt_fail(file->error, "'%s' is not a valid safetensors file: tensor '%s' %s", file->path,
                    name, why);
}

static bool read_header(struct hrt_safetensors *file) {
    uint64_t length;
    struct stat status;
    if (fstat(fileno(file->stream), &status) != 0)
        return hrt_fail(file->error, "cannot read '%s': %s", file->path, strerror(errno));
    file->bytes = status.st_size;
    if (fread(&length, sizeof length, 1, file->stream) != 1)
        return refuse(file, "it is shorter than 8 bytes");
    if (length > HEADER_MOST) return refuse(file, "its header would be larger than 100 MB");
    file->start = (int64_t)(sizeof length + length);
    if (file->start > file->bytes) return refuse(file, "it ends inside its header");

    char *text = malloc(length + 1);
    if (!text) return hrt_fail(file->error, "out of memory");
    const bool read = fread(text, 1, length, file->stream) == length;
    json_error_t where;
    if (read && length > 0 && text[0] == '{')
        file->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    else
        snprintf(where.text, sizeof where.text, "it does not begin with '{'");
    free(text);
    if (file->header) return true;
    return hrt_fail(file->error, "'%s' is not a valid safetensors file: its header is not JSON: %s",
                    file->path, where.text);
}

static bool check_metadata(struct hrt_safetensors *file, json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) return refuse(file, "__metadata__ is not an object");
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value)) return refuse(file, "__metadata__ holds more than strings");
    }
    return true;
}

static const struct hrt_dtype *find_dtype(const char *name) {
    for (size_t i = 0; name && i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    }
    return NULL;
}

// Bytes of a tensor; -1 when the shape is malformed or too large.
static int64_t tensor_bytes(json_t *shape, int bits) {
    int64_t size = bits;
    if (!json_is_array(shape)) return -1;
    for (size_t i = 0; i < json_array_size(shape); i++) {
        json_t *extent = json_array_get(shape, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0) return -1;
        if (__builtin_mul_overflow(size, (int64_t)json_integer_value(extent), &size)) return -1;
    }
    return size % 8 ? -1 : size / 8;
}

static bool add_entry(struct hrt_safetensors *file, const char *name, json_t *value) {
    json_t *offsets = json_object_get(value, "data_offsets");
    struct hrt_stored entry = {
        .name = name,
        .dtype = find_dtype(json_string_value(json_object_get(value, "dtype"))),
        .shape = json_object_get(value, "shape"),
    };
    if (!entry.dtype) return refuse_tensor(file, name, "has no known dtype");
    if (json_array_size(offsets) != 2 || !json_is_integer(json_array_get(offsets, 0)) ||
        !json_is_integer(json_array_get(offsets, 1)))
        return refuse_tensor(file, name, "has no two data_offsets");
    entry.begin = json_integer_value(json_array_get(offsets, 0));
    entry.end = json_integer_value(json_array_get(offsets, 1));
    if (entry.begin < 0 || entry.end < entry.begin || entry.end > file->bytes - file->start)
        return refuse_tensor(file, name, "lies outside the file");
    if (tensor_bytes(entry.shape, entry.dtype->bits) != entry.end - entry.begin)
        return refuse_tensor(file, name, "has a shape that does not fit its data_offsets");
    file->entry[file->entries++] = entry;
    return true;
}

static int by_begin(const void *a, const void *b) {
    const struct hrt_stored *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end); // Empty ones first.
}

static bool check_layout(struct hrt_safetensors *file) {
    int64_t at = 0;
    qsort(file->entry, file->entries, sizeof *file->entry, by_begin);
    for (size_t i = 0; i < file->entries; i++) {
        if (file->entry[i].begin > at)
            return refuse_tensor(file, file->entry[i].name, "follows a hole");
        if (file->entry[i].begin < at)
            return refuse_tensor(file, file->entry[i].name, "overlaps the one before");
        at = file->entry[i].end;
    }
    if (file->start + at != file->bytes) return refuse(file, "bytes follow the last tensor");
    return true;
}

static bool read_entries(struct hrt_safetensors *file) {
    const char *name;
    json_t *value;
    file->entry = calloc(json_object_size(file->header) + 1, sizeof *file->entry);
    if (!file->entry) return hrt_fail(file->error, "out of memory");
    json_object_foreach(file->header, name, value) {
        const bool metadata = strcmp(name, "__metadata__") == 0;
        if (!(metadata ? check_metadata(file, value) : add_entry(file, name, value))) return false;
    }
    return check_layout(file);
}

static int by_name(const void *a, const void *b) {
    const struct hrt_stored *left = a, *right = b;
    return strcmp(left->name, right->name);
}

void hrt_params_safetensors_narrow(struct hrt_safetensors *file, const char *prefix,
                                   const char *kept) {
    const size_t length = strlen(prefix);
    size_t count = 0;
    for (size_t i = 0; i < file->entries; i++) {
        const bool inside = strncmp(file->entry[i].name, prefix, length) == 0;
        if (!inside && strcmp(file->entry[i].name, kept) != 0) continue;
        file->entry[count] = file->entry[i];
        file->entry[count++].name += inside ? length : 0;
    }
    file->entries = count;
    qsort(file->entry, file->entries, sizeof *file->entry, by_name);
}

const struct hrt_stored *hrt_params_safetensors_find(const struct hrt_safetensors *file,
                                                     const char *name) {
    const struct hrt_stored wanted = {.name = name};
    return bsearch(&wanted, file->entry, file->entries, sizeof wanted, by_name);
}

bool hrt_params_safetensors_open(struct hrt_safetensors *file, const char *path,
                                 struct hrt_error *error) {
    const char *why;
    *file = (struct hrt_safetensors){.path = path, .error = error};
    file->stream = hf_input(path, false, &why);
    if (!file->stream) return hrt_fail(error, "cannot open '%s': %s", path, why);
    if (!read_header(file) || !read_entries(file)) return false;
    qsort(file->entry, file->entries, sizeof *file->entry, by_name);
    return true;
}

void hrt_params_safetensors_close(struct hrt_safetensors *file) {
    if (file->stream) fclose(file->stream);
    json_decref(file->header);
    free(file->entry);
    *file = (struct hrt_safetensors){0};
}

bool hrt_params_safetensors_bytes(struct hrt_safetensors *file, const struct hrt_stored *entry,
                                  int64_t first, size_t count, void *bytes) {
    const off_t at = file->start + entry->begin + first;
    for (size_t done = 0; done < count;) {
        const ssize_t got =
            pread(fileno(file->stream), (char *)bytes + done, count - done, at + (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return hrt_fail(file->error, "cannot read '%s': %s", file->path,
                            got < 0 ? strerror(errno) : "it became shorter");
        done += (size_t)got;
    }
    return true;
}
