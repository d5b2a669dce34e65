// The counts of the history, as each rank keeps and reads those of its own rows.
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/experts/history.h"
#include "runtime/experts/moves.h"
#include "runtime/params/safetensors_read.h"

// This rank's counts of an iteration of the window.
static uint32_t *own_counts(const struct hrt_fssdp *fssdp, const struct hrt_moving_set *set,
                            int64_t layer, int64_t iteration) {
    const int64_t row = iteration * fssdp->comm->size + fssdp->comm->rank;
    return set->layer[layer].window + row * set->set->experts;
}

// "0.sparse"
struct counts_name {
    char text[128];
};

static struct counts_name name_of(const struct hrt_fssdp *fssdp, int set) {
    struct counts_name name;
    snprintf(name.text, sizeof name.text, "%d.%s", set, fssdp->set[set].set->name);
    return name;
}

static size_t row_bytes(const struct hrt_moving_set *set) {
    return (size_t)set->set->experts * sizeof *set->layer->window;
}

// ---- writing

static bool write_header(const struct hrt_fssdp *fssdp, struct hrt_sink *sink) {
    json_t *header = json_object();
    int64_t offset = 0;
    bool declared = header;
    for (int i = 0; declared && i < fssdp->program->sets; i++) {
        const struct hrt_set *set = fssdp->set[i].set;
        const int64_t shape[] = {set->layers, fssdp->movement->window, set->experts};
        const int64_t bytes = shape[0] * shape[1] * (int64_t)row_bytes(&fssdp->set[i]);
        declared = hrt_params_safetensors_declare(header, name_of(fssdp, i).text, "U32", shape, 3,
                                                  bytes, &offset);
    }
    const bool written = declared && hrt_params_safetensors_begin(sink, header);
    json_decref(header);
    return written;
}

static bool write_set(const struct hrt_fssdp *fssdp, const struct hrt_moving_set *set,
                      struct hrt_sink *sink) {
    for (int64_t layer = 0; layer < set->set->layers; layer++) {
        for (int64_t w = 0; w < fssdp->movement->window; w++) {
            if (!hrt_params_sink_put(sink, own_counts(fssdp, set, layer, w), row_bytes(set)))
                return false;
        }
    }
    return true;
}

struct hrt_whole_file hrt_experts_fssdp_counts(const struct hrt_fssdp *fssdp) {
    struct hrt_whole_file file = {0};
    struct hrt_sink sink = {.file = open_memstream(&file.data, &file.bytes)};
    if (!sink.file) return (struct hrt_whole_file){0};
    bool written = write_header(fssdp, &sink);
    for (int i = 0; written && i < fssdp->program->sets; i++)
        written = write_set(fssdp, &fssdp->set[i], &sink);
    if (fclose(sink.file) == 0 && written) return file;
    free(file.data);
    return (struct hrt_whole_file){0};
}

// ---- reading

// No more than the rows of a layer that ranks can number.
static bool are_counts(const struct hrt_fssdp *fssdp, const uint32_t *count, int64_t experts) {
    int64_t rows = 0;
    for (int64_t e = 0; e < experts; e++) rows += count[e];
    return rows <= HPL_ROWS_MAX / fssdp->comm->size;
}

static bool read_set(const struct hrt_fssdp *fssdp, int index, struct hrt_safetensors *file) {
    const struct hrt_moving_set *set = &fssdp->set[index];
    const struct counts_name name = name_of(fssdp, index);
    const int64_t window = fssdp->movement->window, bytes = (int64_t)row_bytes(set);
    const struct hrt_stored *stored = hrt_params_safetensors_find(file, name.text);
    if (!stored || strcmp(stored->dtype->name, "U32") != 0 ||
        stored->end - stored->begin != set->set->layers * window * bytes)
        return hrt_fail(file->error,
                        "'%s' does not have '%s', of %" PRId64 " layers, %" PRId64
                        " iterations and %" PRId64 " experts",
                        file->path, name.text, set->set->layers, window, set->set->experts);
    for (int64_t i = 0; i < set->set->layers * window; i++) {
        uint32_t *own = own_counts(fssdp, set, i / window, i % window);
        if (!hrt_params_safetensors_bytes(file, stored, i * bytes, (size_t)bytes, own))
            return false;
        if (!are_counts(fssdp, own, set->set->experts))
            return hrt_fail(file->error, "'%s' has more rows of '%s' than a rank can have",
                            file->path, name.text);
    }
    return true;
}

bool hrt_experts_fssdp_recall_counts(struct hrt_fssdp *fssdp, const char *path,
                                     struct hrt_error *error) {
    struct hrt_safetensors file;
    bool read = hrt_params_safetensors_open(&file, path, error);
    for (int i = 0; read && i < fssdp->program->sets; i++) read = read_set(fssdp, i, &file);
    hrt_params_safetensors_close(&file);
    return read;
}
