// Complaints about the IR as complaints about the source; and lines of the source for comments.
#ifndef HECATE_CODEGEN_STAGES_REPORT_H
#define HECATE_CODEGEN_STAGES_REPORT_H

#include "ir/core/ir.h"
#include "lang/base/diag.h"

struct hec_reporter {
    struct hec_diag *diag;
    struct hec_sources sources; // The places that were named so far.
    bool muted;                 // Counts nothing, keeps nothing.
};

// For hec_ir_context: `user` is a struct hec_reporter.
hec_ir_report hec_report_ir;

// For hec_emit_options: `user` is a struct hec_reporter.
const char *hec_report_line(void *user, const char *file, unsigned line, size_t *length);

#endif
