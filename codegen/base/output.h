// Files that hecatec writes: under a temporary name first, then renamed, so that nothing is ever half
// written; temporary files disappear when the process ends, by a signal, too.
#ifndef HECATE_CODEGEN_BASE_OUTPUT_H
#define HECATE_CODEGEN_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lang/base/arena.h"

// Removes all temporary files at exit and on SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGQUIT. Call once, first.
void hec_output_guard(void);

// Around a program that hecatec runs. A signal that comes meanwhile is passed on to its process group, and hecatec
// ends by it once all of the group have ended; five seconds later, or at a second signal, they are killed. One that
// takes longer than it may is ended in the same way, and hecatec goes on.
//
// child_begin, before the fork, makes a folder for its temporary files and holds signals back; returns the folder,
// in place until child_end, or NULL after a complaint. Behind the fork both sides call child, with the group or, in the
// new process, with 0; `seconds` limits the program's time, 0: no limit. child_end, when the program has
// ended, removes the folder and all in it, and returns unless a signal came: false where the program took too long.
const char *hec_output_child_begin(void);
void hec_output_child(pid_t child, unsigned seconds);
bool hec_output_child_end(void);

// Notes a file that the compilation reads, or one that it writes; NULL and "-" are none. `role` names it in
// messages and is borrowed. Returns false after a complaint when it is the same file as one noted before, and one of
// the two is written. Note all files before the first is written.
bool hec_output_note(bool written, const char *role, const char *path);

// Writes `text` to `path`; "-" is standard output. Returns false after a complaint to stderr.
bool hec_output_write(struct hec_arena *arena, const char *path, const char *text, size_t length);

// Makes a temporary file beside `path`, for another program to write, and commits it there. Where
// `path` is no regular file (/dev/null), it is itself the temporary file. NULL and false after a
// complaint. The committed file gets `mode` as far as the user's umask lets it.
const char *hec_output_begin(struct hec_arena *arena, const char *path);
bool hec_output_commit(const char *temporary, const char *path, mode_t mode);

// Makes an empty temporary file in `folder`, NULL: in that for such; its name ends in `suffix`. Removed at the
// end unless `kept`. NULL after a complaint.
const char *hec_output_temporary(struct hec_arena *arena, const char *folder, const char *suffix,
                                 bool kept);
// Removes one that is not kept before the end.
void hec_output_discard(const char *temporary);

#endif
