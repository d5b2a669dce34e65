// Files by name: opening them without ever waiting for somebody else, and which names mean one file. The lowest
// layer: hecatec, emitted programs and tools open files through it.
#ifndef HECATE_FILES_FILES_H
#define HECATE_FILES_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Opens /dev/null for each of descriptors 0 to 2 that is closed, as daemons and cron leave them: a file opened
// later would get its number, and printed text. Call first thing in main.
void hf_hold_standard(void);

// Opens `path` for reading. Anything but a regular file is refused, since reading it may take for ever; with
// `pipes`, devices and pipes that the process was given (/dev/stdin, <(...)) are not, but named FIFOs are. False, -1 or
// NULL: `*why` says in words why not. Descriptors are closed on exec.
int hf_open_input(const char *path, bool pipes, const char **why);
FILE *hf_input(const char *path, bool pipes, const char **why);

// Creates or truncates `path` for a stream of text. May also be a device, a pipe that somebody reads (a FIFO that
// nobody does is refused), and one of the process's own descriptors (/dev/stdout, /dev/fd/N), which keeps its position.
// A reader that takes nothing for five seconds makes the write fail with ETIMEDOUT. One that leaves raises
// SIGPIPE, as ever, or makes it fail with EPIPE.
FILE *hf_output(const char *path, const char **why);

// The same, but of a file that is there the first `kept` bytes stay, or as many as it has, and writing goes on behind.
FILE *hf_output_behind(const char *path, int64_t kept, const char **why);

// Opens `path` to write at any place of it, with further `flags` of open(2): a regular file only.
int hf_open_output(const char *path, int flags, const char **why);

// The name behind symbolic links: where a file of that name is, or would be made. False: errno.
bool hf_target(const char *path, char target[PATH_MAX]);

// Whether `path` names a descriptor that the process has (/dev/stdout).
bool hf_is_own(const char *path);

// ---- replacing a file

// A file on its way: written under another name, `path`.hecate-partial, so that an existing file is unchanged, or
// whole.
struct hf_replacement {
    FILE *file; // To be written.
    char temporary[PATH_MAX], target[PATH_MAX];
};

// Opens the other file, empty and locked. A symbolic link stays one, and the file that it names is replaced; rights and
// owner of a file that is replaced stay. A file that a killed run has left under the other name is written over; while
// a run writes there, others fail. False: `*why` says in words why not.
bool hf_replace_begin(struct hf_replacement *replacement, const char *path, const char **why);

// Syncs and renames the file, or drops it when it is not `written`, for the reason in errno. Closes the file. False:
// `*why`; the file that was to be replaced is as it was, unless only its folder could not be synced.
bool hf_replace_end(struct hf_replacement *replacement, bool written, const char **why);

// Tries whether hf_replace_begin would do, and leaves nothing behind.
bool hf_can_replace(const char *path, const char **why);

// Makes changes of a folder durable: files that were made, renamed or removed. False: errno.
bool hf_sync_folder(const char *path);

// Removes a folder that holds no folders, if it is there. Files that cannot be removed stay. False: errno.
bool hf_remove_folder(const char *path);

// Makes the folder `path`, and those that it lies in, where they are not there. False: errno says why.
bool hf_make_folder(const char *path);

// ---- which names mean one file

enum hf_use {
    HF_READ,
    HF_READ_FIRST, // Read whole and closed before anything is written.
    HF_WRITTEN,
    HF_REPLACED, // Written under another name, then renamed: may be what was HF_READ_FIRST.
};

// All files of one run.
struct hf_files {
    struct hf_file *file; // Owned.
    int count;
};

enum { HF_WHY = 2 * PATH_MAX + 128 };

// Adds a file of the run; `role` names it in messages ("--save") and is borrowed. False, with a sentence in `why`,
// when it is the same file, by device and inode, as one that was added before, and one of the two is written. A file
// that does not exist yet is known by its folder and name. Devices are no files in this sense.
bool hf_files_add(struct hf_files *files, enum hf_use use, const char *role, const char *path,
                  char why[HF_WHY]);
// The same of an open descriptor, if it is a regular file. Before all others.
bool hf_files_add_open(struct hf_files *files, enum hf_use use, const char *role, int descriptor,
                       char why[HF_WHY]);
void hf_files_free(struct hf_files *files);

#endif
