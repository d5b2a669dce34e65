// A folder of checkpoints: DIR/step-N, and DIR/latest, a file that names the newest. The work of one rank there; ranks
// are not known here.
//
// A checkpoint is written as DIR/step-N.hecate-partial and renamed, so a folder step-N is whole as long as nobody has
// touched it since.
#ifndef HECATE_RUNTIME_STORE_CHECKPOINT_FOLDER_H
#define HECATE_RUNTIME_STORE_CHECKPOINT_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

// "DIR/step-N". False: it is too long.
bool hrt_store_folder_of(char path[PATH_MAX], const char *dir, int64_t step,
                         struct hrt_error *error);
bool hrt_store_folder_of_partial(char path[PATH_MAX], const char *dir, int64_t step,
                                 struct hrt_error *error);

// Makes the folder where there is none, keeps other runs from writing there until *lock is closed or the process has
// ended, and removes half-written files of a killed run.
bool hrt_store_folder_open(const char *dir, int *lock, struct hrt_error *error);

// The steps of the checkpoints there, the newest first; the caller frees *step. None where there is no such folder.
bool hrt_store_folder_list(const char *dir, int64_t **step, size_t *steps, struct hrt_error *error);

// The step of the newest checkpoint that `path` stands for, a folder of them or its file `latest`, and the folder; 0:
// it is neither. `dir` has PATH_MAX bytes.
int64_t hrt_store_folder_newest(const char *path, char *dir);

// Makes the empty folder of a checkpoint that is written; makes it visible, with all that is in it durable, replaces
// one of the same step, and names it in `latest`; or removes it.
bool hrt_store_folder_begin(const char *dir, int64_t step, struct hrt_error *error);
bool hrt_store_folder_publish(const char *dir, int64_t step, struct hrt_error *error);
void hrt_store_folder_drop(const char *dir, int64_t step);

// Removes all but the newest `keep`, and those of steps that are multiples of `keep_every` (0: none are).
bool hrt_store_folder_prune(const char *dir, int64_t keep, int64_t keep_every,
                            struct hrt_error *error);

#endif
