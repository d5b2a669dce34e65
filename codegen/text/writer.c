// Text of the emitted program: indented, wrapped at 100 columns.
#include "codegen/text/writer.h"

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

// A place where a line may be broken: the text goes on at `next`, in column `column`. The place with
// the least penalty is taken, the last of equals.
struct cut {
    size_t end, next;
    int column, penalty;
};

// Columns of the brackets that are open at the current byte of a line.
struct brackets {
    int column[DEEPEST];
    int depth;
};

static void follow(struct brackets *open, const char *at, int column) {
    if (strchr("([{", *at) && open->depth < DEEPEST) {
        open->column[open->depth++] = column + (at[1] == ' ' ? 2 : 1);
    }
    if (strchr(")]}", *at) && open->depth > 0) open->depth--;
}

// After a comma costs less than after an operator, outside costs less than in brackets; after `=`
// only where nothing else will do.
static int penalty_of(const char *at, int depth) {
    if (at[0] == ',' && at[1] == ' ') return 2 * depth;
    if (at[0] != ' ' || at[2] != ' ' || !strchr("+*-?:=", at[1])) return -1;
    return at[1] == '=' ? 1000 : 2 * depth + 1;
}

// The end of the string literal that starts at text[i]; i itself where none does.
static size_t skip_string(const char *text, size_t i) {
    if (text[i] != '"') return i;
    for (i++; text[i] && text[i] != '"'; i++) i += text[i] == '\\' && text[i + 1];
    return i;
}

// Finds the place at which to break `text`, whose first byte stands in column `start`, so that what
// comes before fits into the line; the first place where nothing does. Never in a string literal.
static bool find_cut(const char *text, int start, struct brackets *open, int rest,
                     struct cut *best) {
    bool found = false;
    struct brackets seen = *open, at_best = *open;
    for (size_t i = 0; text[i] && (start + (int)i < HEC_COLUMNS || !found); i++) {
        i = skip_string(text, i);
        if (!text[i]) break;
        follow(&seen, text + i, start + (int)i);
        const int penalty = i ? penalty_of(text + i, seen.depth) : -1;
        const size_t end = text[i] == ',' ? i + 1 : i + 2;
        if (penalty < 0 || (found && penalty > best->penalty)) continue;
        if (start + (int)end > HEC_COLUMNS && found) continue;
        found = true;
        best->end = end, best->next = end + 1, best->penalty = penalty;
        best->column = seen.depth ? seen.column[seen.depth - 1] : rest;
        if (text[i] == ' ' && text[i + 1] == '=') best->column = HEC_COLUMNS; // Not behind itself.
        at_best = seen;
    }
    *open = at_best;
    return found;
}

static void wrap(struct hec_writer *w, const char *text) {
    int column = w->indent * STEP;
    const char *equals = strstr(text, " = "); // An assignment continues behind its equals sign.
    const int rest = equals && !memchr(text, '(', (size_t)(equals - text))
                         ? column + (int)(equals - text) + 3
                         : column + STEP;
    struct brackets open = {0};
    struct cut cut = {0};
    while (column + (int)strlen(text) > HEC_COLUMNS && find_cut(text, column, &open, rest, &cut)) {
        blanks(w, column);
        append(w, text, cut.end);
        append(w, "\n", 1);
        column = cut.column > 3 * HEC_COLUMNS / 4 ? w->indent * STEP + STEP : cut.column;
        text += cut.next;
    }
    blanks(w, column);
    append(w, text, strlen(text));
    append(w, "\n", 1);
}

// The comment that ends a line of code, of C or of a model, or NULL; not what looks like one in a string literal.
static const char *trailing_comment(const char *text, size_t length) {
    for (size_t i = 0; i + 3 < length; i++) {
        i = skip_string(text, i);
        if (i == 0 || i + 3 >= length) continue;
        if (strncmp(text + i, " // ", 4) == 0 || strncmp(text + i, " # ", 3) == 0)
            return text + i + 1;
    }
    return NULL;
}

static void put_line(struct hec_writer *w, char *text) {
    assert(!strchr(text, '\n'));
    if (w->indent * STEP + strlen(text) > HEC_COLUMNS) {
        const char *comment = trailing_comment(text, strlen(text));
        if (comment) {
            blanks(w, w->indent * STEP);
            append(w, comment, strlen(comment));
            append(w, "\n", 1);
            size_t code = (size_t)(comment - text);
            while (code > 0 && text[code - 1] == ' ') code--;
            text[code] = '\0';
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
        while (length && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--; // Whole characters.
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

// Lines that follow each other and end in comments: how wide their code is, and whether all fit when
// the comments stand below each other.
struct block {
    size_t widest, lines;
    bool fits;
};

static struct block measure(const char *text) {
    struct block block = {.fits = true};
    size_t longest = 0;
    for (;;) {
        const size_t length = strcspn(text, "\n");
        const char *comment = trailing_comment(text, length);
        if (!comment || text + strspn(text, " ") == comment) break;
        const size_t code = (size_t)(comment - text) - 1;
        if (code > block.widest) block.widest = code;
        if (length - code > longest) longest = length - code;
        block.lines++;
        text += length + 1;
    }
    block.fits = block.widest + longest <= HEC_COLUMNS;
    return block;
}

void hec_align_comments(struct hec_writer *w) {
    struct hec_writer out = {.arena = w->arena};
    const char *text = w->length ? w->text : "";
    while (*text) {
        const struct block block = measure(text);
        for (size_t i = 0; i < block.lines || i == 0; i++) {
            const size_t length = strcspn(text, "\n");
            const char *comment = block.lines ? trailing_comment(text, length) : NULL;
            const size_t code = comment ? (size_t)(comment - text) - 1 : length;
            append(&out, text, code);
            if (comment) {
                blanks(&out, (int)(block.fits ? block.widest - code + 1 : 1));
                append(&out, comment, length - code - 1);
            }
            append(&out, "\n", 1);
            text += length + 1;
        }
    }
    w->text = out.text, w->length = out.length, w->room = out.room;
}
