// Reading, proving and writing the experts of tokens.
#include "runtime/route/ids_file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/files.h"
#include "runtime/route/records.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files of ids are little-endian");

static const char magic[8] = {'H', 'R', 'O', 'U', 'T', 'E', '1', '\n'};
enum { SEQUENCES_AT = sizeof magic, WORDS_BEFORE_LAYERS = 3 };

bool hrt_route_ids_file_shape(struct hrt_ids_file *file, const char *path, int64_t positions,
                              int layers, const struct hrt_ids_layer *layer,
                              struct hrt_error *error) {
    *file = (struct hrt_ids_file){
        .path = path, .fd = -1, .positions = positions, .layers = layers, .layer = layer};
    for (int i = 0; i < layers; i++)
        file->record_bytes += (size_t)(positions * layer[i].topk) * sizeof *file->record;
    file->head_bytes = sizeof magic + sizeof(uint32_t) * (WORDS_BEFORE_LAYERS + 2 * (size_t)layers);
    file->record = malloc(file->record_bytes);
    return file->record || hrt_fail(error, "out of memory");
}

static bool check_word(const struct hrt_ids_file *file, const char *what, uint32_t found,
                       int64_t wanted, struct hrt_error *error) {
    if (found == wanted) return true;
    return hrt_fail(error, "'%s' has %" PRIu32 " %s, this model has %" PRId64, file->path, found,
                    what, wanted);
}

static bool check_layers(const struct hrt_ids_file *file, const uint32_t *word,
                         struct hrt_error *error) {
    char what[64];
    for (int i = 0; i < file->layers; i++) {
        snprintf(what, sizeof what, "experts in layer %d", i);
        if (!check_word(file, what, word[2 * i], file->layer[i].experts, error)) return false;
        snprintf(what, sizeof what, "experts per token in layer %d", i);
        if (!check_word(file, what, word[2 * i + 1], file->layer[i].topk, error)) return false;
    }
    return true;
}

static bool check_size(const struct hrt_ids_file *file, struct hrt_error *error) {
    struct stat status;
    if (fstat(file->fd, &status) != 0) return hrt_route_file_fail(file->path, "read", error);
    const int64_t want = (int64_t)file->head_bytes + file->sequences * (int64_t)file->record_bytes;
    if (status.st_size == want) return true;
    return hrt_fail(error,
                    "'%s' is damaged: its head says %" PRId64 " sequences, which take %" PRId64
                    " bytes, but it has %" PRId64,
                    file->path, file->sequences, want, (int64_t)status.st_size);
}

// `whole`: the run that wrote it has ended.
static bool read_head(struct hrt_ids_file *file, bool whole, struct hrt_error *error) {
    char text[sizeof magic];
    uint32_t word[WORDS_BEFORE_LAYERS];
    if (!hrt_route_file_read(file->fd, text, sizeof text, 0) ||
        memcmp(text, magic, sizeof text) != 0)
        return hrt_fail(error, "'%s' is no file of expert ids: it does not begin with HROUTE1",
                        file->path);
    if (!hrt_route_file_read(file->fd, word, sizeof word, sizeof magic))
        return hrt_route_file_fail(file->path, "read", error);
    if (whole && word[0] == 0)
        return hrt_fail(error, "'%s' is unfinished: the run that recorded it did not end",
                        file->path);
    if (!check_word(file, "positions", word[1], file->positions, error) ||
        !check_word(file, "layers of experts", word[2], file->layers, error))
        return false;
    file->sequences = word[0];
    uint32_t *layer = malloc(file->head_bytes);
    if (!layer) return hrt_fail(error, "out of memory");
    const size_t at = sizeof magic + sizeof word;
    bool read = hrt_route_file_read(file->fd, layer, file->head_bytes - at, (int64_t)at) ||
                hrt_route_file_fail(file->path, "read", error);
    read = read && check_layers(file, layer, error) && (!whole || check_size(file, error));
    free(layer);
    return read;
}

bool hrt_route_ids_file_open(struct hrt_ids_file *file, struct hrt_error *error) {
    const char *why;
    file->fd = hf_open_input(file->path, false, &why);
    if (file->fd < 0) return hrt_fail(error, "cannot open '%s': %s", file->path, why);
    return read_head(file, true, error);
}

// Whether it can go on behind `bytes`, of an open file of the right shape. Opens it for writing.
static bool reopen(struct hrt_ids_file *file, int64_t bytes, struct hrt_error *error) {
    struct stat status;
    const char *why;
    const bool known = fstat(file->fd, &status) == 0;
    close(file->fd);
    file->fd = hf_open_output(file->path, 0, &why);
    if (file->fd < 0) return hrt_fail(error, "cannot write '%s': %s", file->path, why);
    if (!known || status.st_size < bytes)
        return hrt_fail(error, "'%s' cannot go on: it ends before the checkpoint", file->path);
    return ftruncate(file->fd, bytes) == 0 || hrt_route_file_fail(file->path, "write", error);
}

bool hrt_route_ids_file_go_on(struct hrt_ids_file *file, int64_t sequences,
                              struct hrt_error *error) {
    const char *why;
    const int64_t bytes = (int64_t)file->head_bytes + sequences * (int64_t)file->record_bytes;
    file->created = true;
    file->fd = hf_open_input(file->path, false, &why);
    if (file->fd < 0) return hrt_fail(error, "'%s' cannot go on with the run: %s", file->path, why);
    return read_head(file, false, error) && reopen(file, bytes, error) &&
           hrt_route_ids_file_finish(file, 0, error);
}

bool hrt_route_ids_file_create(struct hrt_ids_file *file, bool create, struct hrt_error *error) {
    file->created = create;
    const char *why;
    file->fd = hf_open_output(file->path, create ? O_CREAT | O_TRUNC : 0, &why);
    if (file->fd < 0) return hrt_fail(error, "cannot write '%s': %s", file->path, why);
    if (!create) return true;
    const uint32_t word[] = {0, (uint32_t)file->positions, (uint32_t)file->layers};
    bool written = hrt_route_file_write(file->fd, magic, sizeof magic, 0) &&
                   hrt_route_file_write(file->fd, word, sizeof word, sizeof magic);
    for (int i = 0; i < file->layers; i++) {
        const uint32_t layer[] = {(uint32_t)file->layer[i].experts, (uint32_t)file->layer[i].topk};
        const size_t at = sizeof magic + sizeof word + (size_t)i * sizeof layer;
        written = written && hrt_route_file_write(file->fd, layer, sizeof layer, (int64_t)at);
    }
    return written || hrt_route_file_fail(file->path, "write", error);
}

static int64_t record_at(const struct hrt_ids_file *file, int64_t sequence) {
    return (int64_t)file->head_bytes + sequence * (int64_t)file->record_bytes;
}

// Whether the top-k choices of one token are experts, all different.
static bool is_valid(const uint16_t *ids, struct hrt_ids_layer layer) {
    for (int64_t j = 0; j < layer.topk; j++) {
        if (ids[j] >= layer.experts) return false;
        for (int64_t k = 0; k < j; k++) {
            if (ids[j] == ids[k]) return false;
        }
    }
    return true;
}

static bool check_record(const struct hrt_ids_file *file, int64_t sequence,
                         struct hrt_error *error) {
    const uint16_t *from = file->record;
    for (int i = 0; i < file->layers; i++) {
        const struct hrt_ids_layer layer = file->layer[i];
        for (int64_t t = 0; t < file->positions; t++, from += layer.topk) {
            if (is_valid(from, layer)) continue;
            return hrt_fail(error,
                            "'%s' is damaged: the experts of sequence %" PRId64
                            ", layer %d, position %" PRId64 " are not %" PRId64
                            " different ones of %" PRId64,
                            file->path, sequence, i, t, layer.topk, layer.experts);
        }
    }
    return true;
}

bool hrt_route_ids_file_read(struct hrt_ids_file *file, int64_t sequence, int32_t *const *ids,
                             struct hrt_error *error) {
    if (sequence >= file->sequences)
        return hrt_fail(error, "'%s' has %" PRId64 " sequences, and sequence %" PRId64 " is needed",
                        file->path, file->sequences, sequence);
    if (!hrt_route_file_read(file->fd, file->record, file->record_bytes, record_at(file, sequence)))
        return hrt_route_file_fail(file->path, "read", error);
    if (!check_record(file, sequence, error)) return false;
    const uint16_t *from = file->record;
    for (int i = 0; i < file->layers; i++) {
        const int64_t count = file->positions * file->layer[i].topk;
        for (int64_t k = 0; k < count; k++) ids[i][k] = *from++;
    }
    return true;
}

bool hrt_route_ids_file_write(struct hrt_ids_file *file, int64_t sequence,
                              const int32_t *const *ids, struct hrt_error *error) {
    uint16_t *to = file->record;
    for (int i = 0; i < file->layers; i++) {
        const int64_t count = file->positions * file->layer[i].topk;
        for (int64_t k = 0; k < count; k++) *to++ = (uint16_t)ids[i][k];
    }
    return hrt_route_file_write(file->fd, file->record, file->record_bytes,
                                record_at(file, sequence)) ||
           hrt_route_file_fail(file->path, "write", error);
}

bool hrt_route_ids_file_finish(struct hrt_ids_file *file, int64_t sequences,
                               struct hrt_error *error) {
    const uint32_t word = (uint32_t)sequences;
    return hrt_route_file_write(file->fd, &word, sizeof word, SEQUENCES_AT) ||
           hrt_route_file_fail(file->path, "write", error);
}

bool hrt_route_ids_file_close(struct hrt_ids_file *file, struct hrt_error *error) {
    const int fd = file->record ? file->fd : -1; // A zeroed struct has no descriptor.
    const char *path = file->path;
    free(file->record);
    *file = (struct hrt_ids_file){.fd = -1};
    return fd < 0 || close(fd) == 0 || hrt_route_file_fail(path, "write", error);
}
