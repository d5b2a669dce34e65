// Inputs of hecate-data: documents of text or of tokens.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/file.h"
#include "tools/prepare/prepare.h"

enum { TOKENS_AT_ONCE = 1 << 20 };

struct source {
    enum kind kind;
    const char *path, *field;
    FILE *file; // For text.
    struct megatron *megatron;
    struct hrt_data_file llmc; // Open where the kind says so.
    int64_t next;              // Line, document or token.
    char *line;
    size_t room;
};

static enum kind kind_of(const char *path) {
    static const struct {
        const char *suffix;
        enum kind kind;
    } kinds[] = {{".jsonl", KIND_JSONL}, {".bin", KIND_LLMC}, {".idx", KIND_MEGATRON}};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t suffix = strlen(kinds[i].suffix);
        if (length > suffix && strcmp(path + length - suffix, kinds[i].suffix) == 0)
            return kinds[i].kind;
    }
    return KIND_TEXT;
}

// X.idx, and X.bin beside it.
static bool open_megatron(struct source *source, struct hrt_error *error) {
    const size_t length = strlen(source->path);
    if (length < 4 || strcmp(source->path + length - 4, ".idx") != 0)
        return hrt_fail(error, "'%s': the name of an index ends in .idx", source->path);
    char *bin = strdup(source->path);
    if (!bin) return hrt_fail(error, "out of memory");
    memcpy(bin + length - 4, ".bin", 4);
    source->megatron = megatron_open(source->path, bin, error);
    free(bin);
    return source->megatron;
}

static bool open_kind(struct source *source, struct hrt_error *error) {
    const char *why = NULL;
    if (source->kind == KIND_MEGATRON) return open_megatron(source, error);
    if (source->kind == KIND_LLMC)
        return hrt_data_file_open(&source->llmc, source->path, HRT_DATA_FORMAT_llmc, INT32_MAX,
                                  error);
    source->file = hf_input(source->path, false, &why);
    if (!source->file) return hrt_fail(error, "cannot open '%s': %s", source->path, why);
    unsigned char head[HRT_DATA_HEAD];
    const char *other = hrt_data_not_text(head, fread(head, 1, sizeof head, source->file));
    if (other) return hrt_fail(error, "'%s' is %s", source->path, other);
    rewind(source->file);
    return true;
}

struct source *source_open(const char *path, enum kind kind, const char *field,
                           struct hrt_error *error) {
    struct source *source = calloc(1, sizeof *source);
    if (!source) {
        hrt_fail(error, "out of memory");
        return NULL;
    }
    *source = (struct source){.kind = kind == KIND_AUTO ? kind_of(path) : kind,
                              .path = path,
                              .field = field,
                              .llmc = {.fd = -1}};
    if (open_kind(source, error)) return source;
    source_close(source);
    return NULL;
}

void source_close(struct source *source) {
    if (!source) return;
    if (source->file) fclose(source->file);
    megatron_close(source->megatron);
    hrt_data_file_close(&source->llmc);
    free(source->line);
    free(source);
}

bool source_is_text(const struct source *source) {
    return source->file;
}

static bool set_text(struct document *document, const char *text, size_t bytes,
                     struct hrt_error *error) {
    if (document->room < bytes + 1) {
        char *grown = realloc(document->text, bytes + 1);
        if (!grown) return hrt_fail(error, "out of memory");
        document->text = grown;
        document->room = bytes + 1;
    }
    memcpy(document->text, text, bytes);
    document->bytes = bytes;
    return true;
}

// The text of one JSON line.
static bool read_json(struct source *source, size_t bytes, struct document *document,
                      struct hrt_error *error) {
    json_error_t wrong;
    json_t *json = json_loadb(source->line, bytes, JSON_ALLOW_NUL, &wrong);
    const json_t *text = json_object_get(json, source->field);
    bool done = json_is_string(text);
    if (!json)
        hrt_fail(error, "'%s', line %" PRId64 ", column %d: %s", source->path, source->next,
                 wrong.column, wrong.text);
    else if (!done)
        hrt_fail(error, "'%s', line %" PRId64 ": no text in the field '%s' (--field)", source->path,
                 source->next, source->field);
    else
        done = set_text(document, json_string_value(text), json_string_length(text), error);
    json_decref(json);
    return done;
}

static int next_text(struct source *source, struct document *document, struct hrt_error *error) {
    for (;;) {
        errno = 0;
        // A text ends where its file does, or at a NUL: so many can lie in one file.
        const ssize_t got = source->kind == KIND_TEXT
                                ? getdelim(&source->line, &source->room, '\0', source->file)
                                : getline(&source->line, &source->room, source->file);
        if (got < 0 && (ferror(source->file) || errno)) {
            hrt_fail(error, "cannot read '%s': %s", source->path, strerror(errno));
            return -1;
        }
        if (got < 0) return 0;
        source->next++;
        size_t bytes = (size_t)got;
        if (source->kind == KIND_TEXT)
            return set_text(document, source->line, bytes - (source->line[bytes - 1] == '\0'),
                            error)
                       ? 1
                       : -1;
        if (bytes && source->line[bytes - 1] == '\n') bytes--;
        if (bytes == 0) continue;
        const bool done = source->kind == KIND_LINES
                              ? set_text(document, source->line, bytes, error)
                              : read_json(source, bytes, document, error);
        return done ? 1 : -1;
    }
}

static int next_tokens(struct source *source, struct document *document, struct hrt_error *error) {
    struct hrt_ids *ids = &document->ids;
    const int64_t left = source->llmc.tokens - source->next;
    const int64_t count = left < TOKENS_AT_ONCE ? left : TOKENS_AT_ONCE;
    if (count == 0) return 0;
    if (ids->room < (size_t)count) {
        free(ids->at);
        *ids =
            (struct hrt_ids){.at = malloc((size_t)count * sizeof *ids->at), .room = (size_t)count};
    }
    void *raw = malloc((size_t)count * 4);
    const bool room = ids->at && raw;
    if (!ids->at) ids->room = 0;
    if (!room) hrt_fail(error, "out of memory");
    const bool done = room && hrt_data_file_read(&source->llmc, source->next, count, INT32_MAX, raw,
                                                 ids->at, error);
    free(raw);
    ids->count = done ? (size_t)count : 0;
    source->next += count;
    return done ? 1 : -1;
}

int source_next(struct source *source, struct document *document, struct hrt_error *error) {
    if (source->kind == KIND_LLMC) return next_tokens(source, document, error);
    if (source->kind != KIND_MEGATRON) return next_text(source, document, error);
    if (source->next == megatron_documents(source->megatron)) return 0;
    return megatron_read(source->megatron, source->next++, &document->ids, error) ? 1 : -1;
}
