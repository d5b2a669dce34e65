// The caller's options for the emitter.
#ifndef HECATE_CODEGEN_HOST_EMIT_OPTIONS_H
#define HECATE_CODEGEN_HOST_EMIT_OPTIONS_H

#include <stddef.h>

struct hec_emit_options {
    const char *version; // Version of hecatec.
    const char *ranks;   // Transport between ranks, "mpi" or "tcp"; NULL: the target's.
    // The text of line `line` of source `file`, without its newline, for the comments; NULL where
    // the text is not at hand. May be NULL itself.
    const char *(*source_line)(void *user, const char *file, unsigned line, size_t *length);
    void *user;
};

#endif
