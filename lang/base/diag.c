// Diagnostics: the one way the compiler complains to its user, in the form editors can jump to.
//
//   tiny.moe:12:16: error: unknown name `rmsnrm`; did you mean `rmsnorm`?
//     return rmsnrm(x) @ head
//            ^~~~~~
//            rmsnorm
#include "lang/base/diag.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A complaint with all that belongs to it; or one line of that.
struct hec_report {
    enum hec_severity severity;
    bool detail; // An indented line without a severity.
    struct hec_span at;
    const char *text;
    const char *fix; // Or NULL.
    int sequence;
    HEC_VEC(struct hec_report *) attached;
};

enum { REPORTS_MAX = 1000 };                 // More are counted only: the input is not a model.
enum { MESSAGE_MAX = 1000 };                 // Bytes.
enum { SHOWN_MAX = 240, SHOWN_BEFORE = 80 }; // Bytes of a line; of them before the place.

static const char *const severity_name[] = {
    [HEC_NOTE] = "note",
    [HEC_WARNING] = "warning",
    [HEC_ERROR] = "error",
};

// As clang colours them: note black, warning magenta, error red, all bold.
static const char *const severity_colour[] = {
    [HEC_NOTE] = "\033[1;36m",
    [HEC_WARNING] = "\033[1;35m",
    [HEC_ERROR] = "\033[1;31m",
};

static bool same_place(struct hec_span a, struct hec_span b) {
    return a.file == b.file && a.line == b.line && a.column == b.column;
}

static const char *format_text(struct hec_arena *arena, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    assert(length >= 0);
    char *text = hec_arena_alloc(arena, (size_t)length + 1, 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    if (length > MESSAGE_MAX) { // A name may be as long as the file.
        int end = MESSAGE_MAX;
        while (end > 0 && (text[end] & 0xC0) == 0x80) end--;
        strcpy(text + end, "...");
    }
    return text;
}

static struct hec_report *last_report(const struct hec_diag *diag) {
    assert(diag->reports.count > 0);
    return diag->reports.item[diag->reports.count - 1];
}

// A block called twice is checked twice: its complaints are those of the first time.
static bool reported_before(const struct hec_diag *diag, struct hec_span at, const char *text) {
    for (int i = 0; i < diag->reports.count; i++) {
        const struct hec_report *report = diag->reports.item[i];
        if (same_place(report->at, at) && !strcmp(report->text, text)) return true;
    }
    return false;
}

static void attach(struct hec_diag *diag, struct hec_report line) {
    struct hec_report *kept = HEC_NEW(&diag->arena, struct hec_report);
    *kept = line;
    HEC_PUSH(&diag->arena, &last_report(diag)->attached, kept);
}

bool hec_diag_report(struct hec_diag *diag, enum hec_severity severity, struct hec_span at,
                     const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(&diag->arena, format, arguments);
    va_end(arguments);

    if (severity == HEC_NOTE) {
        if (!diag->muted) attach(diag, (struct hec_report){.at = at, .text = text});
        return false;
    }
    if (severity == HEC_WARNING && diag->strict) severity = HEC_ERROR;
    if (severity == HEC_ERROR) diag->raised++;
    if (diag->reports.count >= REPORTS_MAX) {
        diag->muted = true;
        if (severity == HEC_ERROR) diag->errors++;
        return false;
    }
    diag->muted = reported_before(diag, at, text) || (severity == HEC_WARNING && diag->quiet);
    if (diag->muted) return false;

    struct hec_report *report = HEC_NEW(&diag->arena, struct hec_report);
    report->severity = severity;
    report->at = at;
    report->text = text;
    report->sequence = diag->reports.count;
    HEC_PUSH(&diag->arena, &diag->reports, report);
    if (severity == HEC_ERROR)
        diag->errors++;
    else
        diag->warnings++;
    return false;
}

void hec_diag_detail(struct hec_diag *diag, const char *format, ...) {
    if (diag->muted) return;
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(&diag->arena, format, arguments);
    va_end(arguments);
    attach(diag, (struct hec_report){.detail = true, .text = text});
}

void hec_diag_fix(struct hec_diag *diag, const char *replacement) {
    if (diag->muted) return;
    last_report(diag)->fix = hec_arena_copy(&diag->arena, replacement, strlen(replacement));
}

static int by_place(const void *left, const void *right) {
    const struct hec_report *a = *(struct hec_report *const *)left;
    const struct hec_report *b = *(struct hec_report *const *)right;
    const int order_a = a->at.file ? a->at.file->order : -1;
    const int order_b = b->at.file ? b->at.file->order : -1;
    if (order_a != order_b) return order_a < order_b ? -1 : 1;
    if (a->at.line != b->at.line) return a->at.line < b->at.line ? -1 : 1;
    if (a->at.column != b->at.column) return a->at.column < b->at.column ? -1 : 1;
    return a->sequence - b->sequence;
}

static bool wants_colour(const struct hec_diag *diag) {
    if (diag->colour != HEC_COLOUR_AUTO) return diag->colour == HEC_COLOUR_ALWAYS;
    return !getenv("NO_COLOR") && isatty(fileno(diag->out));
}

// Prints blanks under the first `count` bytes of `line`. Tabs stay tabs and a multi-byte character
// takes one column, so the caret stands under its character for any tab width of the terminal.
static void print_padding(FILE *out, const char *line, uint32_t count) {
    for (uint32_t i = 0; i < count && line[i] && line[i] != '\n'; i++) {
        const bool continues = (line[i] & 0xC0) == 0x80; // Inside a UTF-8 character (RFC 3629).
        if (!continues) fputc(line[i] == '\t' ? '\t' : ' ', out);
    }
}

// A line, or of a long one what stands around `column`, which then counts from its start.
struct shown {
    const char *text;
    uint32_t length, column;
};

static struct shown shown_of(const struct hec_report *report) {
    const char *line = hec_source_line(report->at.file, report->at.line);
    struct shown shown = {line, (uint32_t)strcspn(line, "\r\n"), report->at.column - 1};
    if (shown.length <= SHOWN_MAX) return shown;
    if (shown.column > SHOWN_BEFORE) {
        uint32_t skipped = shown.column - SHOWN_BEFORE;
        while (skipped < shown.column && (line[skipped] & 0xC0) == 0x80) skipped++;
        shown = (struct shown){line + skipped, shown.length - skipped, shown.column - skipped};
    }
    if (shown.length > SHOWN_MAX) shown.length = SHOWN_MAX;
    while (shown.length > 0 && (shown.text[shown.length] & 0xC0) == 0x80) shown.length--;
    return shown;
}

static void print_source_line(FILE *out, const struct hec_report *report, bool colour) {
    const struct shown shown = shown_of(report);
    fprintf(out, "%.*s\n", (int)shown.length, shown.text);
    print_padding(out, shown.text, shown.column);
    fprintf(out, "%s^", colour ? "\033[1;32m" : "");
    for (uint32_t i = 1; i < report->at.length; i++) {
        const uint32_t at = shown.column + i;
        if (at >= shown.length) break;
        if ((shown.text[at] & 0xC0) != 0x80) fputc('~', out);
    }
    fprintf(out, "%s\n", colour ? "\033[0m" : "");
    if (!report->fix) return;
    print_padding(out, shown.text, shown.column);
    fprintf(out, "%s%s%s\n", colour ? "\033[32m" : "", report->fix, colour ? "\033[0m" : "");
}

static void print_report(FILE *out, const struct hec_report *report, bool colour) {
    const char *name = severity_name[report->severity];
    if (report->detail) {
        fprintf(out, "  %s\n", report->text);
        return;
    }
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    const char *shade = colour ? severity_colour[report->severity] : "";
    if (report->at.file) {
        fprintf(out, "%s%s:%u:%u: %s%s:%s", bold, report->at.file->path, report->at.line,
                report->at.column, shade, name, plain);
    } else if (report->severity == HEC_NOTE) {
        fprintf(out, "  %snote:%s", shade, plain);
    } else {
        fprintf(out, "%shecatec: %s%s:%s", bold, shade, name, plain);
    }
    if (report->severity == HEC_NOTE) bold = "";
    fprintf(out, " %s%s%s\n", bold, report->text, plain);
    if (report->at.file) print_source_line(out, report, colour);
    for (int i = 0; i < report->attached.count; i++) {
        print_report(out, report->attached.item[i], colour);
    }
}

static void print_summary(const struct hec_diag *diag, uint32_t printed) {
    const uint32_t hidden = diag->errors - printed;
    if (hidden) {
        fprintf(diag->out, "%u more error%s not shown (--error-limit=%u)\n", hidden,
                hidden == 1 ? "" : "s", printed);
    }
    if (diag->warnings) {
        fprintf(diag->out, "%u warning%s", diag->warnings, diag->warnings == 1 ? "" : "s");
    }
    if (diag->errors) {
        fprintf(diag->out, "%s%u error%s", diag->warnings ? " and " : "", diag->errors,
                diag->errors == 1 ? "" : "s");
    }
    if (diag->errors || diag->warnings) fprintf(diag->out, " generated.\n");
}

void hec_diag_flush(struct hec_diag *diag) {
    if (diag->reports.count == 0) return;
    qsort(diag->reports.item, (size_t)diag->reports.count, sizeof *diag->reports.item, by_place);
    const bool colour = wants_colour(diag);
    uint32_t errors = 0;
    for (int i = 0; i < diag->reports.count; i++) {
        const struct hec_report *report = diag->reports.item[i];
        if (diag->error_limit && errors == diag->error_limit) break;
        if (report->severity == HEC_ERROR) errors++;
        print_report(diag->out, report, colour);
    }
    print_summary(diag, errors);
    diag->reports.count = 0;
}

void hec_diag_free(struct hec_diag *diag) {
    hec_arena_free(&diag->arena);
    diag->reports.item = NULL;
    diag->reports.count = diag->reports.room = 0;
}
