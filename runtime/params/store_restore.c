// Reading safetensors. The file is not trusted.
#include "runtime/params/store.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/files.h"
#include "runtime/params/listing.h"
#include "runtime/params/tensor.h"

enum { HEADER_MOST = 100000000, BLOCK = 4096 }; // Bytes a header may have; elements of a block.

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

static const struct dtype {
    const char *name;
    int bits;
    double (*value)(const void *block, int64_t i); // Element i; NULL: such cannot be read.
} dtypes[] = {
    {"BOOL", 8, NULL},        {"U8", 8, NULL},          {"I8", 8, NULL},
    {"F8_E5M2", 8, NULL},     {"F8_E4M3", 8, NULL},     {"F8_E8M0", 8, NULL},
    {"F8_E4M3FNUZ", 8, NULL}, {"F8_E5M2FNUZ", 8, NULL}, {"F4", 4, NULL},
    {"F6_E2M3", 6, NULL},     {"F6_E3M2", 6, NULL},     {"I16", 16, NULL},
    {"U16", 16, NULL},        {"F16", 16, value_f16},   {"BF16", 16, value_bf16},
    {"I32", 32, NULL},        {"U32", 32, NULL},        {"F32", 32, value_f32},
    {"C64", 64, NULL},        {"F64", 64, value_f64},   {"I64", 64, NULL},
    {"U64", 64, NULL},
};

// ---- the header

struct entry {
    const char *name; // Borrowed from the header.
    const struct dtype *dtype;
    json_t *shape;
    int64_t begin, end;
};

struct file {
    const char *path;
    FILE *stream;
    int64_t bytes; // Of the file.
    int64_t start; // Of the tensors.
    json_t *header;
    struct entry *entry; // In the order of the file.
    size_t entries;
    struct hrt_store_doubts *doubts;
    struct hrt_error *error;
};

static bool refuse(struct file *file, const char *why) {
    return hrt_fail(file->error, "'%s' is not a valid safetensors file: %s", file->path, why);
}

static bool refuse_tensor(struct file *file, const char *name, const char *why) {
    return hrt_fail(file->error, "'%s' is not a valid safetensors file: tensor '%s' %s", file->path,
                    name, why);
}

static bool read_header(struct file *file) {
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

static bool check_metadata(struct file *file, json_t *metadata) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) return refuse(file, "__metadata__ is not an object");
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value)) return refuse(file, "__metadata__ holds more than strings");
    }
    return true;
}

static const struct dtype *find_dtype(const char *name) {
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

static bool add_entry(struct file *file, const char *name, json_t *value) {
    json_t *offsets = json_object_get(value, "data_offsets");
    struct entry entry = {
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
    const struct entry *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end); // Empty ones first.
}

static bool check_layout(struct file *file) {
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

static bool read_entries(struct file *file) {
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
    const struct entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

static const struct entry *find_entry(const struct file *file, const char *name) {
    const struct entry wanted = {.name = name};
    return bsearch(&wanted, file->entry, file->entries, sizeof wanted, by_name);
}

static bool same_shape(const struct hrt_param *param, json_t *shape) {
    if (json_array_size(shape) != (size_t)param->rank) return false;
    for (int i = 0; i < param->rank; i++) {
        if (json_integer_value(json_array_get(shape, (size_t)i)) != param->shape[i]) return false;
    }
    return true;
}

static bool fail_shape(struct file *file, const struct hrt_param *param,
                       const struct entry *entry) {
    char wanted[160] = "[";
    for (int i = 0; i < param->rank; i++) {
        const size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%" PRId64, i ? "," : "", param->shape[i]);
    }
    char *found = json_dumps(entry->shape, JSON_COMPACT);
    hrt_fail(file->error, "'%s' is of another model: '%s' has shape %s there, and %s] here",
             file->path, entry->name, found ? found : "?", wanted);
    free(found);
    return false;
}

// The file's tensors and the program's must be the same.
static bool check_tensors(struct file *file, const struct hrt_program *program) {
    struct hrt_tensor tensor = {0};
    size_t wanted = 0;
    qsort(file->entry, file->entries, sizeof *file->entry, by_name);
    while (hrt_tensor_next(program, &tensor)) {
        if (!hrt_is_stored(tensor.param, HRT_PARAMETERS)) continue;
        char path[HRT_PATH_MAX];
        hrt_tensor_path(&tensor, path);
        const struct entry *entry = find_entry(file, path);
        if (!entry)
            return hrt_fail(file->error, "'%s' is of another model: it has no tensor '%s'",
                            file->path, path);
        if (!same_shape(tensor.param, entry->shape)) return fail_shape(file, tensor.param, entry);
        if (!entry->dtype->value)
            return hrt_fail(file->error,
                            "'%s': tensor '%s' is %s; only F64, F32, BF16 and F16 can be read",
                            file->path, path, entry->dtype->name);
        wanted++;
    }
    if (wanted == file->entries) return true;
    return hrt_fail(file->error, "'%s' is of another model: it has %zu tensors, and this one %zu",
                    file->path, file->entries, wanted);
}

// Notes the first tensor of this rank, of those that no lower one has, that is not finite.
static void doubt_value(struct file *file, const struct hrt_placement *placement,
                        const struct hrt_tensor *tensor, const struct entry *entry, double value) {
    struct hrt_store_doubts *doubts = file->doubts;
    if (isfinite(value) || !doubts || *doubts->values) return;
    if (hrt_tensor_rank(placement, tensor) != placement->rank) return;
    snprintf(doubts->values, sizeof doubts->values,
             "'%s': tensor '%s' has values that are not finite (%g)", file->path, entry->name,
             value);
}

static bool read_tensor(struct file *file, const struct hrt_placement *placement,
                        const struct hrt_tensor *tensor, void *params, const struct entry *entry) {
    const struct hrt_program *program = placement->program;
    const size_t bytes = (size_t)entry->dtype->bits / 8;
    const int64_t size = hrt_param_size(tensor->param);
    double block[BLOCK], elements[BLOCK]; // Or elements of a smaller type.
    bool read = fseeko(file->stream, file->start + entry->begin, SEEK_SET) == 0;
    for (int64_t first = 0; read && first < size; first += BLOCK) {
        const int64_t left = size - first, count = left < BLOCK ? left : BLOCK;
        read = fread(block, bytes, (size_t)count, file->stream) == (size_t)count;
        for (int64_t i = 0; read && i < count; i++) {
            hrt_element_set(elements, program->precision, i, entry->dtype->value(block, i));
            // As it is here: an F64 may be too large for a float.
            const double value = hrt_element(elements, program->precision, i);
            if (!isfinite(value)) doubt_value(file, placement, tensor, entry, value);
        }
        if (read) hrt_tensor_write(program, params, tensor, first, count, elements);
    }
    if (read) return true;
    return hrt_fail(file->error, "cannot read '%s': %s", file->path,
                    ferror(file->stream) ? strerror(errno) : "it became shorter");
}

// Notes a file that was saved by a model of another name. Others' files name none.
static void doubt_model(struct file *file, const struct hrt_program *program) {
    json_t *metadata = json_object_get(file->header, "__metadata__");
    const char *model = json_string_value(json_object_get(metadata, "model"));
    if (!file->doubts || !model || strcmp(model, program->name) == 0) return;
    snprintf(file->doubts->model, sizeof file->doubts->model,
             "'%s' was saved by the model '%.64s', and this is '%s'", file->path, model,
             program->name);
}

static bool load(struct file *file, const struct hrt_placement *placement, void *params) {
    const struct hrt_program *program = placement->program;
    if (!read_header(file) || !read_entries(file) || !check_tensors(file, program)) return false;
    doubt_model(file, program);
    struct hrt_tensor tensor = {0};
    while (hrt_tensor_next_here(placement, &tensor)) {
        if (!hrt_is_stored(tensor.param, HRT_PARAMETERS)) continue;
        char path[HRT_PATH_MAX];
        hrt_tensor_path(&tensor, path);
        if (!read_tensor(file, placement, &tensor, params, find_entry(file, path))) return false;
    }
    return true;
}

bool hrt_store_restore(const struct hrt_placement *placement, void *params, const char *path,
                       struct hrt_store_doubts *doubts, struct hrt_error *error) {
    const char *why;
    struct file file = {
        .path = path, .stream = hf_input(path, false, &why), .doubts = doubts, .error = error};
    if (!file.stream) return hrt_fail(error, "cannot open '%s': %s", path, why);
    if (doubts) *doubts = (struct hrt_store_doubts){0};
    const bool loaded = load(&file, placement, params);
    fclose(file.stream);
    json_decref(file.header);
    free(file.entry);
    return loaded;
}
