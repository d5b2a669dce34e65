// Shards, their index, and the folder's name at the end.
#include "runtime/store/hf_export.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/files.h"
#include "runtime/params/gather.h"
#include "runtime/params/listing.h"
#include "runtime/params/merge.h"
#include "runtime/params/safetensors_write.h"
#include "runtime/store/checkpoint_part.h"
#include "runtime/store/hf_like.h"
#include "runtime/store/hf_names.h"
#include "runtime/store/hf_shards.h"
#include "runtime/store/new_folder.h"
#include "runtime/store/peft.h"
#include "runtime/train/ranks.h"

enum { STRIP = 64, BLOCK = 4096 };

struct piece {               // One of our tensors.
    char name[HRT_PATH_MAX]; // The folder's tensor that it becomes, or a part of.
    struct hrt_tensor tensor;
    const struct hrt_hf_rule *rule;
    struct hrt_hf_view view;
    bool
        copy; // Another one of the same tensor of ours is written, too; left out where `like` has none.
};

struct entry { // A tensor of the folder.
    const struct piece
        *piece; // Its first one, in the order of experts and parts; the others follow.
    size_t pieces;
    enum hrt_hf_type type;
    int64_t bytes;
    int shard;
};

struct exporting {
    const struct hrt_hf_export *export;
    const struct hrt_program *program;
    struct hrt_gather gather;
    struct hrt_hf_like like;
    struct hrt_new_folder folder;
    struct hrt_hf_adapter_rule *made; // [params]
    struct piece *piece;              // By name.
    struct entry *entry;              // The same.
    size_t pieces, entries, brought;
    struct hrt_adapter adapter; // That is added to the piece.
    bool short_of_memory;
    int shards, shard; // How many; the one that is written.
    struct hrt_error *error;
};

// ---- what is written

static const struct hrt_hf_layout *layout_of(const struct piece *piece) {
    return &piece->rule->layout[0];
}

static int by_name(const void *a, const void *b) {
    const struct piece *left = a, *right = b;
    const int order = strcmp(left->name, right->name);
    if (order) return order;
    return (left->view.place.first > right->view.place.first) -
           (left->view.place.first < right->view.place.first);
}

static struct piece *add(struct exporting *exporting, const struct hrt_tensor *tensor,
                         const struct hrt_hf_rule *rule) {
    struct piece *piece = &exporting->piece[exporting->pieces++];
    *piece = (struct piece){.tensor = *tensor, .rule = rule};
    hrt_store_hf_name(exporting->program, tensor, layout_of(piece)->name, piece->name);
    piece->view = hrt_store_hf_view_of(exporting->program, tensor, layout_of(piece));
    return piece;
}

static bool add_all(struct exporting *exporting, const struct hrt_hf_family *family) {
    struct hrt_tensor tensor = {0};
    while (hrt_params_tensor_next(exporting->program, &tensor)) {
        if (!hrt_params_is_stored(tensor.param, HRT_PARAMETERS) ||
            (tensor.param->lora != HRT_LORA_NONE) != exporting->export->adapters)
            continue;
        const struct hrt_hf_rule *rule =
            hrt_store_hf_rule_for(exporting->program, family, tensor.param,
                                  &exporting->made[tensor.param - exporting->program->param]);
        if (!rule) {
            char path[HRT_PATH_MAX];
            hrt_params_tensor_path(&tensor, path);
            return hrt_fail(exporting->error, "parameter '%s' has no name in family %s", path,
                            family->name);
        }
        add(exporting, &tensor, rule);
    }
    return true;
}

// Elements of the folder's tensor that a piece lies in.
static int64_t size_of(const struct piece *piece) {
    int64_t size = 1;
    for (int i = 0; i < piece->view.rank; i++) size *= piece->view.shape[i];
    return size;
}

// Pieces of one name are one tensor, all of it.
static bool group(struct exporting *exporting) {
    const struct piece *piece = exporting->piece, *const end = piece + exporting->pieces;
    while (piece < end) {
        struct entry *entry = &exporting->entry[exporting->entries++];
        int64_t left = size_of(piece);
        *entry = (struct entry){.piece = piece};
        for (; piece < end && strcmp(piece->name, entry->piece->name) == 0; piece++) {
            left -= hrt_params_size(piece->tensor.param);
            entry->pieces++;
        }
        if (left != 0)
            return hrt_fail(
                exporting->error, "the parameters that would be '%s' have %" PRId64 " elements %s",
                entry->piece->name, left < 0 ? -left : left, left < 0 ? "too many" : "too few");
    }
    return true;
}

// The same on all ranks.
static bool list(struct exporting *exporting) {
    const struct hrt_hf_family *family = hrt_store_hf_family_of(exporting->program);
    struct hrt_tensor tensor = {0};
    struct hrt_hf_copy copy = {0};
    size_t room = 1;
    if (!family)
        return hrt_fail(exporting->error,
                        "this program knows no names of Hugging Face's: add names "
                        "hf { family = ... } to its model");
    while (hrt_params_tensor_next(exporting->program, &tensor)) room++;
    while (hrt_store_hf_next_copy(family, exporting->program, &copy)) room++;
    exporting->piece = calloc(room, sizeof *exporting->piece);
    exporting->entry = calloc(room, sizeof *exporting->entry);
    exporting->made = calloc((size_t)exporting->program->params + 1, sizeof *exporting->made);
    if (!exporting->piece || !exporting->entry || !exporting->made)
        return hrt_fail(exporting->error, "out of memory");
    if (!add_all(exporting, family)) return false;
    copy = (struct hrt_hf_copy){0};
    while (!exporting->export->adapters &&
           hrt_store_hf_next_copy(family, exporting->program, &copy))
        add(exporting, &copy.tensor, copy.rule)->copy = true;
    qsort(exporting->piece, exporting->pieces, sizeof *exporting->piece, by_name);
    return group(exporting);
}

// Whether there is no such tensor in the folder that this one is like.
static bool is_left_out(const struct exporting *exporting, const struct piece *piece) {
    struct hrt_safetensors *file;
    const struct hrt_hf_folder *like = &exporting->like.folder;
    return piece->copy && like->where && !hrt_store_hf_find(like, piece->name, &file);
}

// Adapters keep the precision that they are trained in.
static bool find_type(const struct exporting *exporting, const struct piece *piece,
                      enum hrt_hf_type *type) {
    *type = exporting->program->precision == HRT_FP64 ? HRT_HF_F64 : HRT_HF_F32;
    return exporting->export->adapters ||
           hrt_store_hf_like_type(&exporting->like, exporting->program, &piece->tensor, piece->rule,
                                  &piece->view, type, exporting->error);
}

// Chooses types, and a shard for each tensor. Tensors that are left out lose their entry.
static bool share_out(struct exporting *exporting) {
    int64_t bytes = 0;
    size_t kept = 0;
    exporting->shards = 1;
    for (size_t i = 0; i < exporting->entries; i++) {
        struct entry entry = exporting->entry[i];
        const struct piece *piece = entry.piece;
        if (is_left_out(exporting, piece)) continue;
        if (!find_type(exporting, piece, &entry.type)) return false;
        entry.bytes = size_of(piece) * (int64_t)hrt_params_hf_type_bytes(entry.type);
        if (!exporting->export->adapters && bytes > 0 &&
            bytes + entry.bytes > exporting->export->shard_bytes) {
            exporting->shards++;
            bytes = 0;
        }
        bytes += entry.bytes;
        entry.shard = exporting->shards - 1;
        exporting->entry[kept++] = entry;
    }
    exporting->entries = kept;
    return true;
}

// ---- tensors

static bool next_slice(struct exporting *exporting) {
    return hrt_params_gather_next(&exporting->gather);
}

// Begins the next piece: by columns where the file's rows are our columns. All ranks do.
static void begin_next(struct exporting *exporting) {
    const struct piece *piece = &exporting->piece[exporting->brought++];
    const bool turned = piece->view.place.turned && layout_of(piece)->parts <= 1;
    hrt_params_gather_tensor(&exporting->gather, &piece->tensor,
                             turned ? piece->view.place.rows : 0);
    hrt_params_adapter_free(&exporting->adapter);
    if (exporting->export->merge && piece->tensor.param->packing &&
        !hrt_params_adapter_read(&exporting->adapter, &exporting->gather.buffer, &piece->tensor,
                                 exporting->error))
        exporting->short_of_memory = true;
}

// Begins a piece, and drops the pieces before it.
static void begin_piece(struct exporting *exporting, const struct piece *piece) {
    while (&exporting->piece[exporting->brought] != piece) {
        begin_next(exporting);
        while (next_slice(exporting)) continue;
    }
    begin_next(exporting);
}

// Reads `count` elements of the current slice into `values`, `step` apart.
static void read_some(const struct exporting *exporting, int64_t first, int64_t count,
                      double *values, int64_t step) {
    double elements[BLOCK]; // Or of a smaller type.
    hrt_params_slice_read(exporting->program, &exporting->gather.slice, first, count, elements);
    for (int64_t i = 0; i < count; i++)
        values[i * step] = hrt_params_element(elements, exporting->program->precision, i);
    for (int64_t i = 0; i < count && exporting->adapter.b; i++)
        values[i * step] += hrt_params_adapter_at(exporting->program, &exporting->adapter,
                                                  exporting->gather.slice.tensor.param, first + i);
}

static bool put(struct hrt_sink *sink, enum hrt_hf_type type, double *values, int64_t count) {
    hrt_params_hf_encode(type, values, count, values);
    return hrt_params_sink_put(sink, values, (size_t)count * hrt_params_hf_type_bytes(type));
}

// Some rows of the file's matrix, which are columns of ours, at a time; `strip` has room for STRIP of them.
static bool put_columns(const struct exporting *exporting, struct hrt_sink *sink,
                        enum hrt_hf_type type, const struct piece *piece, double *strip) {
    const struct hrt_slice *slice = &exporting->gather.slice;
    const struct hrt_place *place = &piece->view.place;
    for (int64_t at = 0; at < slice->run; at += STRIP) {
        const int64_t left = slice->run - at, rows = left < STRIP ? left : STRIP;
#pragma omp parallel for schedule(static)
        for (int64_t c = 0; c < place->columns; c++)
            read_some(exporting, c * place->rows + slice->first + at, rows, strip + c,
                      place->columns);
        if (!put(sink, type, strip, rows * place->columns)) return false;
    }
    return true;
}

static bool put_turned(struct exporting *exporting, struct hrt_sink *sink, enum hrt_hf_type type,
                       const struct piece *piece) {
    double *strip = malloc((size_t)(STRIP * piece->view.place.columns + 1) * sizeof *strip);
    bool written = strip;
    while (written && next_slice(exporting))
        written = put_columns(exporting, sink, type, piece, strip);
    const int reason = strip ? errno : ENOMEM;
    free(strip);
    errno = reason;
    return written;
}

static bool put_piece(struct exporting *exporting, struct hrt_sink *sink, enum hrt_hf_type type,
                      const struct piece *piece) {
    const struct hrt_slice *slice = &exporting->gather.slice;
    double block[BLOCK];
    begin_piece(exporting, piece);
    if (piece->view.place.turned) return put_turned(exporting, sink, type, piece);
    while (next_slice(exporting)) {
        for (int64_t at = 0; at < slice->run; at += BLOCK) {
            const int64_t left = slice->run - at, count = left < BLOCK ? left : BLOCK;
            read_some(exporting, slice->first + at, count, block, 1);
            if (!put(sink, type, block, count)) return false;
        }
    }
    return true;
}

// Stores the current slice at its places among the other parts.
static void place(const struct exporting *exporting, enum hrt_hf_type type,
                  const struct piece *piece, char *slab) {
    const struct hrt_slice *slice = &exporting->gather.slice;
    const struct hrt_place *place = &piece->view.place;
    const int64_t begin = place->first % piece->view.slab;
    const size_t bytes = hrt_params_hf_type_bytes(type);
    double block[BLOCK];
    for (int64_t at = 0; at < slice->run; at++) {
        const int64_t i = slice->first + at, left = slice->run - at;
        if (at % BLOCK == 0) {
            const int64_t count = left < BLOCK ? left : BLOCK;
            read_some(exporting, i, count, block, 1);
            hrt_params_hf_encode(type, block, count, block);
        }
        const int64_t row = place->turned ? i % place->rows : i / place->columns;
        const int64_t column = place->turned ? i / place->rows : i % place->columns;
        memcpy(slab + (size_t)(begin + row * place->row_step + column * place->step) * bytes,
               (const char *)block + (size_t)(at % BLOCK) * bytes, bytes);
    }
}

// Parts that lie in one tensor are put together in memory.
static bool put_parts(struct exporting *exporting, struct hrt_sink *sink, enum hrt_hf_type type,
                      const struct piece *piece, int parts) {
    const size_t bytes = (size_t)piece->view.slab * hrt_params_hf_type_bytes(type);
    char *slab = malloc(bytes + 1);
    if (!slab) return false;
    for (int i = 0; i < parts; i++) {
        begin_piece(exporting, &piece[i]);
        while (next_slice(exporting)) place(exporting, type, &piece[i], slab);
    }
    const bool written = hrt_params_sink_put(sink, slab, bytes);
    const int reason = errno;
    free(slab);
    errno = reason;
    return written;
}

static bool put_entry(struct exporting *exporting, struct hrt_sink *sink,
                      const struct entry *entry) {
    const struct piece *piece = entry->piece, *const end = piece + entry->pieces;
    const int parts = layout_of(piece)->parts;
    bool written = true;
    for (; written && piece<end; piece += parts> 1 ? parts : 1) {
        written = parts > 1 ? put_parts(exporting, sink, entry->type, piece, parts)
                            : put_piece(exporting, sink, entry->type, piece);
    }
    if (written && exporting->short_of_memory) errno = ENOMEM;
    return written && !exporting->short_of_memory;
}

// ---- files

static bool put_header(const struct exporting *exporting, struct hrt_sink *sink) {
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t offset = 0;
    bool written = header;
    for (size_t i = 0; written && i < exporting->entries; i++) {
        const struct entry *entry = &exporting->entry[i];
        if (entry->shard != exporting->shard) continue;
        written = hrt_params_safetensors_declare(
            header, entry->piece->name, hrt_params_hf_type_name(entry->type),
            entry->piece->view.shape, entry->piece->view.rank, entry->bytes, &offset);
    }
    if (!written) errno = ENOMEM;
    written = written && hrt_params_safetensors_begin(sink, header);
    json_decref(header);
    return written;
}

static bool fill_shard(struct hrt_sink *sink, void *context) {
    struct exporting *exporting = context;
    if (!put_header(exporting, sink)) return false;
    for (size_t i = 0; i < exporting->entries; i++) {
        const struct entry *entry = &exporting->entry[i];
        if (entry->shard == exporting->shard && !put_entry(exporting, sink, entry)) return false;
    }
    return true;
}

static void name_shard(const struct exporting *exporting, int shard, char name[HRT_PART_NAME]) {
    if (exporting->export->adapters)
        snprintf(name, HRT_PART_NAME, HRT_PEFT_WEIGHTS);
    else
        hrt_store_hf_shard_name(shard, exporting->shards, name);
}

static bool write_index(const struct exporting *exporting) {
    struct hrt_hf_index index = hrt_store_hf_index_make();
    for (size_t i = 0; i < exporting->entries; i++) {
        const struct entry *entry = &exporting->entry[i];
        char name[HRT_PART_NAME];
        name_shard(exporting, entry->shard, name);
        hrt_store_hf_index_add(&index, entry->piece->name, name, entry->bytes);
    }
    return hrt_store_hf_index_write(&index, exporting->folder.path, exporting->error);
}

// Runs on rank 0.
static bool write_files(struct exporting *exporting) {
    struct hrt_part part;
    if (exporting->shards > 1 && !write_index(exporting)) return false;
    const struct hrt_hf_family *family = hrt_store_hf_family_of(exporting->program);
    const bool described =
        exporting->export->adapters
            ? hrt_store_peft_write_config(exporting->folder.path, exporting->program, family,
                                          exporting->export->like, exporting->error)
            : hrt_store_hf_like_copy(&exporting->like,
                                     hrt_store_hf_predicts(family, exporting->program),
                                     exporting->folder.path, exporting->error);
    if (!described) return false;
    for (; exporting->shard < exporting->shards; exporting->shard++) {
        name_shard(exporting, exporting->shard, part.name);
        if (!hrt_store_part_write(exporting->folder.path, &part, fill_shard, exporting,
                                  exporting->error))
            return false;
    }
    return true;
}

// ---- the folder

// Runs on rank 0: finds all possible errors before tensors come.
static bool begin(struct exporting *exporting) {
    const struct hrt_hf_export *export = exporting->export;
    if (!hrt_store_new_folder_name(&exporting->folder, export->to, exporting->error) ||
        (!export->adapters &&
         !hrt_store_hf_like_open(&exporting->like, export->like, exporting->error)))
        return false;
    return share_out(exporting) && hrt_store_new_folder_begin(&exporting->folder);
}

static bool write_all(struct exporting *exporting) {
    const bool sends = hrt_params_gather_sends(&exporting->gather);
    bool written = sends || write_files(exporting);
    while (next_slice(exporting)) continue;
    while (exporting->brought < exporting->pieces) {
        begin_next(exporting);
        while (next_slice(exporting)) continue;
    }
    return sends ? written : hrt_store_new_folder_end(&exporting->folder, written);
}

// Another rank's adapters would have to come with its weights.
static bool check_packed(const struct exporting *exporting) {
    for (int i = 0; i < exporting->program->params; i++) {
        if (exporting->program->param[i].packing)
            return hrt_fail(exporting->error,
                            "weights that stay packed (adapt.base) are merged by a "
                            "program of one rank");
    }
    return true;
}

bool hrt_store_hf_write(const struct hrt_hf_export *export, const struct hrt_buffer *params,
                        struct hrt_comm *comm, struct hrt_error *error) {
    const struct hrt_placement *placement = params->placement;
    struct exporting exporting = {.export = export,
                                  .program = placement->program,
                                  .gather = {.buffer = *params},
                                  .error = error};
    const bool gathers = hrt_params_gathers(params);
    const bool alone = comm->rank > 0 && !gathers; // Rank 0 has everything.
    if (gathers) exporting.gather.comm = comm;
    const bool sound = !gathers || !export->merge || check_packed(&exporting);
    const bool begun =
        sound && (alone || (hrt_params_gather_open(&exporting.gather, error) && list(&exporting) &&
                            (comm->rank > 0 || begin(&exporting))));
    const bool all = hrt_train_ranks_agree(comm, begun, error);
    const bool written = all && (alone || write_all(&exporting));
    if (begun && !all && comm->rank == 0) hrt_store_new_folder_end(&exporting.folder, false);
    hrt_params_gather_close(&exporting.gather);
    hrt_params_adapter_free(&exporting.adapter);
    hrt_store_hf_like_close(&exporting.like);
    free(exporting.piece);
    free(exporting.entry);
    free(exporting.made);
    return all && hrt_train_ranks_agree(comm, written, error);
}
