#ifndef HECATE_LANG_BASE_SOURCE_H
#define HECATE_LANG_BASE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lang/base/arena.h"
#include "lang/base/vec.h"

// One text of the compilation: a file, or a flag of the command line.
struct hec_source {
    const char *path; // As reports show it.
    const char *text; // Whole, NUL-terminated.
    size_t length;
    int order; // Order of loading; reports are sorted by it.
};

// A stretch of one source line. `line` and `column` count from 1, `column` and `length` in bytes; a
// length beyond the line means its end.
// No `file`: the complaint is about no place in particular.
struct hec_span {
    const struct hec_source *file;
    uint32_t line;
    uint32_t column;
    uint32_t length;
};

struct hec_sources {
    struct hec_arena *arena;
    HEC_VEC(struct hec_source *) all;
};

// Adds text that is in memory; it is copied. Never fails.
struct hec_source *hec_source_add(struct hec_sources *sources, const char *path, const char *text,
                                  size_t length);

// Reads the file at `path`. Returns NULL and sets `why` to a reason in words when that cannot be
// done: no such file, a directory, larger than 1 MiB, a NUL byte inside.
struct hec_source *hec_source_read(struct hec_sources *sources, const char *path, const char **why);

// The stretch from the start of `first` to the end of `last`, or to the end of the first line.
struct hec_span hec_span_join(struct hec_span first, struct hec_span last);

// An empty stretch just behind `span`.
struct hec_span hec_span_after(struct hec_span span);

// The start of line `line`, counted from 1, or of the end of the text.
const char *hec_source_line(const struct hec_source *source, uint32_t line);

// The text under `span`; NULL-terminated copy in `arena`.
const char *hec_span_text(struct hec_arena *arena, struct hec_span span);

#endif
