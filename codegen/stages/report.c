// Complaints about the IR as complaints about the source.
#include "codegen/stages/report.h"

#include <string.h>

// The file at `path`, read once; NULL when it cannot be read (the command line, text of a pipe).
static const struct hec_source *source_at(struct hec_reporter *r, const char *path) {
    for (int i = 0; i < r->sources.all.count; i++) {
        const struct hec_source *source = r->sources.all.item[i];
        if (strcmp(source->path, path) == 0) return source->order < 0 ? NULL : source;
    }
    const char *why;
    struct hec_source *read = hec_source_read(&r->sources, path, &why);
    if (!read) hec_source_add(&r->sources, path, "", 0)->order = -1;
    return read;
}

// Whether the source has that line; locations in the IR are not trusted.
static bool has_line(const struct hec_source *source, unsigned line, unsigned column) {
    const char *text = hec_source_line(source, line);
    return line >= 1 && column >= 1 && column - 1 <= strcspn(text, "\n");
}

void hec_report_ir(void *user, const char *file, unsigned line, unsigned column,
                   MlirDiagnosticSeverity severity, const char *text) {
    struct hec_reporter *r = user;
    if (r->muted) return;
    enum hec_severity level = HEC_NOTE;
    if (severity == MlirDiagnosticError) level = HEC_ERROR;
    if (severity == MlirDiagnosticWarning || r->diag->reports.count == 0) {
        level = level == HEC_ERROR ? level : HEC_WARNING;
    }
    const struct hec_source *source = file && *file ? source_at(r, file) : NULL;
    if (source && has_line(source, line, column)) {
        const struct hec_span at = {.file = source, .line = line, .column = column, .length = 1};
        hec_diag_report(r->diag, level, at, "%s", text);
    } else if (file && *file) {
        hec_diag_report(r->diag, level, HEC_NOWHERE, "%s:%u:%u: %s", file, line, column, text);
    } else {
        hec_diag_report(r->diag, level, HEC_NOWHERE, "%s", text);
    }
}

const char *hec_report_line(void *user, const char *file, unsigned line, size_t *length) {
    const struct hec_source *source = source_at(user, file);
    if (!source || line < 1) return NULL;
    const char *text = hec_source_line(source, line);
    *length = strcspn(text, "\r\n");
    return text;
}
