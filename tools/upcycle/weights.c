// Experts from MLPs, and new routers: tensor by tensor.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/params/element.h"
#include "runtime/params/safetensors_write.h"
#include "runtime/store/hf_shards.h"
#include "tools/upcycle/upcycle.h"

enum { BLOCK = 1 << 14, RANK = 8, NAME = 512, LARGEST_F16 = 65504 };
enum kind { GATE, UP, DOWN, ROUTER, COPY };

struct entry {  // A tensor of the new folder.
    char *name; // Owned.
    enum kind kind;
    struct hrt_safetensors *file;    // Where the dense one lies;
    const struct hrt_stored *source; // of a router the MLP's gate_proj, whose type it has.
    int64_t layer, expert;           // For GATE, UP and DOWN.
    int64_t shape[RANK], bytes;
    int rank, shard;
};

struct upcycling {
    const struct model *model;
    const struct options *options;
    const struct hrt_hf_folder *folder;
    json_t *taken; // Names of tensors that became experts.
    struct entry *entry;
    size_t entries, room;
    int shards, shard;                 // How many; the one that is written.
    const struct hrt_stored *measured; // The tensor that these are of:
    double mean, deviation;
    bool *anew; // [units / split] Which hidden units of an expert are drawn anew.
    struct hrt_error *error;
};

// ---- which tensors

static struct entry *add(struct upcycling *up, const struct entry *entry, const char *name) {
    if (up->entries == up->room) {
        const size_t room = up->room ? 2 * up->room : 256;
        struct entry *more = realloc(up->entry, room * sizeof *more);
        if (!more) return NULL;
        up->entry = more;
        up->room = room;
    }
    struct entry *added = &up->entry[up->entries];
    *added = *entry;
    added->name = strdup(name);
    if (!added->name) return NULL;
    up->entries++;
    return added;
}

static int64_t element_bytes(const struct entry *entry) {
    return entry->source->dtype->bits / 8;
}

// One of a layer's three matrices, found and checked.
static bool find(struct upcycling *up, int64_t layer, enum kind kind, struct entry *entry) {
    static const char *const names[] = {"gate", "up", "down"};
    static const char *const types[] = {"F64", "F32", "BF16", "F16"};
    const int64_t size = up->model->size, units = up->model->units;
    const int64_t shape[2] = {kind == DOWN ? size : units, kind == DOWN ? units : size};
    char name[NAME];
    snprintf(name, sizeof name, "model.layers.%lld.mlp.%s_proj.weight", (long long)layer,
             names[kind]);
    *entry = (struct entry){.kind = kind, .layer = layer, .rank = 2};
    entry->source = hrt_store_hf_find(up->folder, name, &entry->file);
    if (!entry->source)
        return hrt_fail(up->error, "'%s' has no tensor '%s'", up->folder->path, name);
    if (!hrt_store_hf_has_shape(entry->source, shape, 2))
        return hrt_fail(up->error, "'%s': tensor '%s' is not [%lld, %lld]", entry->file->path, name,
                        (long long)shape[0], (long long)shape[1]);
    json_object_set_new(up->taken, entry->source->name, json_true());
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(entry->source->dtype->name, types[i]) == 0) return true;
    }
    return hrt_fail(up->error, "'%s': tensor '%s' is %s; F64, F32, BF16 and F16 get experts",
                    entry->file->path, name, entry->source->dtype->name);
}

static bool add_router(struct upcycling *up, int64_t layer, struct entry *entry) {
    char name[NAME];
    snprintf(name, sizeof name, "model.layers.%lld.%s", (long long)layer,
             up->model->family->router);
    entry->kind = ROUTER;
    entry->shape[0] = up->options->experts;
    entry->shape[1] = up->model->size;
    entry->bytes = entry->shape[0] * entry->shape[1] * element_bytes(entry);
    return add(up, entry, name) || hrt_fail(up->error, "out of memory");
}

// Parts of one copy of the MLP are neighbours.
static bool add_experts(struct upcycling *up, int64_t layer, const struct entry *found) {
    const struct family *family = up->model->family;
    struct entry entry = *found;
    char name[NAME];
    const int64_t units = up->model->units / up->options->split;
    entry.shape[0] = entry.kind == DOWN ? up->model->size : units;
    entry.shape[1] = entry.kind == DOWN ? units : up->model->size;
    entry.bytes = entry.shape[0] * entry.shape[1] * element_bytes(&entry);
    const int begin = snprintf(name, sizeof name, "model.layers.%lld.", (long long)layer);
    for (int64_t e = 0; e < up->options->experts; e++) {
        entry.expert = e;
        snprintf(name + begin, sizeof name - (size_t)begin, family->expert, (long long)e,
                 family->part[entry.kind]);
        if (!add(up, &entry, name)) return hrt_fail(up->error, "out of memory");
    }
    return true;
}

static bool add_layers(struct upcycling *up) {
    for (int64_t layer = 0; layer < up->model->layers; layer++) {
        for (enum kind kind = GATE; kind <= DOWN; kind++) {
            struct entry entry;
            if (!find(up, layer, kind, &entry) || !add_experts(up, layer, &entry) ||
                (kind == GATE && !add_router(up, layer, &entry)))
                return false;
        }
    }
    return true;
}

// All other tensors stay as they are.
static bool add_copies(struct upcycling *up) {
    const char *stored;
    json_t *number;
    json_object_foreach(up->folder->where, stored, number) {
        struct entry entry = {.kind = COPY};
        char name[NAME];
        if (json_object_get(up->taken, stored)) continue;
        const bool body = up->folder->bare && strcmp(stored, "lm_head.weight") != 0;
        if (snprintf(name, sizeof name, "%s%s", body ? HRT_HF_BODY : "", stored) >= NAME)
            return hrt_fail(up->error, "'%s' has a tensor whose name is too long",
                            up->folder->path);
        entry.source = hrt_store_hf_find(up->folder, name, &entry.file);
        entry.rank = (int)json_array_size(entry.source->shape);
        if (entry.rank > RANK)
            return hrt_fail(up->error, "'%s': tensor '%s' has too many dims", entry.file->path,
                            name);
        for (int i = 0; i < entry.rank; i++)
            entry.shape[i] = json_integer_value(json_array_get(entry.source->shape, (size_t)i));
        entry.bytes = entry.source->end - entry.source->begin;
        if (!add(up, &entry, name)) return hrt_fail(up->error, "out of memory");
    }
    return true;
}

static void share_out(struct upcycling *up) {
    int64_t bytes = 0;
    up->shards = 1;
    for (size_t i = 0; i < up->entries; i++) {
        if (bytes > 0 && bytes + up->entry[i].bytes > up->options->shard_bytes) {
            up->shards++;
            bytes = 0;
        }
        bytes += up->entry[i].bytes;
        up->entry[i].shard = up->shards - 1;
    }
}

// ---- numbers

// Standard normal number `i` of a stream, from those of the block that it is in.
struct normals {
    struct hrt_stream stream;
    int64_t block; // -1: none yet.
    double value[4];
};

static double normal(struct normals *normals, int64_t i) {
    if (normals->block != i / 4)
        hrt_draw_normals(normals->stream, (uint64_t)(i / 4), normals->value);
    normals->block = i / 4;
    return normals->value[i % 4];
}

static bool put(struct hrt_sink *sink, const struct entry *entry, double *values, int64_t count) {
    const enum hrt_hf_type type = hrt_params_hf_type_find(entry->source->dtype->name);
    for (int64_t i = 0; type == HRT_HF_F16 && i < count; i++) {
        if (isfinite(values[i]) && fabs(values[i]) > LARGEST_F16) {
            errno = ERANGE;
            return false;
        }
    }
    hrt_params_hf_encode(type, values, count, values);
    return hrt_params_sink_put(sink, values, (size_t)(count * element_bytes(entry)));
}

// Rows of the parts of one copy are equal, so that they are chosen together.
static bool put_router(const struct upcycling *up, struct hrt_sink *sink,
                       const struct entry *entry) {
    struct normals normals = {
        hrt_stream_make((uint64_t)up->options->seed, "upcycle router", entry->name), -1, {0}};
    double values[BLOCK];
    for (int64_t e = 0; e < up->options->experts; e++) {
        const int64_t row = e / up->options->split * up->model->size;
        for (int64_t at = 0; at < up->model->size; at += BLOCK) {
            const int64_t left = up->model->size - at, count = left < BLOCK ? left : BLOCK;
            for (int64_t i = 0; i < count; i++)
                values[i] = up->model->deviation * normal(&normals, row + at + i);
            if (!put(sink, entry, values, count)) return false;
        }
    }
    return true;
}

// Mean and standard deviation of a tensor.
static bool measure(struct upcycling *up, const struct entry *entry) {
    const int64_t bytes = element_bytes(entry), all = up->model->size * up->model->units;
    double block[BLOCK], sum = 0, squares = 0;
    if (up->measured == entry->source) return true;
    for (int64_t at = 0; at < all; at += BLOCK) {
        const int64_t count = all - at < BLOCK ? all - at : BLOCK;
        if (!hrt_params_safetensors_bytes(entry->file, entry->source, at * bytes,
                                          (size_t)(count * bytes), block))
            return false;
        for (int64_t i = 0; i < count; i++) {
            const double value = entry->source->dtype->value(block, i);
            sum += value;
            squares += value * value;
        }
    }
    up->mean = sum / (double)all;
    const double variance = squares / (double)all - up->mean * up->mean;
    up->deviation = variance > 0 ? sqrt(variance) : 0;
    up->measured = entry->source;
    return true;
}

// The same units in all three matrices of an expert.
static void draw_units(const struct upcycling *up, const struct entry *entry) {
    char object[64];
    snprintf(object, sizeof object, "%lld.%lld", (long long)entry->layer, (long long)entry->expert);
    const struct hrt_stream stream =
        hrt_stream_make((uint64_t)up->options->seed, "upcycle units", object);
    for (int64_t unit = 0; unit < up->model->units / up->options->split; unit++)
        up->anew[unit] = hrt_draw_uniform(stream, (uint64_t)unit) < up->options->reinit;
}

// Element `i` of an expert's matrix, where the dense one has `value`.
static double changed(const struct upcycling *up, const struct entry *entry,
                      struct normals *normals, int64_t i, double value) {
    const int64_t columns = entry->shape[1];
    if (up->anew[entry->kind == DOWN ? i % columns : i / columns])
        return up->mean + up->deviation * normal(normals, i);
    if (up->options->noise == 0) return value;
    return value + up->options->noise * up->deviation * normal(normals, i);
}

// `count` elements of the dense tensor from `first` on, which are elements `at` ... of the new one.
static bool put_run(const struct upcycling *up, struct hrt_sink *sink, const struct entry *entry,
                    struct normals *normals, int64_t first, int64_t at, int64_t count) {
    const int64_t bytes = element_bytes(entry);
    const double scale = entry->kind == DOWN ? (double)up->options->split : 1;
    const bool changes = up->options->noise != 0 || up->options->reinit != 0;
    double block[BLOCK], values[BLOCK];
    for (int64_t done = 0; done < count; done += BLOCK) {
        const int64_t some = count - done < BLOCK ? count - done : BLOCK;
        if (!hrt_params_safetensors_bytes(entry->file, entry->source, (first + done) * bytes,
                                          (size_t)(some * bytes), block))
            return false;
        if (scale == 1 && !changes) {
            if (!hrt_params_sink_put(sink, block, (size_t)(some * bytes))) return false;
            continue;
        }
        for (int64_t i = 0; i < some; i++) {
            values[i] = entry->source->dtype->value(block, i);
            if (changes) values[i] = changed(up, entry, normals, at + done + i, values[i]);
            values[i] *= scale;
        }
        if (!put(sink, entry, values, some)) return false;
    }
    return true;
}

// Parts of hidden units are rows of gate_proj and up_proj, and columns of down_proj. Weights add to 1 over
// all parts that were chosen, so each has `split` times as much of down_proj.
static bool put_expert(struct upcycling *up, struct hrt_sink *sink, const struct entry *entry) {
    struct normals normals = {
        hrt_stream_make((uint64_t)up->options->seed, "upcycle noise", entry->name), -1, {0}};
    const int64_t all = entry->shape[0] * entry->shape[1];
    const int64_t part = entry->expert % up->options->split;
    draw_units(up, entry);
    if ((up->options->noise != 0 || up->options->reinit != 0) && !measure(up, entry)) return false;
    if (entry->kind != DOWN || up->options->split == 1)
        return put_run(up, sink, entry, &normals, part * all, 0, all);
    const int64_t run = entry->shape[1];
    bool written = true;
    for (int64_t row = 0; written && row < entry->shape[0]; row++)
        written =
            put_run(up, sink, entry, &normals, row * up->model->units + part * run, row * run, run);
    return written;
}

static bool put_copy(struct hrt_sink *sink, const struct entry *entry) {
    char block[BLOCK];
    for (int64_t at = 0; at < entry->bytes; at += BLOCK) {
        const size_t count = (size_t)(entry->bytes - at < BLOCK ? entry->bytes - at : BLOCK);
        if (!hrt_params_safetensors_bytes(entry->file, entry->source, at, count, block) ||
            !hrt_params_sink_put(sink, block, count))
            return false;
    }
    return true;
}

// ---- files

static bool put_header(const struct upcycling *up, struct hrt_sink *sink) {
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t offset = 0;
    bool written = header;
    for (size_t i = 0; written && i < up->entries; i++) {
        const struct entry *entry = &up->entry[i];
        if (entry->shard == up->shard)
            written =
                hrt_params_safetensors_declare(header, entry->name, entry->source->dtype->name,
                                               entry->shape, entry->rank, entry->bytes, &offset);
    }
    if (!written) errno = ENOMEM;
    written = written && hrt_params_safetensors_begin(sink, header);
    json_decref(header);
    return written;
}

static bool fill_shard(struct hrt_sink *sink, void *context) {
    struct upcycling *up = context;
    bool written = put_header(up, sink);
    for (size_t i = 0; written && i < up->entries; i++) {
        const struct entry *entry = &up->entry[i];
        if (entry->shard != up->shard) continue;
        if (entry->kind == COPY)
            written = put_copy(sink, entry);
        else
            written =
                entry->kind == ROUTER ? put_router(up, sink, entry) : put_expert(up, sink, entry);
    }
    return written;
}

static bool write_files(struct upcycling *up, const char *to) {
    struct hrt_hf_index index = hrt_store_hf_index_make();
    struct hrt_part part;
    for (size_t i = 0; i < up->entries; i++) {
        hrt_store_hf_shard_name(up->entry[i].shard, up->shards, part.name);
        hrt_store_hf_index_add(&index, up->entry[i].name, part.name, up->entry[i].bytes);
    }
    if (up->shards == 1)
        json_decref(index.map);
    else if (!hrt_store_hf_index_write(&index, to, up->error))
        return false;
    for (; up->shard < up->shards; up->shard++) {
        hrt_store_hf_shard_name(up->shard, up->shards, part.name);
        if (hrt_store_part_write(to, &part, fill_shard, up, up->error)) continue;
        if (*up->folder->error->text) *up->error = *up->folder->error; // It could not be read.
        return false;
    }
    return true;
}

bool upcycle_weights(const struct model *model, const struct options *options,
                     const struct hrt_hf_folder *folder, const char *to, struct hrt_error *error) {
    struct upcycling up = {.model = model,
                           .options = options,
                           .folder = folder,
                           .taken = json_object(),
                           .error = error};
    up.anew = calloc((size_t)(model->units / options->split), sizeof *up.anew);
    bool written =
        (up.anew || hrt_fail(error, "out of memory")) && add_layers(&up) && add_copies(&up);
    if (written) {
        share_out(&up);
        written = write_files(&up, to);
    }
    for (size_t i = 0; i < up.entries; i++) free(up.entry[i].name);
    free(up.entry);
    free(up.anew);
    json_decref(up.taken);
    return written;
}
