// Text of the emitted program: indented, wrapped at 100 columns.
#ifndef HECATE_CODEGEN_TEXT_WRITER_H
#define HECATE_CODEGEN_TEXT_WRITER_H

#include <stddef.h>

#include "lang/base/arena.h"

enum { HEC_COLUMNS = 100 };

// Zero-initialise, then set `arena`; the text lives there.
struct hec_writer {
    struct hec_arena *arena;
    char *text; // NUL-terminated; NULL while empty.
    size_t length, room;
    int indent; // In steps of four blanks.
};

// Appends text as it is.
void hec_write(struct hec_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Writes one indented line. A line that is too long continues below its innermost open bracket; a
// comment at its end then moves above it.
void hec_line(struct hec_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A line, after which the text is one step further in; and the way back, with `text` as the line.
void hec_open(struct hec_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void hec_close(struct hec_writer *w, const char *text);

// Writes `// text`, cut with "..." where it would not fit. Bytes that are no printable ASCII or
// UTF-8, and backslashes at the end, are left out: a comment ends with its line for any text.
void hec_comment(struct hec_writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// An empty line; nothing after another one or after a bracket that opens.
void hec_blank(struct hec_writer *w);

// Puts the comments at the ends of lines that follow each other below each other.
void hec_align_comments(struct hec_writer *w);

// Appends everything `other` holds.
void hec_append(struct hec_writer *w, const struct hec_writer *other);

#endif
