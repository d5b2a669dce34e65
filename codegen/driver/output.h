// Files that hecatec writes: under a temporary name first, then renamed, so that nothing is ever half
// written; whatever is temporary disappears when the process ends, by a signal, too.
#ifndef HECATE_CODEGEN_DRIVER_OUTPUT_H
#define HECATE_CODEGEN_DRIVER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lang/base/arena.h"

// Removes all temporary files at exit and on SIGINT, SIGTERM, SIGHUP and SIGPIPE. Call once, first.
void hec_output_guard(void);
// The process group to end as well when a signal comes; 0: none.
void hec_output_child(pid_t child);

// Notes a file that the compilation reads, or one that it writes; NULL and "-" are none. `role` names it in
// messages and is borrowed. Returns false after a complaint when it is the same file as one noted before, and one of the
// two is written. Note all files before the first is written.
bool hec_output_note(bool written, const char *role, const char *path);

// Writes `text` to `path`; "-" is standard output. Returns false after a complaint to stderr.
bool hec_output_write(struct hec_arena *arena, const char *path, const char *text, size_t length);

// Makes a temporary file beside `path`, for another program to write, and commits it there. Where
// `path` is no regular file (/dev/null), it is itself the temporary file. NULL and false after a
// complaint. The committed file gets `mode` as far as the user's umask lets it.
const char *hec_output_begin(struct hec_arena *arena, const char *path);
bool hec_output_commit(const char *temporary, const char *path, mode_t mode);

// Makes an empty temporary file in the folder for such; its name ends in `suffix`. Removed at the
// end unless `kept`. NULL after a complaint.
const char *hec_output_temporary(struct hec_arena *arena, const char *suffix, bool kept);

#endif
