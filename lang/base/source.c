// Source texts, and places in them.
#include "lang/base/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files/files.h"

static const size_t bytes_max = 1 << 20; // A model is a few hundred lines; more is a mistake.

static const uint32_t to_line_end = 1 << 20; // Messages clip a span to its line.

struct hec_source *hec_source_add(struct hec_sources *sources, const char *path, const char *text,
                                  size_t length) {
    struct hec_source *source = HEC_NEW(sources->arena, struct hec_source);
    source->path = hec_arena_copy(sources->arena, path, strlen(path));
    source->text = hec_arena_copy(sources->arena, text, length);
    source->length = length;
    source->order = sources->all.count;
    HEC_PUSH(sources->arena, &sources->all, source);
    return source;
}

static bool read_all(FILE *file, struct hec_arena *scratch, char **text, size_t *length,
                     const char **why) {
    *text = hec_arena_alloc(scratch, bytes_max + 1, 1);
    *length = fread(*text, 1, bytes_max + 1, file);
    if (ferror(file))
        *why = strerror(errno);
    else if (*length > bytes_max)
        *why = "it is larger than 1 MiB";
    else if (memchr(*text, '\0', *length))
        *why = "it holds a NUL byte, so it is not text";
    else
        return true;
    return false;
}

struct hec_source *hec_source_read(struct hec_sources *sources, const char *path,
                                   const char **why) {
    FILE *file = hf_input(path, true, why);
    if (!file) return NULL;
    struct hec_arena scratch = {0};
    struct hec_source *source = NULL;
    char *text = NULL;
    size_t length = 0;
    if (read_all(file, &scratch, &text, &length, why)) {
        const size_t mark = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        source =
            hec_source_add(sources, path, text + mark, length - mark); // UTF-8, with or without.
    }
    fclose(file);
    hec_arena_free(&scratch);
    return source;
}

const char *hec_source_line(const struct hec_source *source, uint32_t line) {
    const char *at = source->text;
    for (; line > 1 && *at; line--) at += strcspn(at, "\n"), at += *at == '\n';
    return at;
}

struct hec_span hec_span_join(struct hec_span first, struct hec_span last) {
    if (!last.file || first.file != last.file) return first;
    struct hec_span joined = first;
    joined.length =
        first.line == last.line ? last.column + last.length - first.column : to_line_end;
    return joined;
}

struct hec_span hec_span_after(struct hec_span span) {
    return (struct hec_span){span.file, span.line, span.column + span.length, 0};
}

const char *hec_span_text(struct hec_arena *arena, struct hec_span span) {
    if (!span.file) return "";
    const char *line = hec_source_line(span.file, span.line);
    const size_t line_length = strcspn(line, "\n");
    const size_t start = span.column - 1 < line_length ? span.column - 1 : line_length;
    const size_t length = span.length < line_length - start ? span.length : line_length - start;
    return hec_arena_copy(arena, line + start, length);
}
