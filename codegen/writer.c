// Text of the emitted program: indented, wrapped at 100 columns.
#include "codegen/writer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { STEP = 4, DEEPEST = 32 };

static void append(struct hec_writer *w, const char *text, size_t length) {
    if (w->length + length + 1 > w->room) {
        const size_t room = 2 * (w->length + length + 1) + 4096;
        char *grown = hec_arena_alloc(w->arena, room, 1);
        if (w->length) memcpy(grown, w->text, w->length);
        w->text = grown, w->room = room;
    }
    memcpy(w->text + w->length, text, length);
    w->length += length;
    w->text[w->length] = '\0';
}

static void blanks(struct hec_writer *w, int count) {
    while (count-- > 0) append(w, " ", 1);
}

static char *format_text(struct hec_writer *w, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert(length >= 0);
    char *text = hec_arena_alloc(w->arena, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

void hec_write(struct hec_writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(w, format, arguments);
    va_end(arguments);
    append(w, text, strlen(text));
}

// A place where a line may be broken: the text goes on at `next`, in column `column`.
struct cut {
    size_t end, next;
    int column;
};

// Columns of the brackets that are open at the current byte of a line.
struct brackets {
    int column[DEEPEST];
    int depth;
};

static void follow(struct brackets *open, char c, int column) {
    if (strchr("([{", c) && open->depth < DEEPEST) open->column[open->depth++] = column + 1;
    if (strchr(")]}", c) && open->depth > 0) open->depth--;
}

// Finds the last place at which `text` can be broken so that what comes before fits into the line
// that starts at `start`; before operators, after commas, never in a string literal.
static bool find_cut(const char *text, int start, struct brackets *open, int rest,
                     struct cut *cut) {
    bool found = false, quoted = false;
    struct brackets seen = *open;
    for (size_t i = 0; text[i]; i++) {
        const int column = start + (int)i;
        if (column >= HEC_COLUMNS) break;
        if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
        if (quoted) continue;
        follow(&seen, text[i], column);
        const bool comma = text[i] == ',' && text[i + 1] == ' ';
        const bool operator= text[i] == ' ' && strchr("+*-?:=", text[i + 1]) && text[i + 2] == ' ';
        if ((!comma && !operator) || i == 0) continue;
        if (operator && text[i + 1] == '=') continue;
        found = true;
        cut->end = comma ? i + 1 : i;
        cut->next = cut->end + 1;
        cut->column = seen.depth ? seen.column[seen.depth - 1] : rest;
        *open = seen;
    }
    return found;
}

static void wrap(struct hec_writer *w, const char *text) {
    int column = w->indent * STEP;
    const int rest = column + STEP;
    struct brackets open = {0};
    struct cut cut;
    while (column + (int)strlen(text) > HEC_COLUMNS && find_cut(text, column, &open, rest, &cut)) {
        blanks(w, column);
        append(w, text, cut.end);
        append(w, "\n", 1);
        column = cut.column > 3 * HEC_COLUMNS / 4 ? rest : cut.column;
        text += cut.next;
    }
    blanks(w, column);
    append(w, text, strlen(text));
    append(w, "\n", 1);
}

static void put_line(struct hec_writer *w, char *text) {
    assert(!strchr(text, '\n'));
    if (w->indent * STEP + strlen(text) > HEC_COLUMNS) {
        char *comment = strstr(text, " // ");
        if (comment) {
            blanks(w, w->indent * STEP);
            append(w, comment + 1, strlen(comment + 1));
            append(w, "\n", 1);
            *comment = '\0';
        }
    }
    wrap(w, text);
}

void hec_line(struct hec_writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_line(w, format_text(w, format, arguments));
    va_end(arguments);
}

void hec_open(struct hec_writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    put_line(w, format_text(w, format, arguments));
    va_end(arguments);
    w->indent++;
}

void hec_close(struct hec_writer *w, const char *text) {
    assert(w->indent > 0);
    w->indent--;
    hec_line(w, "%s", text);
}

void hec_comment(struct hec_writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = format_text(w, format, arguments);
    va_end(arguments);

    size_t length = 0;
    for (size_t i = 0; text[i]; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != 0x7f) text[length++] = text[i];
    }
    const size_t most = (size_t)(HEC_COLUMNS - w->indent * STEP) - strlen("// ");
    if (length > most) {
        length = most - strlen("...");
        while (length && ((unsigned char)text[length] & 0xC0) == 0x80) length--; // Whole characters.
        memcpy(text + length, "...", 3);
        length += 3;
    }
    while (length && strchr(" \\", text[length - 1])) length--;
    text[length] = '\0';
    blanks(w, w->indent * STEP);
    hec_write(w, "// %s\n", text);
}

void hec_blank(struct hec_writer *w) {
    if (w->length < 2) return;
    const char *end = w->text + w->length;
    if (end[-2] != '\n' && end[-2] != '{') append(w, "\n", 1);
}

void hec_append(struct hec_writer *w, const struct hec_writer *other) {
    if (other->length) append(w, other->text, other->length);
}
