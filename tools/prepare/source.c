// Inputs of hecate-data: documents of text or of tokens.
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/file.h"
#include "tools/prepare/decompress.h"
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
    struct hrt_error fault;                // Why a compressed file cannot be read on.
    bool skips;                            // Bad records are told and left out.
    int64_t bad;                           // Records left out.
    enum { BEFORE, INSIDE, BEHIND } place; // In a file of a JSON array.
};

// The length of a name without the suffix of a compressed file.
static size_t length_uncompressed(const char *path) {
    static const char *const suffixes[] = {".gz", ".zst", ".xz", ".bz2"};
    const size_t length = strlen(path);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t suffix = strlen(suffixes[i]);
        if (length > suffix && strcmp(path + length - suffix, suffixes[i]) == 0)
            return length - suffix;
    }
    return length;
}

static enum kind kind_of(const char *path) {
    static const struct {
        const char *suffix;
        enum kind kind;
    } kinds[] = {
        {".jsonl", KIND_JSONL}, {".json", KIND_JSON}, {".bin", KIND_LLMC}, {".idx", KIND_MEGATRON}};
    const size_t length = length_uncompressed(path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t suffix = strlen(kinds[i].suffix);
        if (length > suffix && memcmp(path + length - suffix, kinds[i].suffix, suffix) == 0)
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

// Why a read of the file failed.
static bool fail_read(const struct source *source, struct hrt_error *error) {
    if (*source->fault.text) return hrt_fail(error, "%s", source->fault.text);
    return hrt_fail(error, "cannot read '%s': %s", source->path, strerror(errno));
}

// Whether the file's first bytes are a text's: no known format that is none, and few control characters. NULs may lie
// between texts.
static bool check_text(struct source *source, struct hrt_error *error) {
    enum { SAMPLE = 4096, SHARE = 32 };
    unsigned char head[SAMPLE];
    const size_t count = fread(head, 1, sizeof head, source->file);
    if (ferror(source->file)) return fail_read(source, error);
    const char *other = hrt_data_not_text(head, count);
    if (other) return hrt_fail(error, "'%s' is %s", source->path, other);
    size_t control = 0;
    for (size_t i = 0; i < count; i++) {
        const bool blank = head[i] >= '\b' && head[i] <= '\r';
        const bool ends = head[i] == '\0' && source->kind == KIND_TEXT;
        control += head[i] < ' ' && !blank && !ends && head[i] != '\033';
    }
    if (control * SHARE > count)
        return hrt_fail(error, "'%s' is no text: %zu of its first %zu bytes are control characters",
                        source->path, control, count);
    rewind(source->file);
    return true;
}

static bool open_kind(struct source *source, struct hrt_error *error) {
    const char *why = NULL;
    if (source->kind == KIND_MEGATRON) return open_megatron(source, error);
    if (source->kind == KIND_LLMC)
        return hrt_data_file_open(&source->llmc, source->path, HRT_DATA_FORMAT_llmc, INT32_MAX,
                                  error);
    source->file = hf_input(source->path, false, &why);
    if (!source->file) return hrt_fail(error, "cannot open '%s': %s", source->path, why);
    if (!decompress(&source->file, source->path, &source->fault)) return fail_read(source, error);
    return check_text(source, error);
}

struct source *source_open(const char *path, enum kind kind, const char *field, bool skips,
                           struct hrt_error *error) {
    struct source *source = calloc(1, sizeof *source);
    if (!source) {
        hrt_fail(error, "out of memory");
        return NULL;
    }
    *source = (struct source){.kind = kind == KIND_AUTO ? kind_of(path) : kind,
                              .path = path,
                              .field = field,
                              .skips = skips,
                              .llmc = {.fd = -1, .weights = {.fd = -1}}};
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

int64_t source_bad(const struct source *source) {
    return source->bad;
}

const char *source_unit(const struct source *source) {
    return source->kind == KIND_JSON ? "record" : "line";
}

bool source_is_text(const struct source *source) {
    return source->file;
}

bool source_is_weighted(const struct source *source) {
    return source->llmc.fd >= 0 && source->llmc.weights.fd >= 0;
}

bool source_has_records(const struct source *source) {
    return source->kind == KIND_JSONL || source->kind == KIND_JSON;
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

// The text of a record: that of its field, or in an array the record itself. Without a field the record.
static bool take_record(const struct source *source, json_t *json, struct document *document,
                        struct hrt_error *error) {
    document->place = source->next;
    if (!source->field) {
        json_decref(document->record);
        document->record = json_incref(json);
        return true;
    }
    const bool is_text = source->kind == KIND_JSON && json_is_string(json);
    const json_t *text = is_text ? json : json_object_get(json, source->field);
    if (json_is_string(text))
        return set_text(document, json_string_value(text), json_string_length(text), error);
    return hrt_fail(error, "'%s', %s %" PRId64 ": no text in the field '%s' (--field)",
                    source->path, source_unit(source), source->next, source->field);
}

// The text of one JSON line.
static bool read_line(struct source *source, size_t bytes, struct document *document,
                      struct hrt_error *error) {
    json_error_t wrong;
    json_t *json = json_loadb(source->line, bytes, JSON_ALLOW_NUL, &wrong);
    if (!json)
        return hrt_fail(error, "'%s', line %" PRId64 ", column %d: %s", source->path, source->next,
                        wrong.column, wrong.text);
    const bool taken = take_record(source, json, document, error);
    json_decref(json);
    return taken;
}

bool source_skip(struct source *source, const struct hrt_error *error) {
    enum { TOLD = 10 };
    if (!source->skips) return false;
    if (source->bad++ < TOLD) fprintf(stderr, "%s; left out\n", error->text);
    return true;
}

static int next_text(struct source *source, struct document *document, struct hrt_error *error) {
    for (;;) {
        errno = 0;
        // A text ends where its file does, or at a NUL: so many can lie in one file.
        const ssize_t got = source->kind == KIND_TEXT
                                ? getdelim(&source->line, &source->room, '\0', source->file)
                                : getline(&source->line, &source->room, source->file);
        if (ferror(source->file) || (got < 0 && errno)) return fail_read(source, error) ? 1 : -1;
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
                              : read_line(source, bytes, document, error);
        if (done || !source_skip(source, error)) return done ? 1 : -1;
    }
}

// The next character that is no space of JSON.
static int next_sign(const struct source *source) {
    int sign;
    do sign = getc(source->file);
    while (sign == ' ' || sign == '\n' || sign == '\r' || sign == '\t');
    return sign;
}

// Whether a record of the array follows. 1, 0: the array has ended, and the file with it, -1: it is no array.
static int find_record(struct source *source, struct hrt_error *error) {
    static const char *const wanted[] = {[BEFORE] = "a [ is wanted",
                                         [INSIDE] = ", or ] is wanted",
                                         [BEHIND] = "the array has ended"};
    const bool begins = source->place == BEFORE;
    int sign = next_sign(source);
    if (sign == (begins ? '[' : ',') && source->place != BEHIND) {
        source->place = INSIDE;
        sign = next_sign(source);
        if (!begins || sign != ']') {
            ungetc(sign, source->file);
            return 1;
        }
    }
    if (sign == ']' && source->place == INSIDE) {
        source->place = BEHIND;
        sign = next_sign(source);
    }
    if (ferror(source->file)) return fail_read(source, error) ? 1 : -1;
    if (sign == EOF && source->place == BEHIND) return 0;
    hrt_fail(error, "'%s', behind record %" PRId64 ": %s", source->path, source->next,
             wanted[source->place]);
    return -1;
}

// The next record of a JSON array. Broken JSON ends it: the next record may begin anywhere.
static int next_record(struct source *source, struct document *document, struct hrt_error *error) {
    for (;;) {
        json_error_t wrong;
        const int found = find_record(source, error);
        if (found < 1) return found;
        source->next++;
        json_t *json = json_loadf(
            source->file, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, &wrong);
        if (ferror(source->file)) return json_decref(json), fail_read(source, error) ? 1 : -1;
        if (!json)
            return hrt_fail(error, "'%s', record %" PRId64 ", line %d of it: %s", source->path,
                            source->next, wrong.line, wrong.text)
                       ? 1
                       : -1;
        const bool done = take_record(source, json, document, error);
        json_decref(json);
        if (done || !source_skip(source, error)) return done ? 1 : -1;
    }
}

static bool read_weights(const struct source *source, int64_t count, struct document *document,
                         struct hrt_error *error) {
    uint16_t *grown = realloc(document->weights, (size_t)count * sizeof *grown);
    if (!grown) return hrt_fail(error, "out of memory");
    document->weights = grown;
    return hrt_data_weights_read(&source->llmc.weights, source->path, source->next, count, grown,
                                 error);
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
    bool done = room && hrt_data_file_read(&source->llmc, source->next, count, INT32_MAX, raw,
                                           ids->at, error);
    if (done && source_is_weighted(source)) done = read_weights(source, count, document, error);
    free(raw);
    ids->count = done ? (size_t)count : 0;
    source->next += count;
    return done ? 1 : -1;
}

int source_next(struct source *source, struct document *document, struct hrt_error *error) {
    if (source->kind == KIND_LLMC) return next_tokens(source, document, error);
    if (source->kind == KIND_JSON) return next_record(source, document, error);
    if (source->kind != KIND_MEGATRON) return next_text(source, document, error);
    if (source->next == megatron_documents(source->megatron)) return 0;
    return megatron_read(source->megatron, source->next++, &document->ids, error) ? 1 : -1;
}
