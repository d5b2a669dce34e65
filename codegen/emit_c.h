// The C emitter: from the IR after place-buffers to the text of a training program.
#ifndef HECATE_CODEGEN_EMIT_C_H
#define HECATE_CODEGEN_EMIT_C_H

#include "codegen/writer.h"
#include "ir/op.h"

struct hec_emit_options {
    const char *version; // Of hecatec.
    // The text of line `line` of source `file`, without its newline, for the comments; NULL where
    // the text is not at hand. May be NULL itself.
    const char *(*source_line)(void *user, const char *file, unsigned line, size_t *length);
    void *user;
};

// Appends the program's C to `out`. Same module, same text. Every fault of the module (not placed,
// an operation this target cannot do) is reported at its operation; false then.
bool hec_emit_c(MlirOperation module, const struct hec_emit_options *options,
                struct hec_writer *out);

#endif
